"""Rows of a depthwise convolution whose lanes have several positions of the kernel side by side in memory.

    dst[y, x, o] = post_ops(bias[o] + sum over rows r, positions s, terms t of weights[r, s, o, t] * src[.., o, t])

with the arguments, rows and columns of rows of grouped convolutions (grouped.py), but for

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src_type[rows, columns, vectors, group] | 4 bytes of each channel; only what is inside is read |
| weights | weights_type[planes, vectors, rows, kernel, lanes, group] | |
| bias    | f32[channels] | of bf16; of integers a bias is a post-op, as sums are |

A phase in front puts `group` pixels that kernel positions reach one after another into 4 bytes of each channel.  So
a lane multiplies them at once, and a kernel has a half or a quarter of its positions.  Words of src meet weights of
bytes, which become words as they are loaded.

Where an odd number of bf16 makes pairs, the second half of the last ones is no position of the kernel.  It has the
weight 0, but src may be infinite there, or NaN, so that a mask takes it away.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import ClassVar, Final

from asmdnn.generators.contract import Range
from asmdnn.generators.dot.banded_rows import GroupedRowsCode
from asmdnn.generators.dot.dot_rows import DotRows, types_of_dots
from asmdnn.generators.dot.grouped_shape import HELD, MOST_HELD, SRC, Uses
from asmdnn.generators.dot.row_cuts import Band, Segment
from asmdnn.generators.dot.row_words import CUT_ROWS, KERNEL_ROWS, words_of_rows
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.dot import GROUP_BYTES, S16, Types, dot_class
from asmdnn.isa.elements import BYTE_PAIRS
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass
from asmdnn.types import s16

FIRST_HALF: Final = 0xFFFF  # of a lane


@dataclass(frozen=True, slots=True, kw_only=True)
class InterleavedRowsSpec(DotRows):
    """Rows of one channel a group; `group` counts what a lane has of it.

    cut_row: the row of the kernel in which pairs have a first half alone, if there is one; cut_column: whether the last
    position of every row has.
    """

    family: ClassVar[str] = "interleaved"

    cut_row: int | None = None
    cut_column: bool = False

    @property
    def types(self) -> Types:
        return S16 if self.src_type == s16 else types_of_dots(self.src_type, self.weights_type)

    @property
    def held(self) -> int:
        return self.kernel if self.kernel <= MOST_HELD else HELD

    def words(self) -> tuple[int, ...]:
        return tuple(words_of_rows(self))

    @property
    def parts(self) -> int:
        return 1

    @property
    def product_registers(self) -> int:
        """That a product goes through."""
        return dot_class(self.types, self.isa).product_registers

    @property
    def own_registers(self) -> int:
        """These, and a mask."""
        return self.product_registers + (self.cut_column or self.cut_row is not None)

    @property
    def position_cycles(self) -> float:
        return (1 + self.product_registers) / 2

    def cut_rows(self, band: Band) -> int | None:
        return None if self.cut_row is None else int(band.first + band.count > self.cut_row)

    @property
    def src_vector_bytes(self) -> int:
        return GROUP_BYTES * lanes_of(self.isa)

    @property
    def weights_vector_size_bytes(self) -> int:
        return self.group * self.weights_type.size_bytes * lanes_of(self.isa)

    def src_ranges(self, places: set[int]) -> list[Range]:
        """Whole vectors, or the real channels."""
        size = self.group * self.width_bytes(self.src_whole, self.src_type)
        return [Range(SRC, at, at + size) for at in sorted(places)]

    def is_operand(self, loads_whole: bool) -> bool:
        return False

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 5 arguments and one for each operand of post-ops."""
        with ExitStack() as parts:
            InterleavedRowsCode(self, asm, parts).emit()
        asm.ret()


class InterleavedRowsCode(GroupedRowsCode):
    """The emission of products of lanes."""

    spec: InterleavedRowsSpec

    def __init__(self, spec: InterleavedRowsSpec, asm: Assembler, parts: ExitStack) -> None:
        super().__init__(spec, asm, parts)
        self.product: list[Register] = self.v.registers.take("product", spec.product_registers)
        self.mask: list[Register] = self.v.registers.take("first halves", spec.own_registers - spec.product_registers)
        self.is_cut = False
        for mask in self.mask:
            self.v.broadcast(mask, asm.const(FIRST_HALF.to_bytes(GROUP_BYTES, "little"), GROUP_BYTES, size=GROUP_BYTES))

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Around the code of pairs without second halves."""
        self.is_cut = True
        yield
        self.is_cut = False

    def multiply_plane(
        self,
        segment: Segment,
        acc: list[list[Register]],
        pointers: tuple[Register, Register],
        registers: list[Register],
        rows: str = KERNEL_ROWS,
    ) -> None:
        super().multiply_plane(segment, acc, pointers, registers, rows)
        if self.spec.cut_row is not None:
            with self.cut():
                super().multiply_plane(segment, acc, pointers, registers, CUT_ROWS)

    def multiply_row(
        self,
        src: Pointer,
        part: int,
        uses: Uses,
        acc: list[Register],
        factors: dict[int, Register],
        sources: list[Register],
    ) -> None:
        last = self.spec.kernel - 1
        if not self.spec.cut_column or last not in factors:
            super().multiply_row(src, part, uses, acc, factors, sources)
            return
        whole = {k: factor for k, factor in factors.items() if k != last}
        super().multiply_row(src, part, uses, acc, whole, sources)
        with self.cut():
            super().multiply_row(src, part, uses, acc, {last: factors[last]}, sources)

    def load_factor(self, factor: Register, at: Pointer) -> None:
        if self.spec.weights_type == self.spec.types.weights:
            self.v.load(factor, at)
        else:
            BYTE_PAIRS.lanes(self.v, self.v).load(factor, at)

    def load_source(self, source: Register, at: Pointer, part: int) -> None:
        at = at.sized(self.v.bytes)
        if self.is_cut and self.loads is self.v:
            self.asm.VANDPS(source, self.mask[0], at)
            return
        self.loads.load(source, at)
        if self.is_cut:
            self.asm.VANDPS(source, self.mask[0], source)

    def multiply_by(self, acc: Register, source: Register | Pointer, factor: Register) -> None:
        """src first, whose bytes have no sign."""
        assert isinstance(source, Register)
        self.dot.accumulate(acc, (source,), (factor,), *self.product or (source,))
