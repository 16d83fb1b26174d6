"""An object file while it is filled: code, constant data, and tables with addresses that the linker fills in."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asmdnn.dump import elf
from asmdnn.dump.elf import Section, StringTable
from asmdnn.jit.unwind import eh_frame

TEXT, CONSTANTS, WEIGHTS, TABLES = 1, 2, 3, 4  # sections, as the file numbers them
UNWINDING, SYMBOLS, NAMES = 7, 9, 10
WORD: Final = 8
PAGE_BYTES: Final = 4096
MOST_BYTES: Final = 1 << 30  # of all, so that code reaches data by 32 bits wherever the linker puts them


class Reference(NamedTuple):
    """A place in a section; in a table, a word that becomes its address."""

    section: int
    offset: int


NOWHERE: Final = 0  # in the place of an address
Words = Sequence[int | Reference]


class ObjectImage:
    """What is put is given a place, equal texts and the same array the same one."""

    def __init__(self) -> None:
        self.data = {TEXT: bytearray(), CONSTANTS: bytearray(), TABLES: bytearray()}
        self.weights: memoryview = memoryview(b"")
        self.functions: list[tuple[str, int, int]] = []
        self._relocations = bytearray()
        self._known: dict[object, Reference] = {}
        self._kept: list[object] = []  # arrays that are known by their identity

    def put(self, section: int, data: bytes, alignment: int = WORD) -> Reference:
        room = self.data[section]
        room += bytes(-len(room) % alignment)
        at = len(room)
        room += data
        return Reference(section, at)

    def function(self, name: str, code: bytes) -> Reference:
        """A kernel; its name is for debuggers and profilers."""
        place = self.put(TEXT, code, elf.CODE_ALIGNMENT)
        self.functions.append((name, place.offset, len(code)))
        return place

    def text(self, text: str) -> Reference:
        """A string of C."""
        if text not in self._known:
            self._known[text] = self.put(CONSTANTS, text.encode() + b"\0", 1)
        return self._known[text]

    def array(self, array: npt.NDArray[np.generic]) -> Reference:
        """Constant data, at a multiple of 64."""
        if id(array) not in self._known:
            self._known[id(array)] = self.put(CONSTANTS, np.ascontiguousarray(array).tobytes(), elf.CODE_ALIGNMENT)
            self._kept.append(array)
        return self._known[id(array)]

    def blob(self, weights: npt.NDArray[np.uint8]) -> Reference:
        """The weights, which are not copied."""
        self.weights = weights.data.cast("B")
        return Reference(WEIGHTS, 0)

    def words(self, values: Words) -> Reference:
        """A table; words that are places are relocated."""
        numbers = [0 if isinstance(value, Reference) else value for value in values]
        place = self.put(TABLES, np.array(numbers, np.int64).tobytes())
        for i, value in enumerate(values):
            if isinstance(value, Reference):
                at = place.offset + WORD * i
                kind = value.section << 32 | elf.ABSOLUTE_64  # symbol n is that of section n
                self._relocations += elf.RELOCATION.pack(at, kind, value.offset)
        return place

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.data.values())) + len(self.weights)

    def file(self, symbol: str, place: Reference, size: int) -> bytes:
        """The object file, with one global symbol, for a table."""
        names = StringTable()
        sections = [elf.SYMBOL.pack(0, elf.LOCAL | elf.SECTION, 0, n, 0, 0) for n in (TEXT, CONSTANTS, WEIGHTS, TABLES)]
        functions = [
            elf.SYMBOL.pack(names.add(name), elf.LOCAL | elf.FUNC, 0, TEXT, at, count)
            for name, at, count in self.functions
        ]
        network = elf.SYMBOL.pack(names.add(symbol), elf.GLOBAL | elf.OBJECT, 0, place.section, place.offset, size)
        symbols = [bytes(elf.SYMBOL.size), *sections, *functions]
        frames, starts = self.unwinding()
        code, room = elf.ALLOC | elf.EXECUTE, elf.ALLOC | elf.WRITE
        unit = elf.RELOCATION.size
        related = partial(Section, kind=elf.RELA, flags=elf.INFO_LINK, alignment=WORD, link=SYMBOLS, entry_bytes=unit)
        return elf.elf_file([
            Section(".text", elf.PROGBITS, self.data[TEXT], code, elf.CODE_ALIGNMENT),
            Section(".rodata", elf.PROGBITS, self.data[CONSTANTS], elf.ALLOC, elf.CODE_ALIGNMENT),
            Section(".rodata.weights", elf.PROGBITS, self.weights, elf.ALLOC, PAGE_BYTES),
            Section(".data.rel.ro", elf.PROGBITS, self.data[TABLES], room, WORD),
            related(".rela.data.rel.ro", data=self._relocations, info=TABLES),
            Section(".note.GNU-stack", elf.PROGBITS),
            Section(".eh_frame", elf.UNWIND, frames, elf.ALLOC, WORD),
            related(".rela.eh_frame", data=starts, info=UNWINDING),
            Section(
                ".symtab", elf.SYMTAB, b"".join(symbols) + network, alignment=WORD,
                link=NAMES, info=len(symbols), entry_bytes=elf.SYMBOL.size,
            ),
            Section(".strtab", elf.STRTAB, bytes(names.data)),
        ])  # fmt: skip

    def unwinding(self) -> tuple[bytes, bytes]:
        """.eh_frame and its relocations: where callers' registers are, for debuggers and profilers."""
        frames, starts = bytearray(), bytearray()
        for _, at, size in self.functions:
            own = eh_frame(bytes(self.data[TEXT][at : at + size]), 0, 0)[:-4]  # without the end mark
            start_field = len(frames) + int.from_bytes(own[:4], "little") + 12  # after the CIE, length and pointer
            starts += elf.RELOCATION.pack(start_field, TEXT << 32 | elf.RELATIVE_32, at)
            frames += own
        return bytes(frames), bytes(starts)
