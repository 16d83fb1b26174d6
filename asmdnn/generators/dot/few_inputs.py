"""Rows of a convolution with few input channels: first layers of networks.

    dst[y, x, o] = post_ops(bias[o] + sum over kernel rows r, positions s, inputs i of weights[i, r, s, o] * src[i, ..])

with the arguments, rows and columns of rows of grouped convolutions (grouped.py), but for

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | src_type[rows, columns, inputs] | input i lies input_bytes[i] after its pixel, for all output channels |

Where inputs are planes, at one distance, that is a word of the image, and the pointer goes from one to the next.

A source element is broadcast once and multiplied for all pixels whose windows have it: with 12 pixels and a 3x3 kernel
of stride 1 a kernel row of an input has 14 broadcasts and 3 loads for 36 multiplies.  Kernel positions, inputs and
pixels are in the code, rows and segments are loops of it, so that a first layer of 3 input channels, whose sums have 27
terms, is no row of short calls.
"""

from itertools import pairwise
from typing import ClassVar

from asmdnn.generators.contract import Range
from asmdnn.generators.dot.banded_rows import emit_rows
from asmdnn.generators.dot.grouped_shape import SRC, GroupedRows, without_image
from asmdnn.generators.dot.operands import load_repeated
from asmdnn.generators.dot.row_words import words_of_rows
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.records import dataclass, replace

MOST_HELD = 5  # positions of a kernel row: the weights of all are in registers


@dataclass(frozen=True, slots=True, kw_only=True)
class FewInputsSpec(GroupedRows):
    """Rows whose lanes share their inputs; `group` is the number of inputs, and `src_whole` says nothing."""

    family: ClassVar[str] = "few_inputs"

    input_bytes: tuple[int, ...] = (0,)

    @property
    def held(self) -> int:
        return self.kernel

    @property
    def src_vector_bytes(self) -> int:
        return 0

    @property
    def are_planes(self) -> bool:
        """Whether inputs lie further apart than elements of a pixel, all at one distance."""
        first, *_ = steps = {b - a for a, b in pairwise(self.input_bytes)} or {self.src_type.size_bytes}
        return len(steps) == 1 and first != self.src_type.size_bytes

    @property
    def code_spec(self) -> "FewInputsSpec":
        """What the bytes depend on."""
        spec = without_image(self)
        return replace(spec, input_bytes=(0,) * self.group) if self.are_planes else spec

    @property
    def input_step_bytes(self) -> int | None:
        return self.input_bytes[1] - self.input_bytes[0] if self.are_planes else None

    def words(self) -> tuple[int, ...]:
        return tuple(words_of_rows(self))

    def src_ranges(self, places: set[int]) -> list[Range]:
        """An element of every input."""
        elements = sorted(at + input_bytes for at in places for input_bytes in self.input_bytes)
        return [Range(SRC, at, at + self.src_type.size_bytes) for at in elements]

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 5 arguments and one for each operand of post-ops."""
        emit_rows(self, asm)

    def load_source(self, v: Vector, loads: Lanes, source: Register, at: Pointer, part: int) -> None:
        """The input, once for all."""
        place = self.input_bytes[0 if self.are_planes else part]
        load_repeated(v, element_of(self.src_type), source, at.shifted(place))

    def is_operand(self, loads_whole: bool) -> bool:
        return False
