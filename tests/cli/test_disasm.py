"""`asmdnn disasm` gives the library's own listings back, of bytes, of files, and of what gcc makes."""

import random
from pathlib import Path

import pytest

pytest.importorskip("iced_x86", reason="disasm decodes with it: pip install iced-x86")

from asmdnn import asm
from asmdnn.cli.main import main
from tests.dump.tools import need, output


@asm.function("int64_t three(int64_t x)", isa="avx2+popcnt")
def three(f: asm.FunctionBuilder, x: asm.Register) -> None:
    f.POPCNT(x, x)
    f.LEA(x, asm.mem(x, index=x, scale=2))
    f.ret(x)


def lines(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> list[str]:
    assert main(["disasm", *words]) == status
    return capsys.readouterr().out.splitlines()


def test_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = ["     0  c5f458c2                vaddps ymm0, ymm1, ymm2"]
    for words in (("c5f458c2",), ("c5", "F4", "58", "C2"), ("0xc5, 0xf4, 0x58, 0xc2",)):
        assert lines(capsys, *words) == wanted
    found = lines(capsys, "--features", "c5f458c2", "c3")
    assert found[0].endswith("; avx") and found[-1] == "needs avx"
    assert lines(capsys, "--features", "c3")[-1] == "needs nothing above the 64-bit baseline"


def test_what_is_no_instruction_is_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    found = lines(capsys, "06c3", status=1)
    assert [line.split(None, 2)[-1] for line in found] == ["db 0x06", "ret"]
    assert lines(capsys, "48", status=1)[0].endswith("db 0x48")  # cut off


def test_files_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three.save(tmp_path / "f.bin", tmp_path / "f.o")
    texts = [line.text for line in three.listing]
    assert [line[32:] for line in lines(capsys, str(tmp_path / "f.bin"))] == texts
    found = lines(capsys, str(tmp_path / "f.o"))
    assert found[0] == "three:" and [line[32:] for line in found[1:]] == texts
    assert lines(capsys, "--symbol=three", str(tmp_path / "f.o")) == found
    start = three.listing[1].offset
    assert [line[32:] for line in lines(capsys, f"--start={start}", str(tmp_path / "f.bin"))] == texts[1:]
    assert [line[32:] for line in lines(capsys, f"--stop={start:#x}", str(tmp_path / "f.bin"))] == texts[:1]


def test_a_library_of_gcc(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many instructions as objdump has in each function."""
    need("gcc", "objdump")
    source = "int twice(int x) { return 2 * x; }\nint sum(int *x) { return twice(x[0]) + x[1]; }\n"
    (tmp_path / "a.c").write_text(source)
    output("gcc", "-O1", "-shared", "-fPIC", "a.c", "-o", "a.so", cwd=tmp_path)
    for name in ("twice", "sum"):
        found = lines(capsys, f"--symbol={name}", str(tmp_path / "a.so"))
        told = output("objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", "a.so", cwd=tmp_path)
        addresses = [line.split(":")[0].strip() for line in told.splitlines() if line.startswith("    ")]
        assert found[0] == f"{name}:"
        assert [line.split()[0] for line in found[1:]] == addresses
    assert "twice:" in lines(capsys, str(tmp_path / "a.so"), status=main(["disasm", str(tmp_path / "a.so")]))


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elf").write_bytes(b"\x7fELF\1\1" + bytes(58))
    (tmp_path / "bin").write_bytes(b"\xc3")
    three.save(tmp_path / "cut.o", tmp_path / "whole.o")
    whole = (tmp_path / "whole.o").read_bytes()
    (tmp_path / "cut.o").write_bytes(whole[: len(whole) // 2])
    for words, message in (
        (("xyz",), "'xyz' is no file, and no pairs of hexadecimal digits"),
        (("c",), "is no file, and no pairs"),
        (("--start=ten", "c3"), "--start=ten: must be a number of bytes"),
        (("--what", "c3"), "no option '--what'"),
        (("--features",), "no file and no bytes are given"),
        ((str(tmp_path / "elf"),), "not one of x86-64"),
        ((str(tmp_path / "cut.o"),), "is a damaged ELF file"),
        (("--symbol=tree", str(tmp_path / "whole.o")), "has no function 'tree'; did you mean three"),
        (("--symbol=f", str(tmp_path / "bin")), "is no ELF file, and has no symbol 'f'"),
        ((str(tmp_path),), "cannot be read"),
    ):
        assert main(["disasm", *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(4))
def test_damaged_objects_are_refused(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(seed)
    three.save(tmp_path / "f.o")
    whole = (tmp_path / "f.o").read_bytes()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (tmp_path / "g.o").write_bytes(data)
        assert main(["disasm", str(tmp_path / "g.o")]) in (0, 1, 2)
    capsys.readouterr()
