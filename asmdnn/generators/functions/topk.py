"""The k largest or smallest numbers, and where they are: of every row, or of every lane down the rows.

    rows:  dst[r, t] = the column of the t-th best of src[r, :];  values[r, t] = that number
    lanes: dst[t, c] = the row of the t-th best of src[:, c];     values[t, c] = that number

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, elements] | rows src_row_bytes apart, elements dense; only read |
| dst     | s32[rows, k] or [k, elements] | rows dst_row_bytes apart, elements dst_step_bytes (lanes: 4); only written |
| values  | f32, laid out as dst | only written; not there unless the spec says so |

Of equal numbers the one with the lower index comes first, or of k = 1 the last one if `order` says so; -0 and 0 are
equal, and a value is 0 then.  NaN comes first, or last.

Every lane has a list of its k best; those of a row become one in k reductions across lanes.
"""

from asmdnn.generators.functions.topk_lanes import TopKLanes
from asmdnn.generators.functions.topk_rows import TopKRows
from asmdnn.generators.functions.topk_shape import TopKShape
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKSpec(TopKShape):
    """Everything that the bytes of such a kernel depend on."""

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        if self.along == "rows":
            TopKRows(self, v).all_rows()
        else:
            TopKLanes(self, v).emit()
        asm.ret()
