"""Rows of a convolution whose groups have few channels: depthwise, or several groups side by side in a vector.

    dst[y, x, o] = post_ops(bias[o] + sum over kernel rows r, positions s, inputs i of weights[i, r, s, o] * src[..])

with src's row y * stride + r * dilation, its column x * stride + s * dilation - padding, and input i of o's group.

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src_type[rows, columns, vectors] | see below; only what is inside the image is read |
| weights | weights_type[planes, vectors, group, rows, kernel, lanes] | at weights_*_bytes, else positions dense |
| bias    | f32[channels]  | nothing past the channels is read |
| dst     | dst_type[rows, width, vectors] | at dst_row_bytes and dst_pixel_bytes; only written, but for sums |
| shape   | int64[...] | distances, bands of rows, how often segments come: row_words.py |
| 5, 6 .. | operand_types, f32 | operands of post-ops: pixels in raster order at row_bytes; of the real channels |

Floats of 16 bits become f32 as they are loaded, which is what is multiplied and summed.
src points to the first pixel of the row where the first output row's window begins, which may be outside the image.
Weights are zero after the last channel.  With three axes kernel rows lie in several planes; src and weights point into
the first one that is inside, and all planes of a call are.
A segment's pixels are accumulated in registers.  For every kernel row its weights are held in registers, and each
source vector is loaded once and used by all pixels whose windows have it: 14 loads for 36 multiplies with 12 pixels of
a 3x3 kernel.  A lane needs all inputs of its group: they come by shuffles of the source vector (Vector.spread), each
used as often, and no lane is wasted.  Which columns lie in the padding is known from segments, in the code, and which
rows from bands, in the words of `shape`, so that padding is never read.  The code serves images of any size whose rows
are cut into the same segments.  So that rows of many widths are, the second segment may begin in what the first one has
done, and computes it again.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import product
from typing import ClassVar

from asmdnn.generators.contract import Range
from asmdnn.generators.dot.grouped_shape import HELD, MOST_HELD, SHAPE, SRC, GroupedRows, Uses
from asmdnn.generators.dot.operands import load_repeated
from asmdnn.generators.dot.row_cuts import Band, Segment
from asmdnn.generators.dot.row_words import (
    BACK_IN_DST,
    BACK_IN_SRC,
    FIRST_OF_SRC,
    FIRST_OF_WEIGHTS,
    INPUT_OF_SRC,
    KERNEL_ROWS,
    PLANE_OF_SRC,
    PLANE_OF_WEIGHTS,
    ROW_OF_DST,
    ROW_OF_SRC,
    ROWS,
    TAP_OF_SRC,
    TIMES,
    WORD_BYTES,
    words_in_front,
    words_of,
    words_of_band,
)
from asmdnn.generators.dot.rows_code import RowsCode
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass
from asmdnn.types import f32

SOURCES = 3  # registers that take turns holding a source vector


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRowsSpec(GroupedRows):
    """Rows whose lanes find their inputs in the lanes of their group."""

    family: ClassVar[str] = "grouped"

    @property
    def held(self) -> int:
        return self.kernel if self.kernel <= MOST_HELD else HELD

    @property
    def src_vector_bytes(self) -> int:
        return self.src_type.size_bytes * lanes_of(self.isa)

    def words(self) -> tuple[int, ...]:
        return tuple(words_of(self))

    def src_ranges(self, places: set[int]) -> list[Range]:
        """Whole vectors, or the real channels."""
        return [Range(SRC, at, at + self.width_bytes(self.src_whole, self.src_type)) for at in sorted(places)]

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 5 arguments and one for each operand of post-ops."""
        emit_rows(self, asm)

    def load_source(self, v: Vector, loads: Lanes, source: Register, at: Pointer, part: int) -> None:
        """Input `part` of their groups."""
        element = element_of(self.src_type)
        if self.group == v.lanes:
            load_repeated(v, element, source, at.shifted(element.size_bytes * part))
        elif self.group > 1 and loads is v and self.src_type == f32:
            v.spread(source, at, self.group, part)
        else:
            element.load(v, source, at, loads)
            if self.group > 1:
                v.spread(source, source, self.group, part)

    def is_operand(self, loads_whole: bool) -> bool:
        return self.group == 1 and loads_whole and self.src_type == f32


def emit_rows(spec: GroupedRows, asm: Assembler) -> None:
    """The kernel of rows."""
    with ExitStack() as parts:
        GroupedRowsCode(spec, asm, parts).emit()
    asm.ret()


class GroupedRowsCode(RowsCode):
    """The emission of one row at a time, for bands that are data."""

    def __init__(self, spec: GroupedRows, asm: Assembler, parts: ExitStack) -> None:
        super().__init__(spec, asm, parts)
        self.shape, self.band = asm.gp.take("shape"), asm.gp.take("band")
        asm.MOV(self.shape, mem(asm.frame, WORD_BYTES * SHAPE))
        self.in_front, self.of_band = list(words_in_front(spec)), list(words_of_band(spec, Band(0, 0, 0)))
        self.epilogue.slots.numbers = [mem(self.shape, place, size=f32.size_bytes) for place in spec.number_places]
        self.kernel_row = spec.of_kernel_row(), len(spec.numbers)  # in front of what it reads
        self.of_dst = spec.isa, spec.dst_pixel_bytes, spec.dst_type, spec.dst_whole, spec.channels

    def number(self, name: str) -> Pointer:
        """A word in front."""
        return mem(self.shape, WORD_BYTES * self.in_front.index(name), size=WORD_BYTES)

    def band_number(self, name: str) -> Pointer:
        """A word of the band."""
        return mem(self.band, WORD_BYTES * self.of_band.index(name), size=WORD_BYTES)

    def counted(self, count: Pointer, name: str, body: Callable[[], None], may_be_none: bool = False) -> None:
        """`body` as often as a word says."""
        asm, left, done = self.asm, self.asm.gp.take(f"{name} left"), self.asm.new_label(f"no more {name}")
        asm.MOV(left, count)
        if may_be_none:
            asm.TEST(left, left)
            asm.JZ(done)
        with asm.loop(left, name):
            body()
        asm.bind(done)
        asm.gp.free(left)

    def emit(self) -> None:
        """All bands, up to the one without rows."""
        asm, another = self.asm, self.asm.new_label("another band")
        self.start_rows()
        asm.LEA(self.band, mem(self.shape, WORD_BYTES * len(self.in_front)))
        asm.bind(another)
        self.counted(self.band_number(ROWS), "rows", self.row)
        asm.role("next band")
        asm.ADD(self.band, WORD_BYTES * len(self.of_band))
        with asm.gp.taken("rows of the next band") as rows:
            asm.MOV(rows, self.band_number(ROWS))
            asm.TEST(rows, rows)
        asm.JNZ(another)

    def row(self) -> None:
        """All segments of an output row; then on to the next one."""
        asm, spec = self.asm, self.spec
        for number, segment in enumerate(spec.segments):
            if number == 1:
                asm.SUB(self.src, self.number(BACK_IN_SRC))
                asm.SUB(self.dst, self.number(BACK_IN_DST))
            whole = partial(self.segment, segment, partial(self.window, segment))
            if segment.is_counted:
                self.counted(self.number(f"{TIMES} {number}"), "segments", whole)
            else:
                self.times(segment.times, "segments", whole)
        asm.ADD(self.src, self.number(ROW_OF_SRC))
        asm.ADD(self.dst, self.number(ROW_OF_DST))

    def window(self, segment: Segment) -> None:
        """Some vectors of channels of the pixels of a segment."""
        spec, asm, v = self.spec, self.asm, self.v
        asm.role("start of a segment")
        acc = v.registers.take("acc", spec.abreast, segment.pixels)
        for j, of_vector in enumerate(acc):
            asm.stretch((spec.isa, spec.channels, spec.bias, j), partial(self.start, of_vector, j))
        if spec.uses(segment) and spec.planes:
            self.multiply(segment, acc)
        asm.role("finish")
        self.epilogue.emit(self.dst, spec.streaming, lambda: self.finish(acc))

    def finish(self, acc: list[list[Register]]) -> None:
        """Post-ops and stores of a window: pixel by pixel past the caches, so that lines are written at once; else
        vector by vector, and what is stored leaves its registers."""
        if self.epilogue.streams:
            for p, of_pixel in enumerate(zip(*acc, strict=True)):
                for j, x in enumerate(of_pixel):
                    self.store(x, p, j)
            return
        for j, of_vector in enumerate(acc):
            key = (self.of_dst, self.epilogue.key, len(of_vector), j)
            self.asm.stretch(key, partial(self.store_all, of_vector, j))
            self.v.registers.free(*of_vector)

    def store_all(self, xs: list[Register], j: int) -> None:
        for p, x in enumerate(xs):
            self.store(x, p, j)

    def store(self, x: Register, p: int, j: int) -> None:
        """What post-ops make of x, as vector j of pixel p."""
        at = mem(self.dst, p * self.spec.dst_pixel_bytes + j * self.dst_bytes, size=self.dst_bytes)
        self.asm.call_it(at, f"dst[{p}, {j}]")
        self.epilogue.finish(x, p, j, at, self.v if self.spec.dst_whole else self.real, self.real)

    def multiply(self, segment: Segment, acc: list[list[Register]]) -> None:
        """acc[j][p] += the products of all kernel rows of a band."""
        spec, asm, v = self.spec, self.asm, self.v
        more = max(0, min(spec.held + SOURCES - len(self.epilogue.spare), v.registers.available))
        registers = [*self.epilogue.spare, *v.registers.take("weights", more)]
        src, weights = asm.gp.take("kernel row's src"), asm.gp.take("kernel row's weights")
        for pointer, window, first in ((src, self.src, FIRST_OF_SRC), (weights, self.weights, FIRST_OF_WEIGHTS)):
            asm.MOV(pointer, window)
            asm.ADD(pointer, self.band_number(first))

        def kernel_row() -> None:
            of_row = (self.kernel_row, segment.pixels, segment.low, segment.high)
            asm.stretch(of_row, partial(self.multiply_rows, spec.uses(segment), acc, (src, weights), registers))
            asm.ADD(src, self.number(TAP_OF_SRC))
            asm.ADD(weights, spec.weights_row_bytes)

        def kernel_plane() -> None:
            self.counted(self.band_number(KERNEL_ROWS), "kernel rows", kernel_row, may_be_none=True)
            if spec.planes > 1:
                asm.ADD(src, self.band_number(PLANE_OF_SRC))
                asm.ADD(weights, self.band_number(PLANE_OF_WEIGHTS))

        self.times(spec.planes, "kernel planes", kernel_plane)
        asm.gp.free(src, weights)
        v.registers.free(*registers[len(self.epilogue.spare) :])

    def multiply_rows(
        self,
        uses: Uses,
        acc: list[list[Register]],
        pointers: tuple[Register, Register],
        registers: list[Register],
    ) -> None:
        """acc[j][p] += the products of a kernel row, of all inputs of a group and vectors abreast."""
        spec, asm, v, (src, weights) = self.spec, self.asm, self.v, pointers
        held, sources = registers[: spec.held], registers[spec.held :]
        for part, j in product(range(spec.parts), range(spec.abreast)):
            asm.role(f"kernel row, vector {j}, input {part}")
            if part and not j and spec.input_step_bytes is not None:
                asm.ADD(src, self.number(INPUT_OF_SRC))
            self.start_part(part)
            start = part * spec.weights_input_bytes + j * spec.weights_vector_bytes
            for begin in range(0, spec.kernel, spec.held):
                factors = dict(zip(range(begin, spec.kernel), held, strict=False))
                for k, factor in factors.items():
                    at = mem(weights, start + k * spec.position_bytes, size=spec.weights_vector_size_bytes)
                    self.load_factor(factor, at)
                row = mem(src, j * spec.src_vector_bytes, size=v.lanes * spec.src_type.size_bytes)
                self.multiply_row(row, part, uses, acc[j], factors, sources)

    def start_part(self, part: int) -> None:
        """What input `part` needs in registers for all columns."""

    def load_factor(self, factor: Register, at: Pointer) -> None:
        """A vector of weights as it is multiplied."""
        element_of(self.spec.weights_type).load(self.v, factor, at, self.v)

    def load_source(self, source: Register, at: Pointer, part: int) -> None:
        """Input `part` of every lane's group as it is multiplied."""
        self.spec.load_source(self.v, self.loads, source, at, part)

    def multiply_by(self, acc: Register, source: Register | Pointer, factor: Register) -> None:
        """acc += factor * source."""
        self.v.fma(acc, factor, source)

    def multiply_row(
        self,
        src: Pointer,
        part: int,
        uses: Uses,
        acc: list[Register],
        factors: dict[int, Register],
        sources: list[Register],
    ) -> None:
        """acc[p] += factors[k] * src[column] for all uses; a vector that one pixel needs is the multiply's operand."""
        spec, asm = self.spec, self.asm
        for number, (column, all_pairs) in enumerate(uses.items()):
            pairs = [(pixel, k) for pixel, k in all_pairs if k in factors]
            if not pairs:
                continue
            at = src.shifted(column * spec.src_pixel_bytes)
            asm.call_it(at, f"src[{column}]")
            source: Register | Pointer = at
            if len(pairs) > 1 or not spec.is_operand(self.loads is self.v):
                source = sources[number % len(sources)]
                self.load_source(source, at, part)
            for pixel, k in pairs:
                self.multiply_by(acc[pixel], source, factors[k])
