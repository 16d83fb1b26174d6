"""Backward attention of bf16 by tiles of AMX: what differs from the plan in f32.

All five products multiply bf16 and sum up f32.  Probabilities, and then gradients of scores, become bf16 where products
take them, the first only there; each is turned too, since dV and dK are sums over rows:

    P^T diff_dst    dS key    dS^T query

query and diff_dst are packed as those products read them, in pairs of rows, beside keys and values.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from asmdnn.isa.dot import Types
from asmdnn.isa.lines import odd_lines
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.steps import StepRecords, steps_in, steps_of
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.backward_schedule import BackwardPlan, PackedTensor
from asmdnn.primitives.attention.probabilities import SCORES
from asmdnn.primitives.attention.schedule import RowBlock
from asmdnn.primitives.attention.tensors import part_of
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.records import replace
from asmdnn.types import DataType, f32

QUERY_ROWS, DST_ROWS = "packed rows of query", "packed rows of diff_dst"
ROUNDED, TURNED = "rounded gradients of scores", "turned scores"


class TiledBackwardPlan(BackwardPlan):
    """A plan as it comes together."""

    score_buffers = 3  # probabilities, their gradients; rounded ones, and turned ones of half the size each
    packs: ClassVar[Mapping[str, PackedTensor]] = {
        **BackwardPlan.packs,
        QUERY_ROWS: PackedTensor("query", turned=False),
        DST_ROWS: PackedTensor("diff_dst", turned=False),
    }
    of_scores = ROUNDED

    def __init__(
        self, desc: AttentionBackward, tensors: Mapping[str, MemoryDesc], types: Types, engine: Engine
    ) -> None:
        super().__init__(desc, tensors, types, engine)
        self.rows_of_scores = self.dtype
        size = self.dtype.size_bytes
        self.turned_row = odd_lines(self.block * size) // size  # as tiles read rows fast

    def rooms(self) -> dict[str, int]:
        size = self.dtype.size_bytes
        rounded = {ROUNDED: size * self.block * self.score_row, TURNED: size * self.keys * self.turned_row}
        return super().rooms() | rounded

    def from_scores(self, block: RowBlock, adds: bool) -> Sequence[StepRecords]:
        return (
            *self.turned(block, SCORES, f32),
            *self.by_turned(block, "diff_value", DST_ROWS, adds),
            self.gradient_step(block),
            *self.of_query(block),
            *self.turned(block, ROUNDED, self.dtype),
            *self.by_turned(block, "diff_key", QUERY_ROWS, adds),
        )

    def turned(self, block: RowBlock, source: str, dtype: DataType) -> Sequence[StepRecords]:
        """Rows of scores as columns, rounded."""
        dims, assembly = (block.rows, block.keys), Assembly(self.engine.tuning, self.engine.isa)
        src = MemoryDesc(dims, dtype, strides=(self.score_row, 1))
        dst = MemoryDesc(dims, self.dtype, strides=(1, self.turned_row))
        add_reorder(assembly, Reordering(source, src, TURNED, dst))
        return steps_in(assembly.phases, {})

    def by_turned(self, block: RowBlock, result: str, rows: str, adds: bool) -> Sequence[StepRecords]:
        """The block's share in dK or dV."""
        into, keys = self.tensors[result], block.keys
        columns = into.dims[3]
        src = MemoryDesc((keys, block.rows), self.dtype, strides=(self.turned_row, 1))
        dst = MemoryDesc((keys, columns), f32, strides=(into.strides[2], 1))
        product = MatMul(src, part_of(self.formats[rows], (block.rows, columns)), dst)
        made = self.tiles(product, Attr([Sum(1.0)] if adds else []))
        return steps_of(made, {"src": TURNED, "weights": rows, "dst": result})

    def moved(self, step: StepRecords, block: RowBlock, head: int) -> StepRecords:
        """Packed rows have all heads, and pairs of rows one after the other in each panel."""
        step = super().moved(step, block, head)
        records = step.records.copy()
        for i, view in enumerate(step.views):
            if view.buffer in (QUERY_ROWS, DST_ROWS):
                of_head = self.assembly.scratch[view.buffer] // (self.images * self.heads)
                row_bytes = self.formats[view.buffer].strides_bytes[0] // self.types.group
                records[:, 1 + i] += head * of_head + block.begin * row_bytes
        return replace(step, records=records)
