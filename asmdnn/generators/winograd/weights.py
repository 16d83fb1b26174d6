"""The transform of weights: U = G g G^T for every pair of channels.

    transformed[f, i] = sum over r, s of G[f // n, r] * G[f % n, s] * weights[r, s, i]       n = m + 2, 0 <= f < n^2

in f64, rounded once, or once more to what is narrower than f32.  Nothing is fused, so that bits are those of numpy, by
which memory/winograd.py defines the format.

| argument | dtype[shape] | what it is |
|---|---|---|
| weights     | f32[3, 3, elements] | taps tap_bytes apart, elements dense |
| transformed | dtype[n^2, elements] | frequencies frequency_bytes apart, elements dense |
"""

from collections.abc import Mapping, Sequence
from math import gcd

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.winograd.arguments import types_word
from asmdnn.generators.winograd.forms import FORMS, ResultGroup, Terms, Transforms
from asmdnn.isa.assembler import Assembler, Pointer, Register, mem
from asmdnn.isa.doubles import doubles_of
from asmdnn.isa.element import SPARE
from asmdnn.isa.elements import element_of
from asmdnn.isa.lines import LINE_BYTES
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
        at_once = gcd(LINE_BYTES // v.bytes, self.vectors)
        asm.MOV(left, self.vectors // at_once)
        code = WeightsCode(self, v, at_once)
        with asm.loop(left, "vectors"):
            code.down(weights)
            code.along(transformed)
            asm.ADD(weights, at_once * v.bytes)
            asm.ADD(transformed, at_once * code.stored_bytes)
        asm.ret()


class WeightsCode:
    """The vectors of a line, each in two halves: first down the columns, onto the stack, then along the rows.

    Lines of all frequencies may share a set of L1, so that none is there any more when another vector of it comes.
    """

    def __init__(self, spec: WeightsTransformSpec, v: Vector, at_once: int) -> None:
        self.spec, self.v, self.asm, self.doubles = spec, v, v.asm, doubles_of(v)
        self.stored_bytes = spec.dtype.size_bytes * v.lanes
        self.results, self.others = v.registers.take("G g G^T", 2), v.registers.take("G g G^T, other half", 2)
        self.given, self.given_others = v.registers.take("taps", TAPS), v.registers.take("taps, other half", TAPS)
        self.sum, self.product = v.registers.take("shared"), v.registers.take("product")
        self.element = element_of(spec.dtype)
        self.of_rounding = v.registers.take("rounding", SPARE) if self.element.rounds_by_steps else []
        rows, halves = range(spec.form.size), range(at_once * self.doubles.halves)
        self.between = [[[v.asm.stack(v.bytes) for _ in range(TAPS)] for _ in rows] for _ in halves]

    def down(self, weights: Register) -> None:
        """G g, of each half."""
        spec, doubles = self.spec, self.doubles
        for half, rows in enumerate(self.between):
            for s in range(TAPS):
                for r, x in enumerate(self.given):
                    at = (r * TAPS + s) * spec.tap_bytes + half * doubles.half_bytes
                    doubles.load(x, mem(weights, at, size=doubles.half_bytes))
                for group in spec.form.weights:
                    sums = self.group(group, self.given, self.results)
                    for i, x in zip(group.results, sums, strict=True):
                        self.v.store(rows[i][s], x)

    def along(self, transformed: Register) -> None:
        """Of this the product with G^T, row by row, vector by vector."""
        size, halves = self.spec.form.size, self.doubles.halves
        for i in range(size):
            for first in range(0, len(self.between), halves):
                for taps, rows in zip((self.given, self.given_others), self.between[first:], strict=False):
                    for x, place in zip(taps, rows[i], strict=True):
                        self.v.load(x, place)
                at = i * size * self.spec.frequency_bytes + first // halves * self.stored_bytes
                self.row(mem(transformed, at, size=self.v.bytes))

    def row(self, dst: Pointer) -> None:
        """The results of a row of taps, of both halves, which are stored together."""
        v = self.v
        for group in self.spec.form.weights:
            low = self.group(group, self.given, self.results)
            high = self.group(group, self.given_others, self.others)
            for k, j in enumerate(group.results):
                result, spare = self.results[k], self.others[k]
                self.doubles.narrow(result, low[k], high[k], spare)
                v.add(result, result, v.splat(0))  # of padding coefficients below zero make -0
                at = dst.shifted(j * self.spec.frequency_bytes)
                self.element.store(v, at, result, v, self.of_rounding)

    def group(self, group: ResultGroup, given: Sequence[Register], results: Sequence[Register]) -> list[Register]:
        """Where the results of a group are: in `results`, or one that is given in that."""
        values = {f"d{i}": x for i, x in enumerate(given)}
        targets = {"s": self.sum, **{f"y{k}": x for k, x in enumerate(results)}}
        for name, terms in group.steps:
            values[name] = self.summed(targets[name], terms, values)
        return [values[f"y{k}"] for k in range(len(group.results))]

    def summed(self, target: Register, terms: Terms, values: Mapping[str, Register]) -> Register:
        """The sum of products, from the first one on."""
        (factor, first), *others = terms
        total = self.times(target, factor, values[first])
        for factor, name in others:
            x = self.times(self.product, abs(factor), values[name])
            (self.asm.VADDPD if factor > 0 else self.asm.VSUBPD)(target, total, x)
            total = target
        return total

    def times(self, target: Register, factor: float, x: Register) -> Register:
        """factor * x, which may be x."""
        if factor == 1:
            return x
        self.asm.VMULPD(target, x, self.doubles.splat(factor))
        return target
