"""What specs of softmax along rows, and along lanes side by side, have in common."""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint
from asmdnn.generators.functions.chain import chain_words, names_of_operands, operands_of
from asmdnn.generators.functions.postops import Operand, PostOp
from asmdnn.generators.functions.row_code import steps_of
from asmdnn.generators.functions.rows import F32_TYPES, operands_touched, rows_touched, words_of_types
from asmdnn.isa.elements import size_of
from asmdnn.records import dataclass

SRC, DST = range(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxShape:
    """Rows of src and dst, what comes before and after, and whether the logarithm is asked for.

    types: of src, which converts alone, and dst.  logsumexp: where that of each row is left, an element, if it is; rows
    alone do, after all operands.
    """

    isa: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    before: tuple[PostOp, ...] = ()
    after: tuple[PostOp, ...] = ()
    log: bool = False
    types: tuple[str, str] = F32_TYPES
    logsumexp: Operand | None = None

    @property
    def keeps(self) -> bool:
        """Whether dst holds the exponentials meanwhile: else they are computed once more."""
        return not self.log and self.types[1] == "f32"

    @property
    def unit(self) -> int:
        """Bytes of the smaller elements."""
        return min(map(size_of, self.types))

    @property
    def frame(self) -> tuple[str, ...]:
        names = names_of_operands((*self.before, *self.after))
        return ("src", "dst", *names, *["logsumexp"] * (self.logsumexp is not None))

    @property
    def row_bytes(self) -> tuple[int, int]:
        """Of src and dst."""
        return self.src_row_bytes, self.dst_row_bytes

    @property
    def steps(self) -> dict[int, int]:
        """Of operands, from row to row."""
        return steps_of([*operands_of((*self.before, *self.after)), self.logsumexp])

    def named(self, size: str) -> str:
        """The name of a kernel of that size."""
        words = [*chain_words((*self.before, *self.after)), checksum(self)]
        kind = "logsoftmax" if self.log else "softmax"
        return f"{kind}_{words_of_types(self.types)}_{size}_{'_'.join(words)}__{self.isa}"

    def touched(self, rereads: bool) -> Footprint:
        """All of src, dst and operands."""
        of_src, of_dst = map(size_of, self.types)
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements, of_src)
        dst = rows_touched(DST, self.rows, self.dst_row_bytes, self.elements, of_dst)
        operands = (operands_touched(chain, self.rows, self.elements) for chain in (self.before, self.after))
        read = dict.fromkeys((*src, *(found for ranges in operands for found in ranges)))
        sums = self.logsumexp
        left = rows_touched(sums.argument, self.rows, sums.row_bytes, 1) if sums else ()
        return Footprint(tuple(read), (*dst, *left), rereads=rereads)
