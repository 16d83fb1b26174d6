"""Local response normalization of dense rows: with s the sum of squares over the taps that element e of a row has,

    base[r, e] = k + factor * s;   dst[r, e] = src[r, e] * base[r, e]^-beta

| argument | dtype[shape] | what it is |
|---|---|---|
| src       | f32[rows, elements] | rows src_row_bytes apart, elements dense; only read, as far as taps say |
| dst       | f32[rows, elements] | rows dst_row_bytes apart, elements dense; only written |
| workspace | f32, laid out as dst | base; only written; not there unless the spec says so |

Taps are those of tap_rows.py.  Squares are rounded once for each.

beta = 0.75 is x / (sqrt(base) * sqrt(sqrt(base))), four roundings in a row; other powers are those of `pow`.
"""

from collections.abc import Sequence
from typing import Final

from asmdnn.exact import exact
from asmdnn.generators.checksum import checksum
from asmdnn.generators.functions.eltwise.logarithm import power
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.program import Program
from asmdnn.generators.functions.row_code import DST
from asmdnn.generators.functions.rows import Vectors
from asmdnn.generators.functions.tap_rows import TapRows, TapSums
from asmdnn.isa.assembler import Assembler, Register
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass

ARGUMENTS: Final = ("src", "dst", "workspace")
WORKSPACE: Final = 2


@exact
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LrnSpec(TapRows):
    """Everything that the bytes of such a kernel depend on."""

    k: float
    factor: float
    beta: float
    has_workspace: bool = False

    @property
    def name(self) -> str:
        size = f"{self.rows}x{self.elements}_{len(self.taps)}taps"
        return f"lrn_f32_{size}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ARGUMENTS if self.has_workspace else ARGUMENTS[:WORKSPACE]

    @property
    def written(self) -> range:
        return range(DST, len(self.frame))

    def generate(self, asm: Assembler) -> None:
        LrnCode(self, vector_of(self.isa, asm)).all_rows()
        asm.ret()


def base_program(k: float, factor: float) -> Program:
    """k + factor * s, rounded once."""
    build = Builder()
    return build.finish(build.fma(build.inputs[0], factor, k))


def by_power(build: Builder, x: Term, base: Term, beta: float) -> Term:
    """x * base^-beta, of a base above 0; divisions and roots take most of the time."""
    root = build.op("sqrt", base)
    if beta in (1.5, 1.75, 2.0):
        return x / (base * (base if beta == 2 else root if beta == 1.5 else root * build.op("sqrt", root)))
    if beta == 0.75:
        return x / (root * build.op("sqrt", root))
    if beta == 0.5:
        return x / root
    return x / base if beta == 1 else x * power(build, base, -beta)


def result_program(beta: float) -> Program:
    build = Builder(2)
    x, base = build.inputs
    return build.finish(by_power(build, x, base, beta))


class LrnCode(TapSums):
    """A row at a time: sums of squares, their powers, results."""

    spec: LrnSpec

    def start(self, total: Register, x: Register) -> None:
        self.v.mul(total, x, x)

    def count(self, total: Register, x: Register) -> None:
        self.v.fma(total, x, x)

    def finish(self, vectors: Vectors, sums: Sequence[Register]) -> None:
        v, spec = self.v, self.spec
        base = self.apply(base_program(spec.k, spec.factor), [sums])
        if spec.has_workspace:
            for j, (part, x) in enumerate(zip(vectors.parts, base, strict=True)):
                part.store(vectors.at(self.operands.register(WORKSPACE), j), x)
        results = self.apply(result_program(spec.beta), [vectors.sources(lambda: self.src), base])
        for j, (part, x) in enumerate(zip(vectors.parts, results, strict=True)):
            part.store_last(vectors.at(self.dst, j), x)
        v.registers.free(*results)
