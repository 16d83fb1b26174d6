"""Functions of f32 vectors, lane by lane, as frozen lists of steps: see expression.py for how they are made.

| op | value of the step |
|---|---|
| input     | argument number `immediate`; 0 is the vector that the program transforms |
| constant  | the f32 with the bits `immediate` in every lane |
| number    | in every lane the f32 that the kernel reads as its number `immediate` (numbers.py) |
| add sub mul div | of args 0 and 1 |
| min max   | of args 0 and 1; arg 1 where either is NaN or both are zero, as MINPS does |
| fma fnma  | args 0 * 1 + 2 and 2 - 0 * 1, rounded once |
| sqrt      | of arg 0 |
| round     | arg 0 to an integral value, as VROUNDPS with `immediate` does |
| and or xor andn | of the bits; andn is ~arg 0 & arg 1 |
| iadd isub, shl shr sar | on int32 lanes; shifts by `immediate`, sar keeps the sign |
| table     | arg 1 + i, a constant, where i is the number in the lowest three bits of arg 0 |
| to_float to_int | from and to int32, to nearest even |
| select    | arg 2 where args 0 and 1 compare as VCMPPS's predicate `immediate`, else arg 3 |
"""

from enum import IntEnum

from asmdnn.isa.formula import float_of
from asmdnn.records import dataclass, once

IN_MEMORY = ("input", "number", "constant")  # steps that compute nothing


class Rounding(IntEnum):
    """VROUNDPS's immediates, without the inexact exception."""

    nearest_even = 8
    down = 9
    up = 10
    towards_zero = 11


class Predicate(IntEnum):
    """VCMPPS's immediates; quiet, so that NaN does not signal."""

    equal = 0x00
    less = 0x11
    less_equal = 0x12
    unordered = 0x03
    not_equal = 0x04
    ordered = 0x07
    greater_equal = 0x1D
    greater = 0x1E


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on the values of earlier steps."""

    op: str
    args: tuple[int, ...] = ()
    immediate: int = 0


@dataclass(frozen=True)  # without slots, so that it keeps its hash and its text: planning takes hundreds of both
class Program:
    """Steps in an order in which they can be computed; `results` are the numbers of the values that are asked for."""

    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self._text

    @once
    def _hash(self) -> int:
        return hash((self.results, *[step.immediate for step in self.steps]))

    @once
    def _text(self) -> str:
        return f"Program(steps={self.steps!r}, results={self.results!r})"

    @property
    def inputs(self) -> int:
        """How many arguments it takes."""
        return 1 + max((step.immediate for step in self.steps if step.op == "input"), default=0)

    @property
    def size(self) -> int:
        """How many steps compute something."""
        return sum(step.op not in IN_MEMORY for step in self.steps)

    def only(self, number: int) -> "Program":
        """One of the results alone."""
        return self if len(self.results) == 1 else Program(self.steps, (self.results[number],))

    def __str__(self) -> str:
        """A line for each step, such as "v3 = fma(v1, v2, 0.5)"; constants stand where they are used."""

        def text(i: int) -> str:
            step = self.steps[i]
            return f"{float_of(step.immediate):.9g}" if step.op == "constant" else f"v{i}"

        lines = []
        for i, step in enumerate(self.steps):
            if step.op != "constant":
                words = [text(a) for a in step.args]
                if step.op == "select":
                    words.append(Predicate(step.immediate).name)
                elif step.op in ("input", "number", "shl", "shr", "sar", "round"):
                    words.append(str(step.immediate))
                lines.append(f"v{i} = {step.op}({', '.join(words)})")
        return "\n".join([*lines, f"return {', '.join(map(text, self.results))}"])
