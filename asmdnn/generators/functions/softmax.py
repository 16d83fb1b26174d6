"""Softmax of dense rows: of x = before(src), element by element,

    dst = after(e^(x - max x) / sum of e^(x - max x)),   or   dst = after(x - max x - log(sum of e^(x - max x)))

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, elements] | rows src_row_bytes apart, elements dense |
| dst     | f32[rows, elements] | rows dst_row_bytes apart, elements dense; may be src; holds e^(x - max x) meanwhile |
| 2, 3 .. | f32[rows, elements] | operands of before and after, each laid out as its Operand says |

e^(x - max x) is 0 below 2^-127.  A row with NaN or +infinity, or with nothing but -infinity, becomes NaN.

Rows of few vectors stay in registers between maximum and product, several rows at a time, so that they share the
latency of maxima and sums across lanes.  Others are walked three times: the maximum; the exponentials, which are summed
and stored; the products.  Sums are in an order that depends on the number of elements alone.
"""

from dataclasses import dataclass
from zlib import crc32

from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.chain import names_of_operands, words_of
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.rows import operands_touched, rows_touched
from asmdnn.generators.functions.softmax_code import HeldRows, LongRows, rows_held
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.vectors import lanes_of, vector_of

SRC, DST = range(2)


@dataclass(frozen=True, slots=True)
class SoftmaxSpec:
    """Everything that the bytes of a softmax kernel depend on.  log: of the second form.  prefetches: src is asked for
    ahead, which pays where it comes from memory."""

    isa: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    before: tuple[PostOp, ...] = ()
    after: tuple[PostOp, ...] = ()
    log: bool = False
    prefetches: bool = False

    @property
    def name(self) -> str:
        words = [*words_of((*self.before, *self.after)), f"{crc32(repr(self).encode()):08x}"]
        kind = "logsoftmax" if self.log else "softmax"
        return f"{kind}_f32_{self.rows}x{self.elements}_{'_'.join(words)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ("src", "dst", *names_of_operands((*self.before, *self.after)))

    @property
    def held(self) -> int:
        """How many rows registers hold at a time, 0 if none."""
        return 0 if self.log else rows_held(self.isa, -(-self.elements // lanes_of(self.isa)))

    def footprint(self) -> Footprint:
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements)
        dst = rows_touched(DST, self.rows, self.dst_row_bytes, self.elements)
        operands = (operands_touched(chain, self.rows, self.elements) for chain in (self.before, self.after))
        read = dict.fromkeys((*src, *(found for ranges in operands for found in ranges)))
        return Footprint(tuple(read), dst, rereads=not self.log and not self.held)

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel: void kernel(const int64 frame[])."""
        code = (HeldRows if self.held else LongRows)(self, vector_of(self.isa, asm))
        code.all_rows()
        asm.ret()
