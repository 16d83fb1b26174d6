"""The constants after a kernel's code: data, stored once, and tables of places to jump to."""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from asmdnn.isa.label import Label

TABLE_ENTRY_BYTES: Final = 4


class JumpTable(NamedTuple):
    """In the pool at `offset`: for each target its distance from the table's start, an int32."""

    offset: int
    targets: tuple[Label, ...]


class Pool:
    """Collects constants; offsets count from the pool's start, which is a multiple of 64 bytes."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._offsets: dict[tuple[bytes, int], int] = {}
        self.asked: list[tuple[bytes, int]] = []  # the data and alignment of every `add`
        self.tables: list[JumpTable] = []

    def __len__(self) -> int:
        return len(self._data)

    def add(self, data: bytes, align: int) -> int:
        """The offset of `data`, aligned to `align` bytes; equal data is stored once."""
        key = (bytes(data), align)
        self.asked.append(key)
        if key not in self._offsets:
            self._offsets[key] = self._append(data, align)
        return self._offsets[key]

    def constant_at(self, offset: int) -> tuple[tuple[bytes, int], int] | None:
        """The data, with its alignment, that this place is part of, and how far after its start; None in a table."""
        for constant, start in self._offsets.items():
            if start <= offset < start + len(constant[0]):
                return constant, offset - start
        return None

    def add_table(self, targets: Sequence[Label]) -> int:
        """The offset of a new table."""
        offset = self._append(bytes(TABLE_ENTRY_BYTES * len(targets)), TABLE_ENTRY_BYTES)
        self.tables.append(JumpTable(offset, tuple(targets)))
        return offset

    def data(self, start: int, offsets: Sequence[int]) -> bytes:
        """The bytes, for a pool that lies `start` bytes after the code's first, with pieces of code at `offsets`."""
        filled = bytearray(self._data)
        for table in self.tables:
            distances = [offsets[target.piece] - (start + table.offset) for target in table.targets]
            struct.pack_into(f"<{len(distances)}i", filled, table.offset, *distances)
        return bytes(filled)

    def _append(self, data: bytes, align: int) -> int:
        self._data += bytes(-len(self._data) % align)
        offset = len(self._data)
        self._data += data
        return offset
