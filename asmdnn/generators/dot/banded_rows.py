"""The code of rows of a convolution one at a time, whose numbers and bands of rows are data; see grouped.py."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import product

from asmdnn.generators.dot.grouped_shape import SHAPE, GroupedRows, Uses
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
    words_of_band,
)
from asmdnn.generators.dot.rows_code import RowsCode
from asmdnn.generators.stepping import held, repeated, unless_zero
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.dot import dot_of
from asmdnn.isa.elements import element_of
from asmdnn.types import f32

SOURCES = 3  # registers that take turns holding a source vector
IN_A_ROW = 4  # general-purpose registers of a row: what is left of it and of kernel rows, and two pointers
OF_EVERY_ROW = (TAP_OF_SRC, ROW_OF_SRC, ROW_OF_DST)  # distances, which registers hold while there are any


def emit_rows(spec: GroupedRows, asm: Assembler) -> None:
    """The kernel of rows."""
    with ExitStack() as parts:
        GroupedRowsCode(spec, asm, parts).emit()
    asm.ret()


class GroupedRowsCode(RowsCode):
    """The emission of one row at a time, for bands that are data."""

    def __init__(self, spec: GroupedRows, asm: Assembler, parts: ExitStack) -> None:
        super().__init__(spec, asm, parts)
        self.dot = dot_of(spec.types, spec.isa, self.v)
        self.shape, self.band = asm.gp.take("shape"), asm.gp.take("band")
        asm.MOV(self.shape, mem(asm.frame, WORD_BYTES * SHAPE))
        self.in_front, self.of_band = list(words_in_front(spec)), list(words_of_band(spec, Band(0, 0, 0)))
        self.epilogue.slots.numbers = [mem(self.shape, place, size=f32.size_bytes) for place in spec.number_places]
        self.held = {name: held(asm, name, self.in_memory(name)) for name in self.names_held()}
        self.kernel_row = spec.of_kernel_row(), len(spec.numbers)  # in front of what it reads
        self.of_dst = spec.isa, spec.dst_pixel_bytes, spec.dst_type, spec.dst_whole, spec.channels

    def names_held(self) -> list[str]:
        """Words in front that stay in registers."""
        spec = self.spec
        loops = [spec.vectors > spec.abreast, spec.planes > 1, any(s.is_counted or s.times > 1 for s in spec.segments)]
        free = self.asm.gp.available - IN_A_ROW - sum(loops)
        return [name for name in OF_EVERY_ROW if name in self.in_front][: max(0, free)]

    def number(self, name: str) -> Register | Pointer:
        """A word in front."""
        return self.held.get(name) or self.in_memory(name)

    def in_memory(self, name: str) -> Pointer:
        return mem(self.shape, WORD_BYTES * self.in_front.index(name), size=WORD_BYTES)

    def band_number(self, name: str) -> Pointer:
        """A word of the band."""
        return mem(self.band, WORD_BYTES * self.of_band.index(name), size=WORD_BYTES)

    @contextmanager
    def counted(self, count: Register | Pointer, name: str, may_be_none: bool = False) -> Iterator[None]:
        """The body as often as a word says."""
        with self.asm.gp.taken(f"{name} left") as left:
            self.asm.MOV(left, count)
            over = unless_zero(self.asm, left, f"no more {name}") if may_be_none else nullcontext()
            with over, self.asm.loop(left, name):
                yield

    def emit(self) -> None:
        """All bands, up to the one without rows."""
        asm, another = self.asm, self.asm.new_label("another band")
        self.start_rows()
        asm.LEA(self.band, mem(self.shape, WORD_BYTES * len(self.in_front)))
        asm.bind(another)
        if FIRST_OF_SRC in self.of_band:
            asm.ADD(self.src, self.band_number(FIRST_OF_SRC))
            asm.ADD(self.weights, self.band_number(FIRST_OF_WEIGHTS))
        with self.counted(self.band_number(ROWS), "rows"):
            self.row()
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
            times = self.number(f"{TIMES} {number}") if segment.is_counted else segment.times
            with repeated(asm, times, "segments"), self.segment(segment):
                self.window(segment)
        asm.ADD(self.src, self.number(ROW_OF_SRC))
        asm.ADD(self.dst, self.number(ROW_OF_DST))

    def window(self, segment: Segment) -> None:
        """Some vectors of channels of the pixels of a segment."""
        spec, asm, v = self.spec, self.asm, self.v
        if spec.rows_ahead and not spec.streaming:
            self.prefetch_dst(segment, rows=1)
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
        asm.MOV(src, self.src)
        asm.MOV(weights, self.weights)
        with repeated(asm, spec.planes, "kernel planes"):
            self.multiply_plane(segment, acc, (src, weights), registers)
            if spec.planes > 1:
                asm.ADD(src, self.band_number(PLANE_OF_SRC))
                asm.ADD(weights, self.band_number(PLANE_OF_WEIGHTS))
        for _ in range(spec.rows_ahead):
            self.prefetch_src(segment, mem(src))
            asm.ADD(src, self.number(TAP_OF_SRC))
        asm.gp.free(src, weights)
        v.registers.free(*registers[len(self.epilogue.spare) :])

    def multiply_plane(
        self,
        segment: Segment,
        acc: list[list[Register]],
        pointers: tuple[Register, Register],
        registers: list[Register],
        rows: str = KERNEL_ROWS,
    ) -> None:
        """The same of as many rows of a plane of the kernel as a word of the band says."""
        spec, asm, (src, weights) = self.spec, self.asm, pointers
        of_row = (self.kernel_row, segment.pixels, segment.low, segment.high, rows)
        with self.counted(self.band_number(rows), rows, may_be_none=True):
            asm.stretch(of_row, partial(self.multiply_rows, spec.uses(segment), acc, pointers, registers))
            asm.ADD(src, self.number(TAP_OF_SRC))
            asm.ADD(weights, spec.weights_row_bytes)

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
        self.dot.multiply(acc, factor, source)

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
