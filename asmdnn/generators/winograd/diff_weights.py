"""The transform of sums of products into gradients of weights: G^T M G for every pair of channels.

    dst[r, s, i] = sum over f of G[f // n, r] * G[f % n, s] * products[f, i]  (+ dst[r, s, i])        n = m + 2

| argument | dtype[shape] | what it is |
|---|---|---|
| products | f32[n^2, elements] | frequencies frequency_bytes apart, elements dense |
| dst      | f32[3, 3, elements] | taps tap_bytes apart, elements dense; read if `accumulate` |

`zeros` more vectors of each tap, after the elements, become 0.
"""

from collections.abc import Sequence

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.winograd.arguments import ARGUMENTS, DST, PRODUCTS, types_word
from asmdnn.generators.winograd.forms import FORMS, GRADIENTS, ResultGroup, Transforms
from asmdnn.generators.winograd.linear import Linear
from asmdnn.generators.winograd.weights import TAPS
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import vector_bytes, vector_of
from asmdnn.records import dataclass
from asmdnn.types import f32


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffWeightsTransformSpec:
    """Everything that the bytes of the kernel depend on; elements are whole vectors."""

    isa: str
    m: int
    vectors: int
    tap_bytes: int
    frequency_bytes: int
    accumulate: bool = False
    zeros: int = 0
    frame = ARGUMENTS

    @property
    def form(self) -> Transforms:
        return FORMS[self.m]

    @property
    def name(self) -> str:
        words = "_".join([str(self.vectors), *["acc"] * self.accumulate, checksum(self)])
        return f"winograd_diff_weights_{types_word(f32)}_f{self.m}_{words}__{self.isa}"

    def footprint(self) -> Footprint:
        size, more = vector_bytes(self.isa) * self.vectors, vector_bytes(self.isa) * self.zeros
        products = (f * self.frequency_bytes for f in range(self.form.frequencies))
        taps = [t * self.tap_bytes for t in range(TAPS**2)]
        sums = tuple(Range(DST, at, at + size) for at in taps)
        zeros = (Range(DST, at + size, at + size + more) for at in taps if more)
        reads = (Range(PRODUCTS, at, at + size) for at in products)
        return Footprint((*reads, *sums * self.accumulate), (*sums, *zeros))

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel."""
        v = vector_of(self.isa, asm)
        code = DiffWeightsCode(self, asm, v)
        with asm.repeated(self.vectors, "vectors left", "vectors"):
            code.transform()
            asm.ADD(code.products, v.bytes)
            asm.ADD(code.dst, v.bytes)
        if self.zeros:
            asm.role("zeros")
            code.clear()
        asm.ret()


class DiffWeightsCode:
    """The code for one vector: group by group of rows, first down the columns, then along the rows."""

    def __init__(self, spec: DiffWeightsTransformSpec, asm: Assembler, v: Vector) -> None:
        self.spec, self.v = spec, v
        self.products, self.dst = asm.gp.take(ARGUMENTS[PRODUCTS]), asm.gp.take(ARGUMENTS[DST])
        asm.MOV(self.products, mem(asm.frame, 8 * PRODUCTS))
        asm.MOV(self.dst, mem(asm.frame, 8 * DST))
        self.linear, self.spare = Linear(v, v, {}, None), v.registers.take("spare")

    def transform(self) -> None:
        for group in GRADIENTS[self.spec.m].taps:
            rows = self.down(group)
            for r, row in zip(group.results, rows, strict=True):
                self.along(r, row)
                self.v.registers.free(*row)

    def down(self, group: ResultGroup) -> list[list[Register]]:
        """The group's rows of G^T M, a register for each of n columns."""
        spec, v, n = self.spec, self.v, self.spec.form.size
        rows: list[list[Register]] = v.registers.take("G^T M", len(group.results), n)
        for j in range(n):
            places = [(i * n + j) * spec.frequency_bytes for i in range(n)]
            column = [mem(self.products, at, size=v.bytes) for at in places]
            self.linear.group(group, column, [row[j] for row in rows], self.spare)
        return rows

    def along(self, r: int, row: Sequence[Register]) -> None:
        """Row r of the taps, from row r of G^T M."""
        v, results = self.v, self.v.registers.take("results", 2)
        for group in GRADIENTS[self.spec.m].taps:
            self.linear.group(group, row, results, self.spare)
            for s, result in zip(group.results, results, strict=False):
                at = mem(self.dst, (r * TAPS + s) * self.spec.tap_bytes, size=v.bytes)
                if self.spec.accumulate:
                    self.linear.add(result, 1, at)
                v.store(at, result)
        v.registers.free(*results)

    def clear(self) -> None:
        """The vectors that come next."""
        v = self.v
        zero = v.registers.take("zero")
        v.zero(zero)
        for t in range(TAPS**2):
            for k in range(self.spec.zeros):
                v.store(mem(self.dst, t * self.spec.tap_bytes + k * v.bytes, size=v.bytes), zero)
        v.registers.free(zero)
