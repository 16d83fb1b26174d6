"""`asmdnn disasm`: bytes, files of bytes, and ELF files, instruction by instruction, as iced-x86 decodes them."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from asmdnn.cli.terminal import show_help
from asmdnn.cli.unknown import unknown
from asmdnn.dump.elf_reader import CodeBytes, code_of
from asmdnn.errors import InvalidArguments
from asmdnn.proof.decoder import fact_at, require_decoder
from asmdnn.records import dataclass

UNKNOWN: Final = 1
MOST_BYTES: Final = 1 << 28
USAGE: Final = """asmdnn disasm [--features] [--symbol=NAME] [--start=N] [--stop=N] FILE | HEX ...
Instructions of machine code of 64 bits, in the words that the library's listings have.  A FILE is bytes, such as
asmdnn dump --format=bin writes, or an ELF object, program or library.  HEX is digits: c5f458c2, or 'c5 f4 58 c2'.
  --features     the CPU features that each instruction needs, and all of them at the end
  --symbol=NAME  one function of an ELF file
  --start=N      the first byte, in the file's code; numbers may be hexadecimal, as 0x40
  --stop=N       the byte after the last one
Exit status 1 if bytes are no instruction: they are printed as db.  Needs iced-x86.
Example: asmdnn disasm --features c5f458c2"""
_HEX: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{2}(?:[\s,]*(?:0x)?[0-9a-fA-F]{2})*)")


@dataclass(slots=True)
class DisasmRequest:
    """What the command line asks for."""

    features: bool = False
    symbol: str = ""
    start: int = 0
    stop: int = -1
    words: tuple[str, ...] = ()


def run(arguments: Sequence[str]) -> int:
    """The exit status.  Raises InvalidArguments, and Unimplemented without iced-x86."""
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE)
        return 0
    request = read(arguments)
    require_decoder("disasm")
    found = [line for code in _codes(request) for line in _lines(code, request)]
    sys.stdout.write("".join(f"{text}\n" for text, _, _ in found))
    if request.features:
        needed = sorted({name for _, features, _ in found for name in features})
        print(f"needs {', '.join(needed) or 'nothing above the 64-bit baseline'}")
    return UNKNOWN if any(unknown for _, _, unknown in found) else 0


def read(arguments: Sequence[str]) -> DisasmRequest:
    """Raises InvalidArguments for an unknown option, or a number that is none."""
    request, words = DisasmRequest(), []
    for word in arguments:
        name, _, value = word.partition("=")
        if word == "--features":
            request.features = True
        elif name == "--symbol" and value:
            request.symbol = value
        elif name in ("--start", "--stop"):
            if not re.fullmatch(r"0x[0-9a-fA-F]{1,12}|[0-9]{1,12}", value):
                raise InvalidArguments(f"disasm: {word}: must be a number of bytes, such as {name}=0x40")
            setattr(request, name[2:], int(value, 0))
        elif word.startswith("-"):
            raise unknown("disasm", word)
        else:
            words.append(word)
    if not words:
        raise InvalidArguments("disasm: no file and no bytes are given: asmdnn disasm FILE, or asmdnn disasm c5f458c2")
    request.words = tuple(words)
    return request


def _codes(request: DisasmRequest) -> Iterator[CodeBytes]:
    """Of files one by one, or of all words as digits."""
    if not any(Path(word).exists() for word in request.words):
        digits = _HEX.fullmatch(" ".join(request.words))
        if digits is None:
            words = " ".join(request.words)
            raise InvalidArguments(f"disasm: '{words}' is no file, and no pairs of hexadecimal digits")
        yield CodeBytes(bytes.fromhex(re.sub(r"0x|[\s,]", "", digits[0])), 0, ())
        return
    for word in request.words:
        try:
            data = Path(word).read_bytes() if Path(word).stat().st_size <= MOST_BYTES else None
        except OSError as error:
            raise InvalidArguments(f"disasm: {word} cannot be read: {error.strerror}") from None
        if data is None:
            raise InvalidArguments(f"disasm: {word} has more than {MOST_BYTES} bytes: give a part of it")
        yield from code_of(data, word, request.symbol)


def _lines(code: CodeBytes, request: DisasmRequest) -> Iterator[tuple[str, frozenset[str], bool]]:
    """(text, features, whether it is no instruction); titles of functions have none."""
    names = dict(code.functions)
    at, stop = request.start, len(code.data) if request.stop < 0 else min(request.stop, len(code.data))
    while at < stop:
        if at in names:
            yield f"{names[at]}:", frozenset(), False
        fact = fact_at(code.data[at:stop], 0)
        if fact is None:
            yield f"{code.address + at:6x}  {code.data[at]:02x}{'':22}db {code.data[at]:#04x}", frozenset(), True
            at += 1
            continue
        data = code.data[at : at + fact.length]
        text = f"{code.address + at:6x}  {data.hex():22}  {fact.text}"
        if request.features and fact.features:
            text = f"{text:72} ; {', '.join(sorted(fact.features))}"
        yield text, fact.features, False
        at += fact.length
