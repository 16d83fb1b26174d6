"""Post-ops on registers: what every kernel family applies to a vector of results before it is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asmdnn.isa.vector import Lanes, Vector


def word(number: float) -> str:
    """A number in a kernel's name: no sign or plus, since names are file names and symbols."""
    return f"{number:g}".replace("-", "m").replace("+", "")


@dataclass(frozen=True, slots=True)
class SumOp:
    """x + scale * dst, dst being what the destination held before the call."""

    scale: float

    @property
    def name(self) -> str:
        return "sum" if self.scale == 1.0 else "sum" + word(self.scale)

    def apply(self, v: Vector, x: Any, dst: Any, lanes: Lanes, spare: Sequence[Any]) -> None:
        old, scale = spare
        lanes.load(old, dst)
        if self.scale == 1.0:
            v.add(x, x, old)
        else:
            v.constant(scale, self.scale)
            v.fma(x, scale, old)


@dataclass(frozen=True, slots=True)
class ReluOp:
    """x if x > 0, else alpha * x; NaN stays NaN (MAXPS and MINPS return their second source then)."""

    alpha: float

    @property
    def name(self) -> str:
        return "relu" if self.alpha == 0.0 else "relu" + word(self.alpha)

    def apply(self, v: Vector, x: Any, dst: Any, lanes: Lanes, spare: Sequence[Any]) -> None:
        negative, constant = spare
        v.zero(constant)
        if self.alpha == 0.0:
            v.max(x, constant, x)
            return
        v.min(negative, constant, x)
        v.max(x, constant, x)
        v.constant(constant, self.alpha)
        v.fma(x, constant, negative)


PostOp = SumOp | ReluOp


def apply_chain(chain: Sequence[PostOp], v: Vector, x: Any, dst: Any, lanes: Lanes, spare: Sequence[Any]) -> None:
    """x = chain(x), in order of appending; `dst` is where x will be stored, `spare` two registers to overwrite."""
    for op in chain:
        op.apply(v, x, dst, lanes, spare)
