"""The code of ELF64 files for x86-64: executable sections, and the functions in them.

Source: System V ABI, chapter 4 (object files).
"""

import struct
from collections.abc import Iterator
from typing import Final

from asmdnn.errors import InvalidArguments, did_you_mean
from asmdnn.records import dataclass

MAGIC: Final = b"\x7fELF"
_X86_64, _EXECUTE, _FUNC, _SYMTAB, _NOBITS, _RELOCATABLE = 62, 4, 2, (2, 11), 8, 1
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class CodeBytes:
    """Bytes, the address of the first one, and the functions in them: (offset, name)."""

    data: bytes
    address: int
    functions: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class _Function:
    name: str
    section: int
    offset: int
    size: int


def code_of(data: bytes, file: str, symbol: str = "") -> Iterator[CodeBytes]:
    """The executable sections of an ELF file, or the function `symbol`; any other file is code as it is.

    Raises InvalidArguments for a damaged file, for one of another machine, and for a symbol that is not there.
    """
    if not data.startswith(MAGIC):
        if symbol:
            raise InvalidArguments(f"{file} is no ELF file, and has no symbol {symbol!r}: give --start and --stop.")
        yield CodeBytes(data, 0, ())
        return
    try:
        yield from _of_elf(data, file, symbol)
    except InvalidArguments:  # which is a ValueError
        raise
    except (struct.error, ValueError, IndexError):
        raise InvalidArguments(f"{file} is a damaged ELF file: its tables lead out of it.") from None


def _of_elf(data: bytes, file: str, symbol: str) -> Iterator[CodeBytes]:
    identity, kind, machine, *_, table, _, _, _, _, size, count, _ = _HEADER.unpack_from(data)
    if identity[4:6] != b"\x02\x01" or machine != _X86_64 or size not in (0, _SECTION.size):
        raise InvalidArguments(f"{file} is an ELF file, but not one of x86-64.")
    sections = [_SECTION.unpack_from(data, table + i * size) for i in range(count)]
    functions = list(_functions(data, sections, moved=kind != _RELOCATABLE))
    if symbol:
        found = [x for x in functions if x.name == symbol]
        if not found:
            known = [x.name for x in functions]
            raise InvalidArguments(f"{file} has no function {symbol!r}; {did_you_mean(symbol, known[:20])}")
        one = found[0]
        body = _body(data, sections[one.section])
        yield CodeBytes(body[one.offset : one.offset + one.size], sections[one.section][3] + one.offset, ((0, symbol),))
        return
    for i, section in enumerate(sections):
        if section[2] & _EXECUTE and section[1] != _NOBITS:
            own = tuple(sorted((x.offset, x.name) for x in functions if x.section == i))
            yield CodeBytes(_body(data, section), section[3], own)


def _body(data: bytes, section: tuple[int, ...]) -> bytes:
    _, _, _, _, offset, size, *_ = section
    if offset + size > len(data):
        raise ValueError
    return data[offset : offset + size]


def _functions(data: bytes, sections: "list[tuple[int, ...]]", *, moved: bool) -> Iterator[_Function]:
    """moved: whether values of symbols are addresses, as in programs and libraries."""
    for section in sections:
        if section[1] in _SYMTAB:
            table, names = _body(data, section), _body(data, sections[section[6]])
            for name, info, _, index, value, size in _SYMBOL.iter_unpack(table):
                if info & 15 == _FUNC and 0 < index < len(sections):
                    text = names[name : names.index(b"\0", name)].decode(errors="replace")
                    yield _Function(text, index, value - sections[index][3] * moved, size)
