"""The transform of weights: U = G g G^T for every pair of channels.

    transformed[f, i] = sum over r, s of G[f // n, r] * G[f % n, s] * weights[r, s, i]       n = m + 2, 0 <= f < n^2

| argument | dtype[shape] | what it is |
|---|---|---|
| weights     | f32[3, 3, elements] | taps tap_bytes apart, elements dense |
| transformed | dtype[n^2, elements] | frequencies frequency_bytes apart, elements dense |
"""

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.winograd.arguments import types_word
from asmdnn.generators.winograd.forms import FORMS, Transforms
from asmdnn.generators.winograd.linear import Linear, take_constants
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.element import SPARE
from asmdnn.isa.elements import element_of
from asmdnn.isa.vector import Vector
from asmdnn.isa.vectors import lanes_of, vector_bytes, vector_of
from asmdnn.records import dataclass
from asmdnn.types import DataType, f32

WEIGHTS, TRANSFORMED = range(2)
TAPS = 3  # along an axis


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsTransformSpec:
    """Everything that the bytes of the kernel depend on; elements are whole vectors."""

    isa: str
    m: int
    vectors: int
    tap_bytes: int
    frequency_bytes: int
    dtype: DataType = f32

    @property
    def form(self) -> Transforms:
        return FORMS[self.m]

    @property
    def name(self) -> str:
        words = f"{self.vectors}_{checksum(self)}"
        return f"winograd_weights_{types_word(f32, self.dtype)}_f{self.m}_{words}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ("weights", "transformed")

    def footprint(self) -> Footprint:
        size, stored = vector_bytes(self.isa) * self.vectors, self.dtype.size_bytes * lanes_of(self.isa) * self.vectors
        reads = (t * self.tap_bytes for t in range(TAPS**2))
        writes = (f * self.frequency_bytes for f in range(self.form.frequencies))
        return Footprint(
            tuple(Range(WEIGHTS, at, at + size) for at in reads),
            tuple(Range(TRANSFORMED, at, at + stored) for at in writes),
        )

    def generate(self, asm: Assembler) -> None:
        """Emit the kernel."""
        v = vector_of(self.isa, asm)
        weights, transformed, left = (asm.gp.take(name) for name in (*self.frame, "vectors left"))
        asm.MOV(weights, mem(asm.frame, 8 * WEIGHTS))
        asm.MOV(transformed, mem(asm.frame, 8 * TRANSFORMED))
        asm.MOV(left, self.vectors)
        with asm.loop(left, "vectors"):
            transform(self, v, weights, transformed)
            asm.ADD(weights, v.bytes)
            asm.ADD(transformed, self.dtype.size_bytes * v.lanes)
        asm.ret()


def transform(spec: WeightsTransformSpec, v: Vector, weights: Register, transformed: Register) -> None:
    """One vector, group by group of rows: first down the columns, then along the rows."""
    spare, results = v.registers.take("spare"), v.registers.take("G g G^T", 2)
    element = element_of(spec.dtype)
    of_rounding = v.registers.take("rounding", SPARE) if element.rounds_by_steps else []
    for group in spec.form.weights:
        rows = v.registers.take("G g", len(group.results), TAPS)
        constants = take_constants(v, group)
        down, along = Linear(v, v, constants, None), Linear(v, v, {}, None)
        for s in range(TAPS):
            column = [mem(weights, (r * TAPS + s) * spec.tap_bytes, size=v.bytes) for r in range(TAPS)]
            down.group(group, column, [row[s] for row in rows], spare)
        for i, row in zip(group.results, rows, strict=True):
            for across in spec.form.weights:
                along.group(across, row, results, spare)
                for j, result in zip(across.results, results, strict=False):
                    frequency = i * spec.form.size + j
                    at = mem(transformed, frequency * spec.frequency_bytes, size=v.bytes)
                    element.store(v, at, result, v, of_rounding)
        v.registers.free(*constants.values(), *(x for row in rows for x in row))
    v.registers.free(spare, *results, *of_rounding)
