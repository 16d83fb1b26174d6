"""Loads and stores of a few elements, dense or apart, that touch no other byte."""

from collections.abc import Iterator
from typing import Any

from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dense import QUARTER_BYTES, Dense
from asmdnn.isa.pieces import extract, insert, load_bytes, store_bytes
from asmdnn.records import dataclass, replace

EIGHT_BYTES = 8


@dataclass(frozen=True, slots=True)
class StridedPlace:
    """Elements in memory: from base + index + offset bytes on, `step` bytes apart."""

    base: Register
    offset: int
    step: int
    index: Register | None = None

    def at(self, offset_bytes: int, size: int) -> Any:
        """Memory operand of `size` bytes, that far after the first element."""
        return mem(self.base, self.offset + offset_bytes, index=self.index, size=size)

    def from_element(self, number: int) -> "StridedPlace":
        return StridedPlace(self.base, self.offset + number * self.step, self.step, self.index)


@dataclass(frozen=True, slots=True)
class HalfRows(StridedPlace):
    """Short rows of `width` dense elements one after another, `row_bytes` apart; step is 0, so that nobody takes them
    for dense."""

    width: int = 0
    row_bytes: int = 0

    def from_element(self, number: int) -> "HalfRows":
        return replace(self, offset=self.offset + number // self.width * self.row_bytes)

    def rows(self, count: int) -> Iterator[tuple[int, Pointer]]:
        """The number, and the place, of each that so many elements are of."""
        for r in range(count // self.width):
            yield r, self.at(r * self.row_bytes, 1)


def load_joined(dense: Dense, x: Register, place: HalfRows, count: int, size: int) -> None:
    """Whole rows of 8, 16 or 32 bytes."""
    for r, source in place.rows(count):
        if place.width * size == EIGHT_BYTES and r:
            insert(dense.asm, x.xmm, source.sized(EIGHT_BYTES), EIGHT_BYTES, r)
        elif place.width * size > QUARTER_BYTES and r:
            dense.asm.VINSERTF64X4(x, x, source.sized(2 * QUARTER_BYTES), r)
        elif place.width * size == QUARTER_BYTES:
            dense.load(x, source, QUARTER_BYTES, r)
        else:
            dense.load_run(x, source, place.width * size)


def store_joined(dense: Dense, place: HalfRows, x: Register, count: int, size: int) -> None:
    """The same."""
    row, part = place.width * size, x
    for r, target in place.rows(count):
        quarter, within = divmod(r * row, QUARTER_BYTES)
        if row >= QUARTER_BYTES:
            dense.store(target, x, row, quarter)
        else:
            if quarter and not within:
                part = dense.spare
                dense.extract(part.xmm, x, quarter)
            extract(dense.asm, target.sized(row), part.xmm, row, within // row)


def load_elements(dense: Dense, x: Register, place: StridedPlace, count: int, size: int) -> None:
    """`count` elements of `size` bytes into the low end of a vector; what is after them is undefined.  The spare
    register of `dense` is overwritten."""
    if isinstance(place, HalfRows):
        load_joined(dense, x, place, count, size)
        return
    if place.step == size:
        dense.load_run(x, place.at(0, size), count * size)
        return
    fit = QUARTER_BYTES // size
    for quarter, first in enumerate(range(0, count, fit)):
        part = dense.spare if quarter else x
        load_part(dense.asm, part.xmm, place.from_element(first), min(fit, count - first), size)
        if quarter:
            dense.insert(x, part, quarter)


def load_part(asm: Assembler, x: Register, place: StridedPlace, count: int, size: int) -> None:
    if place.step == size:
        load_bytes(asm, x, place.at(0, size), count * size)
        return
    asm.VPXOR(x, x, x)
    for lane in range(count):
        insert(asm, x, place.at(lane * place.step, size), size, lane)


def store_elements(dense: Dense, place: StridedPlace, x: Register, count: int, size: int) -> None:
    """The first `count` elements of a vector; the spare register of `dense` is overwritten."""
    if isinstance(place, HalfRows):
        store_joined(dense, place, x, count, size)
        return
    if place.step == size:
        dense.store_run(place.at(0, size), x, count * size)
        return
    fit = QUARTER_BYTES // size
    for quarter, first in enumerate(range(0, count, fit)):
        part = dense.spare if quarter else x
        if quarter:
            dense.extract(part.xmm, x, quarter)
        store_part(dense.asm, place.from_element(first), part.xmm, min(fit, count - first), size)


def store_part(asm: Assembler, place: StridedPlace, x: Register, count: int, size: int) -> None:
    if place.step == size:
        store_bytes(asm, place.at(0, size), x, count * size)
        return
    for lane in range(count):
        extract(asm, place.at(lane * place.step, size), x, size, lane)
