"""Reorder blocks that change the element type: rows of elements, and transposes of 8 x 8 of them.

| argument | dtype[shape] | what it is |
|---|---|---|
| src            | src type[rows, columns] | steps as the spec says; no other byte is read |
| dst            | dst type[...]           | the same; no other byte is written; read where the conversion has a sum |
| scales         | f32                     | read if scaled; a step of 0 is for all that share one; sum factors behind |
| src_zero_point | s32[1]                  | read if the conversion has it |
| dst_zero_point | s32[1]                  | the same |

The formula is that of conversion.py.  They use AVX2 with F16C, which every supported level has.
"""

from dataclasses import dataclass
from itertools import product
from struct import pack
from typing import Any

from asmdnn.generators.conversion import BYTES_AT_ONCE, LANES, PACKED_ORDER, Argument, Conversion, Converter
from asmdnn.generators.footprint import Footprint, Range
from asmdnn.generators.pieces import Place
from asmdnn.generators.shuffle_body import if_aligned
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.vector import Vector, vector_of

ARGUMENTS = tuple(argument.name.lower() for argument in Argument)
F32_BYTES = 4
VECTOR_BYTES, LINE_BYTES = 32, 64
AHEAD_BYTES = 1024
UNROLLED = 8  # vectors of a row
Steps = tuple[int, int]  # bytes from row to row, from column to column


def ranges(argument: int, rows: int, columns: int, steps: Steps, size: int) -> tuple[Range, ...]:
    """The bytes of all elements; each row as one range where columns are dense."""
    row, column = steps
    if column == size:
        return tuple(Range(argument, r * row, r * row + columns * size) for r in range(rows))
    starts = sorted({r * row + c * column for r in range(rows) for c in range(columns)})
    return tuple(Range(argument, start, start + size) for start in starts)


@dataclass(frozen=True, slots=True)
class Block:
    """What both kernels have: `rows` x `columns` elements, and how far apart they lie in every argument."""

    isa: str
    conversion: Conversion
    rows: int
    columns: int
    src_steps: Steps
    dst_steps: Steps
    scale_steps: Steps = (0, 0)

    @property
    def block_name(self) -> str:
        def apart(steps: Steps, dense: int) -> str:
            return f"{steps[0]}" if steps[1] == dense else f"{steps[0]}by{steps[1]}"

        src_bytes, dst_bytes = self.conversion.sizes
        scales = f"_w{apart(self.scale_steps, 0)}" if self.conversion.scaled else ""
        steps = f"_s{apart(self.src_steps, src_bytes)}_d{apart(self.dst_steps, dst_bytes)}{scales}"
        return f"{self.conversion}_{self.rows}x{self.columns}{steps}__{self.isa}"

    def footprint(self) -> Footprint:
        conversion, shape = self.conversion, (self.rows, self.columns)
        writes = self.writes()
        reads = ranges(Argument.SRC, *shape, self.src_steps, conversion.sizes[0])
        if conversion.sum:
            reads += writes
        if conversion.scaled:
            scales = tuple(dict.fromkeys(ranges(Argument.SCALES, *shape, self.scale_steps, F32_BYTES)))
            behind = conversion.sum_factors
            factors = (Range(x.argument, x.begin_bytes + behind, x.end_bytes + behind) for x in scales if behind)
            reads += (*scales, *factors)
        for used, argument in (
            (conversion.src_zero_point, Argument.SRC_ZERO_POINT),
            (conversion.dst_zero_point, Argument.DST_ZERO_POINT),
        ):
            reads += (Range(argument, 0, 4),) * used
        return Footprint(reads, writes)

    def writes(self) -> tuple[Range, ...]:
        return ranges(Argument.DST, self.rows, self.columns, self.dst_steps, self.conversion.sizes[1])

    def pointers(self, asm: Assembler) -> dict[Argument, Any]:
        """Registers with the addresses of the arguments that move from row to row."""
        used = (Argument.SRC, Argument.DST, Argument.SCALES)[: 3 if self.conversion.scaled else 2]
        found = {argument: asm.gp.take(argument.name.lower()) for argument in used}
        for argument, pointer in found.items():
            asm.MOV(pointer, mem(asm.frame, 8 * argument))
        return found

    def steps(self, argument: Argument) -> Steps:
        return (self.src_steps, self.dst_steps, self.scale_steps)[argument]

    def at(self, argument: Argument, row: int, column: int) -> int:
        row_bytes, column_bytes = self.steps(argument)
        return row * row_bytes + column * column_bytes


@dataclass(frozen=True, slots=True)
class ConvertSpec(Block):
    """dst[r, c] = src[r, c]; columns are walked 8 at a time, dense or not.

    streaming: vectors go past the caches if dst is aligned to 32 bytes; it must be dense, of 4-byte elements, and its
    rows whole vectors.
    """

    streaming: bool = False

    @property
    def name(self) -> str:
        return f"convert{'_streaming' * self.streaming}_{self.block_name}"

    def generate(self, asm: Assembler) -> None:
        registers = vector_of(self.isa, asm).registers
        x, spare, kept = registers.take("data", 1)[0], registers.take("spare", 3), registers.take("zero points", 2)
        left = asm.gp.take("rows left")
        pointers = self.pointers(asm)
        converter = Converter(asm, self.conversion, spare, kept)
        packer = Packer(converter, registers) if self.packs else None
        if self.streaming:
            with if_aligned(asm, pointers[Argument.DST], VECTOR_BYTES, left):
                converter.streaming = True
                self.all_rows(asm, converter, x, pointers, left)
                converter.streaming = False
        self.all_rows(asm, converter, x, pointers, left, packer)
        asm.ret()

    @property
    def packs(self) -> bool:
        """Whether there are 32 dense bytes of dst in a row."""
        return self.conversion.dst in ("s8", "u8") and self.dst_steps[1] == 1 and self.columns >= BYTES_AT_ONCE

    @property
    def dst_is_long(self) -> bool:
        """Whether lines of dst come fast, one behind another: stores would wait for them unless they are prefetched."""
        src, dst = self.conversion.sizes
        return src < dst == self.dst_steps[1] and self.columns * dst >= AHEAD_BYTES

    def all_rows(
        self,
        asm: Assembler,
        converter: Converter,
        x: Any,
        pointers: dict[Argument, Any],
        left: Any,
        packer: "Packer | None" = None,
    ) -> None:
        run = UNROLLED * LANES
        looped = self.columns // run if self.columns > 2 * run else 0
        inner = [(pointers[a], self.steps(a)[1]) for a in pointers if self.steps(a)[1]]
        together = max(1, min(self.rows, run // self.columns))  # short rows are unrolled
        asm.MOV(left, self.rows // together)
        with asm.loop(left, "rows"):
            if looped:
                blocks = asm.gp.take("blocks left")
                asm.MOV(blocks, looped)
                with asm.loop(blocks, "blocks"):
                    self.row(converter, x, pointers, 0, run, packer)
                    for pointer, step in inner:
                        asm.ADD(pointer, run * step)
                asm.gp.free(blocks)
            for r in range(together):
                self.row(converter, x, pointers, r, self.columns - looped * run, packer)
            for argument, pointer in pointers.items():
                row, column = self.steps(argument)
                if step := together * row - looped * run * column:
                    asm.ADD(pointer, step)
        for r in range(self.rows % together):
            self.row(converter, x, pointers, r, self.columns, packer)

    def row(
        self,
        converter: Converter,
        x: Any,
        pointers: dict[Argument, Any],
        r: int,
        columns: int,
        packer: "Packer | None",
    ) -> None:
        """`columns` elements of the r-th row behind the pointers."""
        packed = columns // BYTES_AT_ONCE * BYTES_AT_ONCE if packer else 0
        for c in range(0, columns, LANES):
            count = min(LANES, columns - c)
            places = {a: Place(p, self.at(a, r, c), self.steps(a)[1]) for a, p in pointers.items()}
            converter.asm.role(f"row {r}, columns {c}-{c + count - 1}")
            if self.dst_is_long and c * self.conversion.sizes[1] % LINE_BYTES == 0 and not converter.streaming:
                converter.asm.PREFETCHT0(places[Argument.DST].at(AHEAD_BYTES, 1))
            y = packer.data[c % BYTES_AT_ONCE // LANES] if packer and c < packed else x
            converter.load(y, places[Argument.SRC], count, self.conversion.src)
            converter.apply(y, places.get(Argument.SCALES), places[Argument.DST], count)
            if c >= packed:
                converter.store(places[Argument.DST], x, count)
            elif packer and y is packer.data[-1]:
                first = c + LANES - BYTES_AT_ONCE
                packer.store(Place(pointers[Argument.DST], self.at(Argument.DST, r, first), 1))


class Packer:
    """Registers for conversions of 32 elements to s8 or u8 at a time, which take half the instructions."""

    def __init__(self, converter: Converter, registers: Any) -> None:
        asm, self.converter = converter.asm, converter
        self.data = registers.take("packed data", BYTES_AT_ONCE // LANES)
        self.largest, self.order = registers.take("largest"), registers.take("order")
        asm.VMOVAPS(self.largest, converter.largest(converter.conversion.dst))
        asm.VMOVDQA(self.order, asm.const(pack("<8I", *PACKED_ORDER), VECTOR_BYTES, size=VECTOR_BYTES))

    def store(self, place: Place) -> None:
        self.converter.store_bytes(place, self.data, self.largest, self.order)


@dataclass(frozen=True, slots=True)
class ConvertTransposeSpec(Block):
    """dst[c, r] = src[r, c]: columns dense in src, rows dense in dst; the longer side is looped over, 8 at a time."""

    @property
    def name(self) -> str:
        return f"transpose_{self.block_name}"

    def writes(self) -> tuple[Range, ...]:
        row, column = self.dst_steps
        return ranges(Argument.DST, self.columns, self.rows, (column, row), self.conversion.sizes[1])

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        left = asm.gp.take("blocks left")
        pointers = self.pointers(asm)
        rows, columns = v.registers.take("rows", LANES), v.registers.take("columns", LANES)
        converter = Converter(asm, self.conversion, columns[:3], [])
        by_rows = self.rows > self.columns
        blocks, rest = divmod(self.rows if by_rows else self.columns, LANES)

        def block(extent: int) -> None:
            shape = (extent, self.columns) if by_rows else (self.rows, extent)
            for r, c in product(range(0, shape[0], LANES), range(0, shape[1], LANES)):
                origin = {a: Place(p, self.at(a, r, c), 0) for a, p in pointers.items()}
                square = (min(LANES, shape[0] - r), min(LANES, shape[1] - c))
                self.square(v, converter, rows, columns, origin, square)

        if blocks:
            asm.MOV(left, blocks)
            with asm.loop(left, "blocks"):
                block(LANES)
                for argument, pointer in pointers.items():
                    if step := LANES * self.steps(argument)[0 if by_rows else 1]:
                        asm.ADD(pointer, step)
        if rest:
            block(rest)
        asm.ret()

    def square(
        self,
        v: Vector,
        converter: Converter,
        rows: list[Any],
        columns: list[Any],
        origin: dict[Argument, Place],
        shape: tuple[int, int],
    ) -> None:
        """At most 8 x 8 elements: rows into registers, transposed, converted, out by columns."""
        converter.spare = columns[:3]
        for r in range(shape[0]):
            v.asm.role(f"row {r}")
            converter.load(rows[r], self.moved(origin, Argument.SRC, r, 0, 1), shape[1], self.conversion.src)
        v.asm.role("transpose")
        transpose_8x8(v, rows, columns)
        converter.spare = rows[:3]
        for c in range(shape[1]):
            v.asm.role(f"column {c}")
            dst = self.moved(origin, Argument.DST, 0, c, 0)
            scales = self.moved(origin, Argument.SCALES, 0, c, 0) if self.conversion.scaled else None
            converter.apply(columns[c], scales, dst, shape[0])
            converter.store(dst, columns[c], shape[0])

    def moved(self, origin: dict[Argument, Place], argument: Argument, row: int, column: int, along: int) -> Place:
        """The elements from (row, column) on, along rows (0) or columns (1)."""
        place = origin[argument]
        return Place(place.base, place.offset + self.at(argument, row, column), self.steps(argument)[along])


def transpose_8x8(v: Vector, x: list[Any], t: list[Any]) -> None:
    """t = the transpose of the 8 ymm registers x, which are overwritten: pairs, quads, then halves."""
    asm = v.asm
    for i in range(0, 8, 2):
        asm.VUNPCKLPS(t[i], x[i], x[i + 1])
        asm.VUNPCKHPS(t[i + 1], x[i], x[i + 1])
    for i in (0, 4):
        for j in (0, 1):
            asm.VSHUFPS(x[i + 2 * j], t[i + j], t[i + 2 + j], 0x44)
            asm.VSHUFPS(x[i + 2 * j + 1], t[i + j], t[i + 2 + j], 0xEE)
    for i in range(4):
        asm.VPERM2F128(t[i], x[i], x[i + 4], 0x20)
        asm.VPERM2F128(t[i + 4], x[i], x[i + 4], 0x31)
