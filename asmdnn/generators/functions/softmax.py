"""Softmax of dense rows: of x = before(src), element by element,

    dst = after(e^(x - max x) / sum of e^(x - max x)),   or   dst = after(x - max x - log(sum of e^(x - max x)))

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | kind[rows, elements] | rows src_row_bytes apart, elements dense |
| dst     | kind[rows, elements] | rows dst_row_bytes apart, elements dense; may be src; f32 has e^(x - max) meanwhile |
| 2, 3 .. | f32[rows, elements] | operands of before and after, each laid out as its Operand says |
| last    | f32[rows] | with `logsumexp`, where that says: max x + log(sum of e^(x - max x)) |

kind is f32, or what `types` says of src and dst; elements become f32 as they are loaded, and are rounded once.
e^(x - max x) is 0 below 2^-127.  A row with NaN or +infinity, or with nothing but -infinity, becomes NaN.

Rows of few vectors stay in registers between maximum and result, several rows at a time, so that they share the
latency of maxima, sums across lanes and logarithms: of the second form half as many, as exponentials come beside.
Others are walked three times: the maximum; the exponentials, which are summed and stored; the products.  Where dst is
not f32, the last walk computes exponentials once more.  Rows whose logsumexp is asked for are always walked.  Sums are
in an order that depends on the number of elements alone.
"""

from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.softmax_code import HeldRows, SoftmaxOfLongRows, rows_held
from asmdnn.generators.functions.softmax_shape import SoftmaxShape
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxSpec(SoftmaxShape):
    """Everything that the bytes of a softmax kernel depend on.  log: of the second form.  prefetches: src is asked for
    ahead, which pays where it comes from memory."""

    prefetches: bool = False

    @property
    def name(self) -> str:
        return self.named(f"{self.rows}x{self.elements}")

    @property
    def held(self) -> int:
        """How many rows registers hold at a time, 0 if none."""
        return 0 if self.logsumexp else rows_held(self.isa, self.elements, self.log)

    def footprint(self) -> Footprint:
        return self.touched(rereads=self.keeps and not self.held)

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        code = HeldRows(self, v) if self.held else SoftmaxOfLongRows(self, v, self.prefetches)
        code.all_rows()
        asm.ret()
