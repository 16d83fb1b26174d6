"""An ELF file that names the kernels of a running process, for `add-symbol-file` of gdb.

It has no code: a section without bytes for every kernel says where it lies, .symtab names it, .eh_frame says how to
unwind through it.  Source: System V ABI, chapter 4 (object files), and its AMD64 supplement.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from asmdnn.jit.unwind import eh_frame

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_IDENTITY: Final = b"\x7fELF" + bytes((2, 1, 1, 0)) + bytes(8)  # 64 bits, little endian, version 1, System V
_EXECUTABLE, _X86_64 = 2, 62
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS = 1, 2, 3, 8
_ALLOC, _EXECINSTR = 2, 4
_GLOBAL_FUNCTION: Final = 1 << 4 | 2
_ALIGNMENT_BYTES = 64


class KernelSymbol(NamedTuple):
    """A kernel in memory."""

    name: str
    address: int
    code: bytes


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    address: int
    data: bytes
    size_bytes: int
    link: int = 0
    info: int = 0
    entry_bytes: int = 0


def symbol_file(kernels: Sequence[KernelSymbol]) -> bytes:
    """The bytes of the file; sections of kernels come first, so that section i + 1 is kernel i."""
    texts = [
        _Section(".text", _NOBITS, _ALLOC | _EXECINSTR, kernel.address, b"", len(kernel.code)) for kernel in kernels
    ]
    strings, symbols = bytearray(1), bytearray(_SYMBOL.size)
    for i, kernel in enumerate(kernels):
        symbols += _SYMBOL.pack(len(strings), _GLOBAL_FUNCTION, 0, i + 1, kernel.address, len(kernel.code))
        strings += kernel.name.encode() + b"\0"
    frames = b"".join(eh_frame(kernel.code, kernel.address)[:-4] for kernel in kernels) + bytes(4)
    count = len(kernels)
    names = bytearray(1)
    sections = [
        *texts,
        _Section(".eh_frame", _PROGBITS, _ALLOC, 0, frames, len(frames)),
        _Section(
            name=".symtab",
            kind=_SYMTAB,
            flags=0,
            address=0,
            data=bytes(symbols),
            size_bytes=len(symbols),
            link=count + 3,
            info=1,
            entry_bytes=_SYMBOL.size,
        ),
        _Section(".strtab", _STRTAB, 0, 0, bytes(strings), len(strings)),
        _Section(".shstrtab", _STRTAB, 0, 0, b"", 0),
    ]
    starts = {}
    for name in dict.fromkeys(section.name for section in sections):
        starts[name] = len(names)
        names += name.encode() + b"\0"
    sections[-1] = sections[-1]._replace(data=bytes(names), size_bytes=len(names))
    body, headers = bytearray(_HEADER.size), bytearray(_SECTION.size)
    for section in sections:
        body += bytes(-len(body) % 8)
        alignment = _ALIGNMENT_BYTES if section.kind == _NOBITS else 8
        headers += _SECTION.pack(
            starts[section.name], section.kind, section.flags, section.address, len(body), section.size_bytes,
            section.link, section.info, alignment, section.entry_bytes,
        )  # fmt: skip
        body += section.data
    body += bytes(-len(body) % 8)
    _HEADER.pack_into(
        body, 0, _IDENTITY, _EXECUTABLE, _X86_64, 1, 0, 0, len(body), 0, _HEADER.size, 0, 0,
        _SECTION.size, len(sections) + 1, len(sections),
    )  # fmt: skip
    return bytes(body + headers)
