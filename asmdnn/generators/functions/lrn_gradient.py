"""The gradient of local response normalization of dense rows: with t = dy * x * base^(-beta - 1), and s its sum over
the taps that element e of a row has, which are the elements that have e in their window,

    dst[r, e] = q[r, e] - factor * x[r, e] * s,   where q = dy * base^-beta is in dst before

| argument | dtype[shape] | what it is |
|---|---|---|
| src  | f32[rows, elements] | t; rows src_row_bytes apart, elements dense; only read, as far as taps say |
| dst  | f32[rows, elements] | rows dst_row_bytes apart, elements dense; q before the call |
| x    | f32, laid out as dst | the source of the forward pass |

Taps are those of tap_rows.py.
"""

from collections.abc import Sequence
from typing import Final

from asmdnn.exact import exact
from asmdnn.generators.checksum import checksum
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.lrn import by_power
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.rows import Vectors
from asmdnn.generators.functions.tap_rows import TapRows, TapSums
from asmdnn.isa.assembler import Assembler, Register
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

ARGUMENTS: Final = ("src", "dst", "x")
DST, X = 1, 2


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LrnGradientSpec(TapRows):
    """Everything that the bytes of such a kernel depend on.  factor: 2 beta alpha / n."""

    factor: float
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        size = f"{self.rows}x{self.elements}_{len(self.taps)}taps"
        return f"lrnback_f32_{size}_{checksum(self)}__{self.isa}"

    @property
    def read_beside(self) -> range:
        return range(DST, len(ARGUMENTS))

    def generate(self, asm: Assembler) -> None:
        LrnGradientCode(self, vector_of(self.isa, asm)).all_rows()
        asm.ret()


def shares_program(beta: float, is_share: bool) -> Program:
    """t if it `is_share`, else q; of x, dy and base, whose power both have in common."""
    build = Builder(3)
    x, dy, base = build.inputs
    common = by_power(build, dy, base, beta + 1)
    return build.finish(common * x if is_share else common * base)


def gradient_program(factor: float) -> Program:
    """Of x, q and s."""
    build = Builder(3)
    x, q, total = build.inputs
    return build.finish(q - x * (total * factor))


class LrnGradientCode(TapSums):
    """A row at a time: sums, and what they take from the gradient."""

    spec: LrnGradientSpec

    def start(self, total: Register, x: Register) -> None:
        self.v.move(total, x)

    def count(self, total: Register, x: Register) -> None:
        self.v.add(total, total, x)

    def finish(self, vectors: Vectors, sums: Sequence[Register]) -> None:
        spec = self.spec
        of_x = self.operand(Operand(X, spec.dst_row_bytes, 0, False), vectors)
        results = self.apply(gradient_program(spec.factor), [of_x, vectors.sources(lambda: self.dst), sums])
        for j, (part, x) in enumerate(zip(vectors.parts, results, strict=True)):
            part.store_last(vectors.at(self.dst, j), x)
        self.v.registers.free(*results)
