"""Means, and sums of squared distances from them, of chunks.

    rows:  mean[r] = mean of src[r, :],   m2[r] = sum of (src[r, :] - mean[r])^2
    lanes: mean[c] = mean of src[:, c],   m2[c] = sum of (src[:, c] - mean[c])^2

| argument | dtype[shape] | what it is |
|---|---|---|
| src  | kind[rows, elements]  | rows src_row_bytes apart, elements dense |
| mean | f32[rows or elements] | those of rows dst_row_bytes apart, those of lanes dense |
| m2   | f32[rows or elements] | likewise |

kind is f32, or a type that converts alone: elements become f32 as they are loaded.

One read: sums of d = x - k and of d^2, k being the first element of a column or of a short row, or the mean of the
first vector of a longer one; m2 = sum d^2 - (sum d)^2 / n.  (k - mean)^2 <= m2, and of a longer row
(k - mean)^2 <= m2 / lanes, so that at most 1 + n, or 1 + n / lanes roundings cancel; hence chunks, which
merge_moments.py makes one.
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.moments_code import M2, MEAN, SHORT, MomentsDown, MomentsOfLongRows, ShortRows
from asmdnn.generators.functions.row_code import SRC
from asmdnn.generators.functions.rows import rows_touched
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.elements import size_of
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsSpec:
    """Of one chunk for each row, or for each lane.  divides: m2 / n instead of m2."""

    isa: str
    along: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    divides: bool = False
    kind: str = "f32"

    @property
    def name(self) -> str:
        return f"moments_{self.kind}_{self.along}{self.rows}x{self.elements}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("src", "mean", "m2")

    def footprint(self) -> Footprint:
        results = (self.rows, self.dst_row_bytes, 1) if self.along == "rows" else (1, 0, self.elements)
        written = (*rows_touched(MEAN, *results), *rows_touched(M2, *results))
        return Footprint(rows_touched(SRC, self.rows, self.src_row_bytes, self.elements, size_of(self.kind)), written)

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        if self.along == "lanes":
            MomentsDown(self, v).emit()
        elif self.elements <= SHORT * v.lanes and self.dst_row_bytes == F32_BYTES:
            ShortRows(self, v).all_rows()
        else:
            MomentsOfLongRows(self, v).all_rows()
        asm.ret()
