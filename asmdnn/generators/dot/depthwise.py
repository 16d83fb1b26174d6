"""Rows of a depthwise convolution by dot products that take several kernel rows in a lane.

    dst[y, x, o] = post_ops(bias[o] + sum over kernel rows r, positions s of weights[r, s, o] * (src[..] - zero_point))

with the arguments, rows and columns of rows of grouped convolutions (grouped.py), but for `shape`, since sizes and
bands are in the code, and

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src_type[rows, columns, vectors] | only what is inside the image is read |
| weights | weights_type[planes, vectors, rows, kernel, lanes] | |
| bias    | f32[channels] | of bf16 |
|         | s32[1] | of bytes: src's zero point, if it has one; a bias is a post-op, as sums are integers |

Of bytes all is modulo 2^32.  Lanes take what consecutive rows have in a column (isa/rows_in_lanes.py).  Where windows
of neighbouring output rows lie a kernel row apart, two output rows are computed together: what was brought into lanes
serves both, with weights that lie a row further down for the second one.  So of 3x3 bytes each output has three
multiplies, one for each column.
What a zero point, or a shift of s8 to u8, adds to the sums is taken away in front: times the sum of the weights that a
pixel meets, which all pixels of a segment share but those at the edges.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import ClassVar

from asmdnn.generators.contract import Range
from asmdnn.generators.dot.depthwise_rows import Factors, RowsOfLanes, alike, balanced, rows_of_lanes
from asmdnn.generators.dot.dot_rows import DotRows
from asmdnn.generators.dot.grouped_shape import BIAS, TAIL_REGISTERS, GroupedRows, Uses
from asmdnn.generators.dot.row_cuts import Band, Segment
from asmdnn.generators.dot.rows_code import RowsCode
from asmdnn.generators.stepping import repeated
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.rows_in_lanes import SPARE, RowsInLanes, rows_in_lanes
from asmdnn.isa.vectors import lanes_of, vector_class
from asmdnn.records import dataclass
from asmdnn.types import s32

LONGEST_KERNEL = 9  # of a row: the weights of all positions are in registers
MOST_ROWS = 64  # of a kernel: all are in the code
MOST_PIXELS = 14  # of a row of a segment
LEAST_PIXELS = 3  # for which two rows are computed together
FINISHED = 5  # pixels whose post-ops share what they read


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthwiseRowsSpec(DotRows):
    """Rows whose lanes take several kernel rows at a time; group is 1, and so is abreast."""

    family: ClassVar[str] = "depthwise"

    has_zero_point: bool = False

    @property
    def held(self) -> int:
        return self.kernel

    @property
    def may_be_abreast(self) -> bool:
        return False

    @property
    def position_cycles(self) -> float:
        return self.terms.position_cycles

    @property
    def terms(self) -> type[RowsInLanes]:
        """How rows come into lanes."""
        found = rows_in_lanes(self.types, self.isa)
        assert found, f"{self.isa} has one term in a lane of {self.types}"
        return found

    @property
    def together(self) -> int:
        """Output rows computed at a time."""
        return 2 if self.src_row_bytes == self.src_tap_bytes and self.pixels_of(2, True) >= LEAST_PIXELS else 1

    def pixels_of(self, together: int, is_whole: bool) -> int:
        """That registers have room for in each of so many rows."""
        v = vector_class(self.isa)
        taken = self.terms.own_registers + TAIL_REGISTERS[v.bytes] * (not is_whole)
        return (v.count - taken - together * self.kernel - SPARE - sources_of(v.count)) // together

    def most_pixels(self, channels: int, width: int) -> int:
        return min(MOST_PIXELS, self.pixels_of(self.together, channels == lanes_of(self.isa)))

    @property
    def code_spec(self) -> "DepthwiseRowsSpec":
        """All of it."""
        return self

    @property
    def is_in_code(self) -> bool:
        return True

    def words(self) -> tuple[int, ...]:
        return ()

    @property
    def sizes(self) -> str:
        return f"{self.rows}x{self.width}"

    def rounds(self) -> Iterator[tuple[tuple[Band, ...], int]]:
        """Neighbours, also where kernel rows that reach them differ."""
        rows = [Band(1, band.first, band.count) for band in self.bands for _ in range(band.rows)]
        neighbours = (tuple(rows[y : y + self.together]) for y in range(0, len(rows), self.together))
        return ((bands, len(list(same))) for bands, same in groupby(neighbours))

    def bias_ranges(self) -> list[Range]:
        if self.bias:
            return GroupedRows.bias_ranges(self)
        shifts = bool(self.planes) and any(self.uses(segment) for segment in self.segments)
        reads = shifts and any(band.count for band in self.bands)
        return [Range(BIAS, 0, s32.size_bytes)] * (self.has_zero_point and reads)

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 5 arguments and one for each operand of post-ops."""
        with ExitStack() as parts:
            DepthwiseRowsCode(self, asm, parts).emit()
        asm.ret()


def sources_of(registers: int) -> int:
    """That take turns holding a column of src."""
    return 2 if registers > 16 else 1


class DepthwiseRowsCode(RowsCode):
    """The emission of one or two rows at a time."""

    spec: DepthwiseRowsSpec

    def __init__(self, spec: DepthwiseRowsSpec, asm: Assembler, parts: ExitStack) -> None:
        super().__init__(spec, asm, parts)
        if spec.has_zero_point:
            asm.MOV(self.bias, mem(asm.frame, 8 * BIAS))
        self.terms = spec.terms(spec.types, self.v)

    def emit(self) -> None:
        """All rows, those of a round in a loop."""
        self.start_rows()
        for number, (bands, times) in enumerate(self.spec.rounds()):
            with repeated(self.asm, times, f"rows{number}"):
                self.row(bands)

    def row(self, bands: Sequence[Band]) -> None:
        """All segments of output rows, of one of each band; then on to the next ones."""
        spec, together = self.spec, len(bands)
        for segment in spec.segments:
            with repeated(self.asm, segment.times, "segments"), self.segment(segment):
                self.window(bands, segment)
        self.move(self.src, together * spec.src_row_bytes - spec.width * spec.stride * spec.src_pixel_bytes)
        self.move(self.dst, together * spec.dst_row_bytes - spec.width * spec.dst_pixel_bytes)
        self.move_operands((together - 1) * spec.width, 0)

    def window(self, bands: Sequence[Band], segment: Segment) -> None:
        spec, asm, v = self.spec, self.asm, self.v
        if spec.rows_ahead:
            self.prefetch_dst(segment, len(bands))
        asm.role("start of a segment")
        acc = v.registers.take("acc", len(bands), segment.pixels)
        self.start([x for of_row in acc for x in of_row], 0)
        uses = spec.uses(segment)
        if any(band.count for band in bands) and uses and spec.planes:
            self.add_products(bands, uses, acc)
        self.prefetch_rows(bands, segment)
        asm.role("finish")
        pixels = [(x, j, p) for j, of_row in enumerate(acc) for p, x in enumerate(of_row)]
        first = 0
        for count in balanced(len(pixels), FINISHED):
            self.finish_some(pixels[first : first + count])
            first += count

    def prefetch_rows(self, bands: Sequence[Band], segment: Segment) -> None:
        """Those of src that the next windows read first."""
        below = max(j + band.first + band.count for j, band in enumerate(bands))
        for row in range(below, below + len(bands) * self.spec.rows_ahead):
            self.prefetch_src(segment, mem(self.src, row * self.spec.src_tap_bytes))

    def finish_some(self, pixels: Sequence[tuple[Register, int, int]]) -> None:
        """Post-ops and stores of registers, each with its row and pixel, which are given back."""
        spec, asm, v = self.spec, self.asm, self.v
        places, xs = [], [x for x, _, _ in pixels]
        for _, j, p in pixels:
            at = mem(self.dst, j * spec.dst_row_bytes + p * spec.dst_pixel_bytes, size=self.dst_bytes)
            asm.call_it(at, f"dst[{j}, {p}]")
            places.append(at)
        rows = [j * spec.width + p for _, j, p in pixels]
        self.epilogue.finish_rows(xs, rows, places, (v if spec.dst_whole else self.real, self.real))
        v.registers.free(*xs)

    def add_products(self, bands: Sequence[Band], uses: Uses, acc: list[list[Register]]) -> None:
        """acc[j][p] += the products of all kernel rows of output row j."""
        spec, asm, v = self.spec, self.asm, self.v
        factors: Factors = v.registers.take("weights", len(acc), spec.kernel)
        more = v.registers.take("columns of src", SPARE + sources_of(v.count) - len(self.epilogue.spare))
        spare, sources = [*self.epilogue.spare, *more][:SPARE], more[SPARE - len(self.epilogue.spare) :]
        src, weights = asm.gp.take("kernel rows' src"), asm.gp.take("kernel rows' weights")
        asm.MOV(src, self.src)
        asm.MOV(weights, self.weights)
        with repeated(asm, spec.planes, "kernel planes"):
            for lanes in rows_of_lanes(bands, self.terms.rows):
                self.load_weights(lanes, weights, factors, spare)
                if spec.has_zero_point or self.terms.shift(spec.src_type):
                    self.take_shift(lanes, uses, acc, factors, spare)
                self.multiply_columns(lanes, src, uses, acc, factors, sources=sources, spare=spare)
            if spec.planes > 1:
                asm.ADD(src, spec.src_plane_bytes)
                asm.ADD(weights, spec.weights_plane_bytes)
        asm.gp.free(src, weights)
        v.registers.free(more, factors)

    def load_weights(self, lanes: RowsOfLanes, weights: Register, factors: Factors, spare: Sequence[Register]) -> None:
        """The weights of every column of the kernel, zeros where an output row has no part in a row of src."""
        spec = self.spec
        self.asm.role("weights")
        for j, (of_row, rows) in enumerate(lanes.pairs(factors)):
            for k, x in enumerate(of_row):
                if j and lanes.are_a_row_apart:  # both have weights
                    self.terms.a_row_down(x, factors[0][k])
                    continue
                column = mem(weights, spec.position_bytes * k)
                at = [None if r is None else column.shifted(r * spec.weights_row_bytes) for r in rows]
                self.terms.weights(x, at, spare)

    def take_shift(
        self, lanes: RowsOfLanes, uses: Uses, acc: list[list[Register]], factors: Factors, spare: Sequence[Register]
    ) -> None:
        """acc[j][p] -= (shift + zero point) * the sum of the weights that the pixel meets."""
        spec, asm, v, shift = self.spec, self.asm, self.v, self.terms.shift(self.spec.src_type)
        total, factor, *others = spare
        asm.role("what is added to src")
        for of_pixels, (of_row, _) in zip(lanes.having(acc), lanes.pairs(factors), strict=True):
            for positions, pixels in alike(uses).items():
                v.zero(total)
                asm.VPBROADCASTD(factor, asm.const(self.terms.one.to_bytes(4, "little"), 4, size=4))
                for k in positions:
                    self.terms.multiply(total, factor, of_row[k], others)
                if spec.has_zero_point:
                    asm.VPBROADCASTD(factor, mem(self.bias, size=4))
                    if shift:
                        asm.VPADDD(factor, factor, v.splat(shift))
                    asm.VPMULLD(total, total, factor)
                else:
                    asm.VPMULLD(total, total, v.splat(shift))
                for p in pixels:
                    asm.VPSUBD(of_pixels[p], of_pixels[p], total)

    def multiply_columns(
        self,
        lanes: RowsOfLanes,
        src: Register,
        uses: Uses,
        acc: list[list[Register]],
        factors: Factors,
        sources: Sequence[Register],
        spare: Sequence[Register],
    ) -> None:
        """acc[j][p] += factors[j][k] . a column of src, for all uses of it."""
        spec, asm = self.spec, self.asm
        asm.role("columns")
        for number, (column, pairs) in enumerate(uses.items()):
            source = sources[number % len(sources)]
            at: list[Pointer | None] = []
            for r in lanes.src:
                at.append(None if r is None else mem(src, r * spec.src_tap_bytes + column * spec.src_pixel_bytes))
                if at[-1] is not None:
                    asm.call_it(at[-1], f"src[{r}, {column}]")
            self.terms.source(source, at, self.loads, spare)
            for of_pixels, (of_row, _) in zip(lanes.having(acc), lanes.pairs(factors), strict=True):
                for pixel, k in pairs:
                    self.terms.multiply(of_pixels[pixel], source, of_row[k], spare)
