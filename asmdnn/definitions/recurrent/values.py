"""What a step of a recurrent layer takes and leaves, with bounds."""

import numpy as np

from asmdnn.definitions.recurrent.bounded import Bounded, zeros
from asmdnn.records import dataclass

MOST_BYTE = 255
HALF, SLACK = 0.5, 2.0**-20  # what rounding to a whole number changes, and what f32 adds to it


@dataclass(frozen=True, slots=True)
class Weights:
    """Of one layer in one direction: layer [c, gates, units], iter [r, gates, units], bias [gates or 4, units],
    peephole [3, units] of i f o, projection [units, r].  Or their gradients."""

    layer: Bounded
    iter: Bounded
    bias: Bounded
    peephole: Bounded | None = None
    projection: Bounded | None = None


@dataclass(frozen=True, slots=True)
class Handed:
    """What steps hand on to products: h, and what cells multiply in between, in a type of few bits.

    unit: its unit roundoff.  scale, shift: of bytes, which stand for (byte - shift) / scale; 0: it is no byte.
    """

    unit: float = 0.0
    scale: float = 0.0
    shift: float = 0.0

    def of(self, x: Bounded) -> Bounded:
        """x off by what rounding may change; not to round it is as good."""
        if self.scale:
            least, most = -self.shift / self.scale, (MOST_BYTE - self.shift) / self.scale
            return Bounded(np.clip(x.value, least, most), x.bound + HALF * (1 + SLACK) / self.scale)
        return Bounded(x.value, x.bound + self.unit * (np.abs(x.value) + x.bound)) if self.unit else x


AS_F32 = Handed()


@dataclass(frozen=True, slots=True)
class Function:
    """Of the vanilla cell: relu, tanh or logistic; alpha is relu's slope below 0.  hands: of all cells."""

    name: str = "tanh"
    alpha: float = 0.0
    hands: Handed = AS_F32

    def of(self, x: Bounded) -> Bounded:
        if self.name == "relu":
            return x.relu(self.alpha)
        return x.tanh() if self.name == "tanh" else x.logistic()

    def gradient(self, result: Bounded) -> Bounded:
        if self.name == "relu":
            return result.slope(self.alpha)
        return 1.0 - result * result if self.name == "tanh" else result * (1.0 - result)


@dataclass(frozen=True, slots=True)
class StepValues:
    """What a step was given, and what it computed: h and c, and by name whatever its gradients need."""

    x: Bounded
    h0: Bounded
    c0: Bounded | None
    h: Bounded
    c: Bounded | None
    gates: tuple[Bounded, ...]
    hidden: Bounded  # h before the projection; for LBR_GRU h U_o + B_4


@dataclass(frozen=True, slots=True)
class StepGradients:
    """Of a step: what goes on to x, h and c, and what is added to those of the weights."""

    x: Bounded
    h: Bounded
    c: Bounded | None
    weights: Weights


def added(total: Weights, more: Weights) -> Weights:
    """Gradients of the weights over several steps."""

    def both(a: Bounded | None, b: Bounded | None) -> Bounded | None:
        return None if a is None or b is None else a + b

    return Weights(
        total.layer + more.layer,
        total.iter + more.iter,
        total.bias + more.bias,
        both(total.peephole, more.peephole),
        both(total.projection, more.projection),
    )


def no_gradients(w: Weights) -> Weights:
    def empty(x: Bounded) -> Bounded:
        return zeros(*x.value.shape)

    return Weights(
        empty(w.layer),
        empty(w.iter),
        empty(w.bias),
        None if w.peephole is None else empty(w.peephole),
        None if w.projection is None else empty(w.projection),
    )
