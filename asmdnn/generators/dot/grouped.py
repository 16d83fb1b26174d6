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
used as often, and no lane is wasted.  Several results of an input are lanes that read one element (Vector.repeat).
Which columns lie in the padding is known from segments, in the code, and which rows from bands, in the words of
`shape`, so that padding is never read.  The code serves images of any size whose rows are cut into the same segments.
So that rows of many widths are, the second segment may begin in what the first one has done, and computes it again.
"""

from typing import ClassVar

from asmdnn.generators.contract import Range
from asmdnn.generators.dot.banded_rows import emit_rows
from asmdnn.generators.dot.grouped_shape import HELD, MOST_HELD, SRC, GroupedRows
from asmdnn.generators.dot.operands import load_repeated
from asmdnn.generators.dot.row_words import words_of_rows
from asmdnn.isa.assembler import Assembler, Pointer, Register
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass
from asmdnn.types import f32


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRowsSpec(GroupedRows):
    """Rows whose lanes find their inputs in the lanes of their group; or several lanes one input.

    results: output channels for each input channel, where a group is one: a power of two up to the lanes; of src that
    is f32, and of whole vectors of them.
    """

    family: ClassVar[str] = "grouped"

    results: int = 1

    @property
    def held(self) -> int:
        return self.kernel if self.kernel <= MOST_HELD else HELD

    @property
    def src_vector_bytes(self) -> int:
        return self.src_type.size_bytes * lanes_of(self.isa) // self.results

    def words(self) -> tuple[int, ...]:
        return tuple(words_of_rows(self))

    def src_ranges(self, places: set[int]) -> list[Range]:
        """Whole vectors, or the real channels."""
        width = self.width_bytes(self.src_whole, self.src_type) // self.results
        return [Range(SRC, at, at + width) for at in sorted(places)]

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 *frame), of 5 arguments and one for each operand of post-ops."""
        emit_rows(self, asm)

    def load_source(self, v: Vector, loads: Lanes, source: Register, at: Pointer, part: int) -> None:
        """Input `part` of their groups."""
        element = element_of(self.src_type)
        if self.results > 1:
            v.repeat(source, at, self.results)
        elif self.group == v.lanes:
            load_repeated(v, element, source, at.shifted(element.size_bytes * part))
        elif self.group > 1 and loads is v and self.src_type == f32:
            v.spread(source, at, self.group, part)
        else:
            element.load(v, source, at, loads)
            if self.group > 1:
                v.spread(source, source, self.group, part)

    def is_operand(self, loads_whole: bool) -> bool:
        return self.group == self.results == 1 and loads_whole and self.src_type == f32
