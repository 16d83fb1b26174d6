"""What a call of a reorder's kernel is expected to take.

    cycles = call + bytes / near + runs * run + conflicts * lost + elements * conversion (+ bytes / far + runs * far
    run)

Bytes are those of src and dst.  A run is what is dense: a row of src, or what a transpose writes of a row of dst; each
begins with a miss, and ends with a rest.  Runs of a line or less that fall into few sets of L1 lose their lines.  The
terms in brackets are of tensors that together come from memory.  Numbers fit 254 reorders of Zen 3
(docs/cost-model.md).
"""

from typing import NamedTuple

from asmdnn.isa.elements import element_of
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.planning.loops import Box
from asmdnn.primitives.reorder.blocks import Blocks
from asmdnn.primitives.reorder.shape import Shape
from asmdnn.records import dataclass


class DenseRuns(NamedTuple):
    """So many runs of so many bytes, each `step` bytes after the one before."""

    size_bytes: int
    number: int
    step: int

    @property
    def total_bytes(self) -> int:
        return self.size_bytes * self.number

    def joined(self) -> "DenseRuns":
        """As one run, if they follow one another."""
        return DenseRuns(self.total_bytes, 1, self.total_bytes) if self.step == self.size_bytes else self


@dataclass(frozen=True, slots=True)
class Cost:
    """Of calls of what `blocks` makes.  far: whether src and dst come from memory."""

    blocks: Blocks
    far: bool

    def cycles(self, box: Box, shape: Shape) -> int:
        tuning, sides = self.blocks.tuning, self.runs(box, shape)
        size, count = sum(side.total_bytes for side in sides), sum(side.number for side in sides)
        found = tuning.call_cycles + size / tuning.near_bytes_per_cycle + count * tuning.run_cycles
        found += sum(side.number for side in sides if self.conflict(side)) * tuning.conflict_cycles
        if not self.blocks.conversion.is_copy:
            by_steps = element_of(self.blocks.conversion.dst).rounds_by_steps
            found += shape.elements * (tuning.round_cycles if by_steps else tuning.convert_cycles)
        if self.far:
            found += size / tuning.far_bytes_per_cycle + count * tuning.far_run_cycles
        return int(found)

    def runs(self, box: Box, shape: Shape) -> list[DenseRuns]:
        """Of src, unless zeros are written, and of dst."""
        (src, dst), rows, columns = self.blocks.sizes, shape.rows, shape.columns
        if shape.transposes:
            read = DenseRuns(columns.extent * columns.src, rows.extent, rows.src)
            high, wide = rows.extent + shape.zeros.rows, columns.extent + shape.zeros.columns
            written = DenseRuns(high * rows.dst, wide, columns.dst)
        else:
            read = DenseRuns(columns.extent * within_a_line(columns.src) or src, rows.extent, rows.src)
            stored = columns.extent * within_a_line(columns.dst) + shape.zeros.ends * dst
            written = DenseRuns(stored or dst, rows.extent, rows.dst)
        sides = (side.joined() for side in ([written] if box.padding else [read, written]))
        return [side._replace(number=side.number * shape.steps.extent) for side in sides]

    def conflict(self, side: DenseRuns) -> bool:
        is_split = side.size_bytes <= LINE_BYTES and side.step >= self.blocks.tuning.conflict_bytes
        return is_split and self.blocks.conflict(side.number, side.step)


def within_a_line(step: int) -> int:
    """What an element takes with it if elements lie `step` bytes apart."""
    return min(step, LINE_BYTES)
