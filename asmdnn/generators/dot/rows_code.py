"""What the code of rows of a convolution has in common: pointers that walk over segments and vectors of channels.

banded_rows.py has rows whose numbers are data, depthwise.py those whose kernel rows are in the code.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product

from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.grouped_shape import BIAS, GroupedRows
from asmdnn.generators.dot.row_cuts import Segment
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.pointers import copy_of_word
from asmdnn.generators.functions.postops import OLD_DST
from asmdnn.generators.stepping import repeated
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vector import Lanes
from asmdnn.isa.vectors import vector_of

POINTERS = ("src", "weights", "bias", "dst")


class RowsCode:
    """The emission: pointers to the next window, to its pixel of dst, and to what goes with its channels."""

    def __init__(self, spec: GroupedRows, asm: Assembler, parts: ExitStack) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        whole = spec.channels == self.v.lanes
        self.real: Lanes = self.v if whole else parts.enter_context(self.v.parts(1, spec.channels))[0]
        self.loads = self.v if spec.src_whole else self.real
        self.src, self.weights, self.bias, self.dst = self.pointers = [asm.gp.take(name) for name in POINTERS]
        for argument, pointer in enumerate(self.pointers):
            if argument != BIAS or spec.bias:
                asm.MOV(pointer, mem(asm.frame, 8 * argument))
        self.operands = [operand for operand in operands_of(spec.post_ops) if operand is not OLD_DST]
        homes = {operand.argument: copy_of_word(asm, operand.argument) for operand in self.operands}
        self.epilogue = TileEpilogue(self.v, spec.chain, homes, spec.epilogue_types)

    @property
    def dst_bytes(self) -> int:
        """Of a vector of dst."""
        return self.v.lanes * self.spec.dst_type.size_bytes

    def start_rows(self) -> None:
        """src to the first window's first column."""
        self.asm.role("start")
        if self.spec.padding:
            self.asm.SUB(self.src, self.spec.padding * self.spec.src_pixel_bytes)

    @contextmanager
    def segment(self, segment: Segment) -> Iterator[None]:
        """Around the code for some vectors of channels of some pixels, for all vectors; then on to the next pixels."""
        spec = self.spec
        steps = {self.src: spec.src_vector_bytes, self.weights: spec.weights_vector_bytes, self.dst: self.dst_bytes}
        steps |= {self.bias: self.v.bytes} if spec.bias else {}
        times = spec.vectors // spec.abreast
        with repeated(self.asm, times, "vectors"):
            yield
            if times > 1:
                for pointer, step in steps.items():
                    self.move(pointer, spec.abreast * step)
                self.move_operands(0, spec.abreast)
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
                pointer, home = self.asm.gp.take("post-op's operand"), self.epilogue.homes[operand.argument]
                self.asm.MOV(pointer, home)
                self.asm.ADD(pointer, step)
                self.asm.MOV(home, pointer)
                self.asm.gp.free(pointer)

    def prefetch_dst(self, segment: Segment, rows: int) -> None:
        """Lines that come from beyond L2 one after another would have the next window's stores wait."""
        spec = self.spec
        self.asm.role("prefetch dst")
        for j, p in product(range(rows), range(segment.pixels)):
            for begin in range(0, spec.abreast * self.dst_bytes, LINE_BYTES):
                self.asm.PREFETCHT1(mem(self.dst, j * spec.dst_row_bytes + p * spec.dst_pixel_bytes + begin))

    def prefetch_src(self, segment: Segment, row: Pointer) -> None:
        """A row below this window, which the next one below reads first: as many streams as pixels, which are more than
        a CPU follows by itself."""
        spec = self.spec
        self.asm.role("prefetch src")
        for column in spec.uses(segment):
            for begin in range(0, spec.abreast * spec.src_vector_bytes, LINE_BYTES):
                self.asm.PREFETCHT1(row.shifted(column * spec.src_pixel_bytes + begin))

    def start(self, acc: list[Register], j: int) -> None:
        """acc[p] = vector j of the bias, or zero."""
        v = self.v
        if not self.spec.bias:
            v.zeros(acc)
            return
        self.real.load(acc[0], mem(self.bias, j * v.bytes, size=v.bytes))
        for x in acc[1:]:
            v.move(x, acc[0])
