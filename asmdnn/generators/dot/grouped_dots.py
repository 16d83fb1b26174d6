"""Rows of a convolution whose groups have few channels, by dot products of several channels of a group at once.

    dst[y, x, o] = post_ops(bias[o] + sum over kernel rows r, positions s, inputs i of weights[i, r, s, o] * src[..])

with the arguments, rows and columns of rows of grouped convolutions (grouped.py), but for

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src_type[rows, columns, vectors] | channels last; only what is inside the image is read |
| weights | weights_type[planes, vectors, group / n, rows, kernel, lanes, n] | n inputs of a group in 4 bytes |
| bias    | f32[channels] | of bf16; of bytes a bias is a post-op, as sums are integers |

A lane holds 4 bytes of its group: a pair of bf16, or four bytes.  A vector of dst's channels has as many channels of
src, which fill a half or a quarter of a register; a permutation of these 4 bytes gives every lane those of its group.
So there are half of f32's multiplies, or a quarter, no lane is wasted, and a permutation serves all positions of a
kernel's row.
"""

from contextlib import ExitStack
from struct import pack
from typing import ClassVar

from asmdnn.generators.dot.banded_rows import GroupedRowsCode
from asmdnn.generators.dot.dot_rows import DotRows
from asmdnn.generators.dot.grouped_shape import HELD, MOST_HELD
from asmdnn.generators.dot.row_words import words_of_rows
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.dot import GROUP_BYTES
from asmdnn.isa.packing import packing_of
from asmdnn.isa.pieces import HALF_BYTES, load_bytes, low_part
from asmdnn.isa.vectors import lanes_of, vector_class
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedDotsSpec(DotRows):
    """Rows whose lanes multiply 4 bytes of their group at a time."""

    family: ClassVar[str] = "grouped_dots"

    @property
    def held(self) -> int:
        return self.kernel if self.kernel <= MOST_HELD else HELD

    def words(self) -> tuple[int, ...]:
        return tuple(words_of_rows(self))

    @property
    def parts(self) -> int:
        return self.group // self.types.group

    @property
    def own_registers(self) -> int:
        """The order of a permutation."""
        return int(not self.repeats)

    @property
    def weights_vector_size_bytes(self) -> int:
        return GROUP_BYTES * lanes_of(self.isa)

    @property
    def repeats(self) -> bool:
        """Whether all lanes are of one group, whose 4 bytes are broadcast."""
        return self.group == lanes_of(self.isa)

    def order(self, part: int) -> bytes:
        """For every lane, which 4 bytes of a vector of src it takes."""
        lanes = range(vector_class(self.isa).bytes // GROUP_BYTES)
        return pack(f"<{len(lanes)}I", *(lane // self.group * self.parts + part for lane in lanes))

    def is_operand(self, loads_whole: bool) -> bool:
        return False

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 5 arguments and one for each operand of post-ops."""
        with ExitStack() as parts:
            GroupedDotsCode(self, asm, parts).emit()
        asm.ret()


class GroupedDotsCode(GroupedRowsCode):
    """The emission of dot products."""

    spec: GroupedDotsSpec

    def __init__(self, spec: GroupedDotsSpec, asm: Assembler, parts: ExitStack) -> None:
        super().__init__(spec, asm, parts)
        self.order: list[Register] = self.v.registers.take("order", spec.own_registers)

    def start_part(self, part: int) -> None:
        for order in self.order:
            self.v.load(order, self.asm.const(self.spec.order(part), self.v.bytes, size=self.v.bytes))

    def load_factor(self, factor: Register, at: Pointer) -> None:
        self.v.load(factor, at)

    def load_source(self, source: Register, at: Pointer, part: int) -> None:
        if self.spec.repeats:
            self.asm.VPBROADCASTD(source, at.shifted(GROUP_BYTES * part).sized(GROUP_BYTES))
            return
        size = self.spec.src_type.size_bytes
        if self.loads is not self.v:
            packing_of(self.v).load(source, at, self.loads, size)
        elif self.spec.src_vector_bytes < HALF_BYTES:
            load_bytes(self.asm, source.xmm, at, self.spec.src_vector_bytes)
        else:
            self.asm.VMOVUPS(low_part(source, size), at.sized(self.spec.src_vector_bytes))
        (order,) = self.order
        self.asm.VPERMD(source, order, source)

    def multiply_by(self, acc: Register, source: Register | Pointer, factor: Register) -> None:
        """The other way round: dots take src first, whose bytes may have no sign."""
        assert isinstance(source, Register)
        self.dot.multiply(acc, source, factor)
