"""A kernel as an ELF64 relocatable object: code with constants, unwind information, two symbols.

Source: System V ABI, chapter 4 (object files), and its AMD64 supplement.
"""

import struct
from collections.abc import Sequence
from typing import Final

from asmdnn.dump.kernel import DumpedKernel
from asmdnn.dump.unwind import eh_frame
from asmdnn.records import dataclass

_FILE_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER: Final = struct.Struct("<IIQQQQIIQQ")
SYMBOL: Final = struct.Struct("<IBBHQQ")
RELOCATION: Final = struct.Struct("<QQq")

_IDENTITY: Final = b"\x7fELF" + bytes((2, 1, 1, 0)) + bytes(8)  # 64 bits, little endian, version 1, System V
_RELOCATABLE, _X86_64, _VERSION = 1, 62, 1
PROGBITS, SYMTAB, STRTAB, RELA, UNWIND = 1, 2, 3, 4, 0x70000001
WRITE, ALLOC, EXECUTE, INFO_LINK = 1, 2, 4, 0x40
LOCAL, GLOBAL = 0 << 4, 1 << 4
OBJECT, FUNC, SECTION = 1, 2, 3
ABSOLUTE_64, RELATIVE_32 = 1, 2  # relocations: R_X86_64_64, R_X86_64_PC32
CODE_ALIGNMENT: Final = 64  # constants are addressed relative to the code, and aligned by up to 64


@dataclass(frozen=True, slots=True)
class Section:
    """link, info: as the ABI has them, by the section's number; the null section has number 0."""

    name: str
    kind: int
    data: bytes | bytearray | memoryview = b""
    flags: int = 0
    alignment: int = 1
    link: int = 0
    info: int = 0
    entry_bytes: int = 0


def relocatable(kernel: DumpedKernel) -> bytes:
    """The object: global function `kernel.symbol`, and a local object `constants` if there are any.

    `cc main.c NAME.o` links it.  The stack stays non-executable.
    """
    text, eh, symtab, strtab = 1, 2, 5, 6
    names = StringTable()
    frames = eh_frame(kernel.listing, kernel.tables)
    pool_bytes = len(kernel.data) - kernel.constants_offset
    section = SYMBOL.pack(0, LOCAL | SECTION, 0, text, 0, 0)
    pool = SYMBOL.pack(names.add("constants"), LOCAL | OBJECT, 0, text, kernel.constants_offset, pool_bytes)
    function = SYMBOL.pack(names.add(kernel.symbol), GLOBAL | FUNC, 0, text, 0, kernel.code_bytes)
    local = [bytes(SYMBOL.size), section, *[pool] * bool(pool_bytes)]
    relocation = RELOCATION.pack(frames.start_field, 1 << 32 | RELATIVE_32, 0)  # against symbol 1, the section
    return elf_file([
        Section(".text", PROGBITS, kernel.data, ALLOC | EXECUTE, CODE_ALIGNMENT),
        Section(".eh_frame", UNWIND, frames.data, ALLOC, 8),
        Section(".rela.eh_frame", RELA, relocation, INFO_LINK, 8, link=symtab, info=eh, entry_bytes=RELOCATION.size),
        Section(".note.GNU-stack", PROGBITS),
        Section(
            ".symtab", SYMTAB, b"".join(local) + function, 0, 8,
            link=strtab, info=len(local), entry_bytes=SYMBOL.size,
        ),
        Section(".strtab", STRTAB, bytes(names.data)),
    ])  # fmt: skip


class StringTable:
    """A string table: names ended by 0, the first one empty."""

    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, name: str) -> int:
        """Where the name starts."""
        offset = len(self.data)
        self.data += name.encode() + b"\0"
        return offset


def elf_file(sections: Sequence[Section]) -> bytes:
    """A relocatable file: header, the sections' bytes, then the table of their headers, in which the first is null."""
    names = StringTable()
    starts = [names.add(section.name) for section in sections]
    starts.append(names.add(".shstrtab"))
    everything = [*sections, Section(".shstrtab", STRTAB, bytes(names.data))]
    body = bytearray(_FILE_HEADER.size)
    headers = [bytes(_SECTION_HEADER.size)]
    for start, s in zip(starts, everything, strict=True):
        body += bytes(-len(body) % s.alignment)
        headers.append(
            _SECTION_HEADER.pack(
                start, s.kind, s.flags, 0, len(body), len(s.data), s.link, s.info, s.alignment, s.entry_bytes
            )
        )
        body += s.data
    body += bytes(-len(body) % 8)
    _FILE_HEADER.pack_into(
        body, 0, _IDENTITY, _RELOCATABLE, _X86_64, _VERSION, 0, 0, len(body), 0, _FILE_HEADER.size, 0, 0,
        _SECTION_HEADER.size, len(headers), len(headers) - 1,
    )  # fmt: skip
    return bytes(body) + b"".join(headers)
