"""The code of rows of a convolution, which all kinds of them have in common: what they multiply is their own."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product

from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.grouped_shape import ARGUMENTS, BIAS, Band, GroupedRows, Segment, Uses
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.pointers import copy_of_word
from asmdnn.generators.functions.postops import OLD_DST
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import vector_of

SOURCES = 3  # registers that take turns holding a source vector


def emit_rows(spec: GroupedRows, asm: Assembler) -> None:
    """The kernel of rows."""
    with ExitStack() as parts:
        RowsCode(spec, asm, parts).emit()
    asm.ret()


class RowsCode:
    """The emission: pointers to the next window, to its pixel of dst, and to what goes with its channels."""

    def __init__(self, spec: GroupedRows, asm: Assembler, parts: ExitStack) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        whole = spec.channels == self.v.lanes
        self.real: Lanes = self.v if whole else parts.enter_context(self.v.parts(1, spec.channels))[0]
        self.loads = self.v if spec.src_whole else self.real
        self.src, self.weights, self.bias, self.dst = self.pointers = [asm.gp.take(name) for name in ARGUMENTS]
        for argument, pointer in enumerate(self.pointers):
            if argument != BIAS or spec.bias:
                asm.MOV(pointer, mem(asm.frame, 8 * argument))
        self.operands = [operand for operand in operands_of(spec.post_ops) if operand is not OLD_DST]
        homes = {operand.argument: copy_of_word(asm, operand.argument) for operand in self.operands}
        self.ending = TileEpilogue(self.v, spec.post_ops, homes, spec.ending_types)
        self.kernel_row = spec.of_kernel_row()
        self.of_dst = spec.isa, spec.dst_pixel_bytes, spec.dst_type, spec.dst_whole, spec.channels

    @property
    def dst_bytes(self) -> int:
        """Of a vector of dst."""
        return self.v.lanes * self.spec.dst_type.size_bytes

    def times(self, count: int, name: str, body: Callable[[], None]) -> None:
        """`body` so often, in a loop if that is more than once."""
        if count == 1:
            body()
            return
        left = self.asm.gp.take(f"{name} left")
        self.asm.MOV(left, count)
        with self.asm.loop(left, name):
            body()
        self.asm.gp.free(left)

    def emit(self) -> None:
        self.asm.role("start")
        if self.spec.padding:
            self.asm.SUB(self.src, self.spec.padding * self.spec.src_pixel_bytes)
        for number, (bands, times) in enumerate(self.spec.rounds()):
            self.times(times, f"rows{number}", lambda bands=bands: self.row(bands))  # type: ignore[misc]

    def row(self, bands: Sequence[Band]) -> None:
        """All segments of output rows, of one of each band; then on to the next ones."""
        spec, together = self.spec, len(bands)
        for segment in spec.segments:
            self.times(segment.times, "segments", lambda segment=segment: self.segment(bands, segment))  # type: ignore[misc]
        self.move(self.src, together * spec.src_row_bytes - spec.width * spec.stride * spec.src_pixel_bytes)
        self.move(self.dst, together * spec.dst_row_bytes - spec.width * spec.dst_pixel_bytes)
        self.move_operands((together - 1) * spec.width, 0)

    def segment(self, bands: Sequence[Band], segment: Segment) -> None:
        """All vectors of channels of some pixels; then on to the next ones."""
        spec = self.spec
        steps = {self.src: spec.src_vector_bytes, self.weights: spec.weights_vector_bytes, self.dst: self.dst_bytes}
        steps |= {self.bias: self.v.bytes} if spec.bias else {}
        times = spec.vectors // spec.abreast

        def vectors() -> None:
            self.window(bands, segment)
            if times > 1:
                for pointer, step in steps.items():
                    self.move(pointer, spec.abreast * step)
                self.move_operands(0, spec.abreast)

        self.times(times, "vectors", vectors)
        back = spec.vectors if times > 1 else 0
        ahead = {self.src: segment.pixels * spec.stride * spec.src_pixel_bytes}
        ahead |= {self.dst: segment.pixels * spec.dst_pixel_bytes}
        for pointer, step in steps.items():
            self.move(pointer, ahead.get(pointer, 0) - back * step)
        self.move_operands(segment.pixels, -back)

    def move(self, pointer: Register, step: int) -> None:
        if step:
            self.asm.ADD(pointer, step)

    def move_operands(self, pixels: int, vectors: int) -> None:
        """On by so many pixels and vectors of channels."""
        for operand in self.operands:
            step = pixels * operand.row_bytes + vectors * operand.vector_bytes
            if step:
                pointer, home = self.asm.gp.take("post-op's operand"), self.ending.homes[operand.argument]
                self.asm.MOV(pointer, home)
                self.asm.ADD(pointer, step)
                self.asm.MOV(home, pointer)
                self.asm.gp.free(pointer)

    def window(self, bands: Sequence[Band], segment: Segment) -> None:
        """Some vectors of channels of the pixels of a segment."""
        spec, asm, v, (band,) = self.spec, self.asm, self.v, bands
        asm.role("start of a segment")
        acc = v.registers.take("acc", spec.abreast, segment.pixels)
        for j, of_vector in enumerate(acc):
            asm.stretch((spec.isa, spec.channels, spec.bias, j), partial(self.start, of_vector, j))
        uses = spec.uses(segment)
        if band.count and uses and spec.planes:
            self.multiply(band, segment, acc)
        asm.role("finish")
        self.ending.emit(self.dst, spec.streaming, lambda: self.finish(acc))

    def finish(self, acc: list[list[Register]]) -> None:
        """Post-ops and stores of a window: pixel by pixel past the caches, so that lines are written at once; else
        vector by vector, and what is stored leaves its registers."""
        if self.ending.streams:
            for p, of_pixel in enumerate(zip(*acc, strict=True)):
                for j, x in enumerate(of_pixel):
                    self.store(x, p, j)
            return
        for j, of_vector in enumerate(acc):
            key = (self.of_dst, self.ending.key, len(of_vector), j)
            self.asm.stretch(key, partial(self.store_all, of_vector, j))
            self.v.registers.free(*of_vector)

    def store_all(self, xs: list[Register], j: int) -> None:
        for p, x in enumerate(xs):
            self.store(x, p, j)

    def store(self, x: Register, p: int, j: int) -> None:
        """What post-ops make of x, as vector j of pixel p."""
        at = mem(self.dst, p * self.spec.dst_pixel_bytes + j * self.dst_bytes, size=self.dst_bytes)
        self.asm.call_it(at, f"dst[{p}, {j}]")
        self.ending.finish(x, p, j, at, self.v if self.spec.dst_whole else self.real, self.real)

    def start(self, acc: list[Register], j: int) -> None:
        """acc[p] = vector j of the bias, or zero."""
        v = self.v
        if not self.spec.bias:
            for x in acc:
                v.zero(x)
            return
        self.real.load(acc[0], mem(self.bias, j * v.bytes, size=v.bytes))
        for x in acc[1:]:
            v.move(x, acc[0])

    def multiply(self, band: Band, segment: Segment, acc: list[list[Register]]) -> None:
        """acc[j][p] += the products of all kernel rows of a band."""
        spec, asm, v, uses = self.spec, self.asm, self.v, self.spec.uses(segment)
        more = max(0, min(spec.held + SOURCES - len(self.ending.spare), v.registers.available))
        registers = [*self.ending.spare, *v.registers.take("weights", more)]
        held, sources = registers[: spec.held], registers[spec.held :]
        src, weights = asm.gp.take("kernel row's src"), asm.gp.take("kernel row's weights")
        asm.LEA(src, mem(self.src, band.first * spec.src_tap_bytes))
        asm.LEA(weights, mem(self.weights, band.first * spec.weights_row_bytes))

        def products() -> None:
            for part, j in product(range(spec.parts), range(spec.abreast)):
                asm.role(f"kernel row, vector {j}, input {part}")
                self.start_part(part)
                start = part * spec.weights_input_bytes + j * spec.weights_vector_bytes
                for begin in range(0, spec.kernel, spec.held):
                    factors = dict(zip(range(begin, spec.kernel), held, strict=False))
                    for k, factor in factors.items():
                        at = mem(weights, start + k * spec.position_bytes, size=spec.weights_vector_size_bytes)
                        self.load_factor(factor, at)
                    row = mem(src, j * spec.src_vector_bytes, size=v.lanes * spec.src_type.size_bytes)
                    self.multiply_row(row, part, uses, acc[j], factors, sources)

        def kernel_row() -> None:
            asm.stretch((self.kernel_row, segment.pixels, segment.low, segment.high), products)
            asm.ADD(src, spec.src_tap_bytes)
            asm.ADD(weights, spec.weights_row_bytes)

        def kernel_plane() -> None:
            self.times(band.count, "kernel rows", kernel_row)
            if spec.planes > 1:
                asm.ADD(src, spec.src_plane_bytes - band.count * spec.src_tap_bytes)
                asm.ADD(weights, spec.weights_plane_bytes - band.count * spec.weights_row_bytes)

        self.times(spec.planes, "kernel planes", kernel_plane)
        asm.gp.free(src, weights)
        v.registers.free(*registers[len(self.ending.spare) :])

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
