"""Reorder blocks that change the element type: rows of elements.

Arguments and formula are those of convert_block.py.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from asmdnn.generators.move.conversion import PACKED, Argument, Converter
from asmdnn.generators.move.convert_block import ConvertBlock
from asmdnn.generators.move.pieces import EIGHT_BYTES, HalfRows, StridedPlace
from asmdnn.generators.stores import if_aligned
from asmdnn.isa.assembler import Assembler, Label
from asmdnn.isa.element import SPARE, Element
from asmdnn.isa.elements import native_element
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import lanes_of, vector_bytes, vector_of
from asmdnn.records import dataclass

AHEAD_BYTES = 1024  # if planners say nothing else
UNROLLED = 8  # vectors of a row
JOINED = 4  # vectors of rows that are joined


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertSpec(ConvertBlock):
    """dst[r, c] = src[r, c]; columns are walked a vector at a time, dense or not.

    streaming: vectors go past the caches if dst is aligned to them; `fits_streaming` says where that may be asked for.
    ahead_bytes: how far ahead lines of a long dst are prefetched.
    joins: rows that are half a vector, and dense, are taken two to a vector, JOINED vectors of them at a time.
    """

    streaming: bool = False
    ahead_bytes: int = AHEAD_BYTES
    joins: bool = False

    @property
    def name(self) -> str:
        ahead = f"_a{self.ahead_bytes}" * (self.ahead_bytes != AHEAD_BYTES)
        return f"convert{'_streaming' * self.streaming}{'_joined' * self.joins}{ahead}_{self.block_name}"

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        registers = v.registers
        x, spare, kept = registers.take("data", 1)[0], registers.take("spare", SPARE), registers.take("zero points", 2)
        left = asm.gp.take("rows left")
        pointers = self.pointers(asm)
        converter = Converter(v, self.conversion, spare, kept)
        packer = self.packer(converter, registers)
        if self.streaming:
            with if_aligned(asm, pointers[Argument.DST], v.bytes, left):
                converter.dense.streaming = True
                self.all_rows(asm, converter, x, pointers, left, packer)
                converter.dense.streaming = False
                asm.ret()
            converter.dense.forget()
        self.all_rows(asm, converter, x, pointers, left, packer)
        asm.ret()
        if packer:
            packer.finish()

    def packer(self, converter: Converter, registers: Any) -> "Packer | None":
        """What stores several vectors at once, if there is one and dst has so many side by side."""
        kind = self.kind_of_packer
        width = JOINED * self.lanes if self.joins else self.columns
        fits = kind and self.dst_steps[1] == self.conversion.sizes[1] and width >= kind.count * self.lanes
        return kind(converter, registers, native_element(self.conversion.dst, self.isa)) if kind and fits else None

    @property
    def kind_of_packer(self) -> "type[PairPacker | BytePacker] | None":
        native = native_element(self.conversion.dst, self.isa)
        return BytePacker if native.is_byte_integer else PairPacker if native.narrows_pairs else None

    @property
    def fits_streaming(self) -> bool:
        """Whether all stores are whole or half vectors that follow one another, of what no sum reads before."""
        kind, size = self.kind_of_packer, self.conversion.sizes[1]
        at_once = self.lanes * (kind.count if kind else 1)
        dense = self.dst_steps == (self.columns * size, size)
        halves = 2 * at_once * size // vector_bytes(self.isa)
        return dense and halves > 0 and self.columns % at_once == 0 and not self.conversion.sum

    @property
    def lanes(self) -> int:
        return lanes_of(self.isa)

    @property
    def is_dense(self) -> bool:
        """Whether elements of a row are side by side, in src and in dst."""
        return (self.src_steps[1], self.dst_steps[1]) == self.conversion.sizes

    @property
    def fits_joined(self) -> bool:
        """Whether rows are dense halves of a vector that make whole vectors, as many as are taken at a time."""
        sizes = self.conversion.sizes
        halves = 2 * self.columns == self.lanes and min(sizes) * self.columns >= EIGHT_BYTES
        whole = self.rows * self.columns % (JOINED * self.lanes) == 0
        return halves and self.is_dense and whole and not self.conversion.sum and not any(self.scale_steps)

    @property
    def dst_is_long(self) -> bool:
        """Whether lines of dst come fast, one after another: stores would wait for them unless they are prefetched."""
        src, dst = self.conversion.sizes
        row_bytes = self.columns * dst
        run_bytes = row_bytes * (self.rows if self.dst_steps[0] == row_bytes else 1)
        return src < dst == self.dst_steps[1] and run_bytes >= self.ahead_bytes

    def all_rows(
        self,
        asm: Assembler,
        converter: Converter,
        x: Any,
        pointers: dict[Argument, Any],
        left: Any,
        packer: "Packer | None" = None,
    ) -> None:
        if self.joins:
            self.joined_rows(asm, converter, x, pointers, left, packer)
            return
        run = UNROLLED * self.lanes
        looped = self.columns // run if self.columns > 2 * run else 0
        inner = [(pointers[a], self.steps(a)[1]) for a in pointers if self.steps(a)[1]]
        together = max(1, min(self.rows, run // self.columns))  # short rows are unrolled
        asm.MOV(left, self.rows // together)
        with asm.loop(left, "rows"):
            if looped:
                with asm.repeated(looped, "blocks left", "blocks"):
                    self.row(converter, x, pointers, 0, run, packer)
                    for pointer, step in inner:
                        asm.ADD(pointer, run * step)
            for r in range(together):
                self.row(converter, x, pointers, r, self.columns - looped * run, packer)
            for argument, pointer in pointers.items():
                row, column = self.steps(argument)
                if step := together * row - looped * run * column:
                    asm.ADD(pointer, step)
        for r in range(self.rows % together):
            self.row(converter, x, pointers, r, self.columns, packer)

    def joined_rows(
        self,
        asm: Assembler,
        converter: Converter,
        x: Any,
        pointers: dict[Argument, Any],
        left: Any,
        packer: "Packer | None",
    ) -> None:
        """All rows, two to a vector."""
        together = JOINED * self.lanes // self.columns
        asm.MOV(left, self.rows // together)
        with asm.loop(left, "rows"):
            for j in range(JOINED):
                r = j * self.lanes // self.columns
                y = packer.data[j % packer.count] if packer else x
                converter.load(y, self.joined(pointers, Argument.SRC, r), self.lanes, self.conversion.src)
                scales = StridedPlace(pointers[Argument.SCALES], 0, 0) if self.conversion.scaled else None
                converter.apply(y, scales, self.joined(pointers, Argument.DST, r), self.lanes)
                if not packer:
                    converter.store(self.joined(pointers, Argument.DST, r), x, self.lanes)
                elif y is packer.data[-1]:
                    first = r - (packer.count - 1) * self.lanes // self.columns
                    packer.store(self.joined(pointers, Argument.DST, first))
            for argument, pointer in pointers.items():
                if step := together * self.steps(argument)[0]:
                    asm.ADD(pointer, step)

    def joined(self, pointers: dict[Argument, Any], argument: Argument, r: int) -> StridedPlace:
        """Where rows from that one on lie."""
        size, row = self.conversion.sizes[argument], self.steps(argument)[0]
        if row == self.columns * size:
            return StridedPlace(pointers[argument], r * row, size)
        return HalfRows(pointers[argument], r * row, 0, width=self.columns, row_bytes=row)

    def row(
        self,
        converter: Converter,
        x: Any,
        pointers: dict[Argument, Any],
        r: int,
        columns: int,
        packer: "Packer | None",
    ) -> None:
        """`columns` elements of the r-th row after the pointers."""
        lanes, at_once = self.lanes, (packer.count if packer else 1) * self.lanes
        packed = columns // at_once * at_once if packer else 0
        for c in range(0, columns, lanes):
            count = min(lanes, columns - c)
            places = {a: StridedPlace(p, self.at(a, r, c), self.steps(a)[1]) for a, p in pointers.items()}
            converter.asm.role(f"row {r}, columns {c}-{c + count - 1}")
            starts_line = self.at(Argument.DST, r, c) % LINE_BYTES == 0
            if self.dst_is_long and starts_line and not converter.dense.streaming:
                converter.asm.PREFETCHT0(places[Argument.DST].at(self.ahead_bytes, 1))
            y = packer.data[c % at_once // lanes] if packer and c < packed else x
            converter.load(y, places[Argument.SRC], count, self.conversion.src)
            converter.apply(y, places.get(Argument.SCALES), places[Argument.DST], count)
            if c >= packed:
                converter.store(places[Argument.DST], x, count)
            elif packer and y is packer.data[-1]:
                first = c + lanes - at_once
                size = self.conversion.sizes[1]
                packer.store(StridedPlace(pointers[Argument.DST], self.at(Argument.DST, r, first), size))


class Packer(Protocol):
    """Registers for conversions of `count` vectors at a time, which take fewer instructions."""

    count: ClassVar[int]
    data: Sequence[Any]

    def store(self, place: StridedPlace) -> None: ...
    def finish(self) -> None:
        """What comes after the code of the kernel."""


class PairPacker:
    """Two vectors at a time to a type whose instruction rounds most numbers; code out of the way rounds the others."""

    count: ClassVar[int] = 2

    def __init__(self, converter: Converter, registers: Any, native: Element) -> None:
        self.converter, self.native = converter, native
        self.data, self.pair = registers.take("pair of data", self.count), registers.take("rounded pair")
        self.others: list[tuple[Label, Label, StridedPlace]] = []

    def store(self, place: StridedPlace) -> None:
        asm, v, (low, high) = self.converter.asm, self.converter.v, self.data
        other, back = asm.new_label("others"), asm.new_label("rounded")
        self.native.narrow_pair(v, self.pair, low, high, other)
        self.converter.store_packed(place, self.pair)
        asm.bind(back)
        self.others.append((other, back, place))

    def finish(self) -> None:
        asm, lanes = self.converter.asm, self.converter.v.lanes
        for other, back, place in self.others:
            asm.bind(other)
            for i, x in enumerate(self.data):
                self.converter.store(place.from_element(i * lanes), x, lanes)
            asm.JMP(back)


class BytePacker:
    """Four vectors at a time to s8 or u8."""

    count: ClassVar[int] = PACKED

    def __init__(self, converter: Converter, registers: Any, native: Element) -> None:
        self.converter = converter
        self.data = registers.take("packed data", PACKED)
        self.largest, self.order = registers.take("largest"), registers.take("order")
        v, order = converter.v, converter.packed_order()
        converter.dst.load_largest(converter.v, self.largest)
        v.load(self.order, v.asm.const(order, v.bytes, size=v.bytes))

    def store(self, place: StridedPlace) -> None:
        self.converter.store_bytes(place, self.data, self.largest, self.order)

    def finish(self) -> None:
        """Nothing."""
