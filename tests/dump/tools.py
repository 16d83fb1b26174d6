"""Programs that these tests need besides Python, and a reader of ELF sections that is not the writer's."""

import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

SECONDS = 60


def need(*programs: str) -> None:
    """Skip the test unless all are installed."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")


def output(*words: str | Path, cwd: Path | None = None) -> str:
    """What the command prints; it must succeed and warn of nothing."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=cwd, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, ""), f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Section(NamedTuple):
    data: bytes
    flags: int
    alignment: int


def sections(elf: bytes) -> dict[str, Section]:
    """By name, of an ELF64 file."""
    table, count, names = *struct.unpack_from("<Q", elf, 40), *struct.unpack_from("<HH", elf, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + 64 * i) for i in range(count)]
    found = {}
    strings = headers[names][4]
    for name, _, flags, _, offset, size, _, _, alignment, _ in headers[1:]:
        title = elf[strings + name : elf.index(b"\0", strings + name)].decode()
        found[title] = Section(elf[offset : offset + size], flags, alignment)
    return found


def reassembled(text: str, folder: Path) -> bytes:
    """The .text that `as` makes of an assembly file."""
    (folder / "in.s").write_text(text)
    output("as", "in.s", "-o", "out.o", cwd=folder)
    return sections((folder / "out.o").read_bytes())[".text"].data
