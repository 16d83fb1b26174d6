"""Recurrent layers over sequences, in the precision of their arrays, from the equations of ONNX's LSTM, GRU and RNN.

    RNN   h' = f(x W + h R + Wb + Rb)
    GRU   z = f(x W_z + h R_z + Wb_z + Rb_z), r alike, n = g(x W_n + (r * h) R_n + Rb_n + Wb_n), or with
          linear_before_reset n = g(x W_n + r * (h R_n + Rb_n) + Wb_n); h' = (1 - z) * n + z * h
    LSTM  i = f(x W_i + h R_i + P_i * c + Wb_i + Rb_i), forget alike,
          c' = forget * c + i * g(x W_c + h R_c + Wb_c + Rb_c), o = f(x W_o + h R_o + P_o * c' + Wb_o + Rb_o),
          h' = o * k(c'); with input_forget, forget = 1 - i

Gates are in ONNX's order: z r n, and i o forget c; * is element by element.  cells.py has oneDNN's, with bounds.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.definitions.elementwise import logistic
from asmdnn.records import dataclass

Array = npt.NDArray[Any]
Function = Callable[[Array], Any]
FUNCTIONS: dict[str, Function] = {"sigmoid": logistic, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
USUAL_FUNCTIONS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}


@dataclass(frozen=True, slots=True)
class SequenceWeights:
    """Of one direction.  w: [gates * h, i]; r: [gates * h, h]; wb, rb: [gates * h], or a single 0; p: [3 * h] of i, o
    and forget."""

    w: Array
    r: Array
    wb: Array
    rb: Array
    p: Array | None = None


@dataclass(frozen=True, slots=True)
class SequenceLayer:
    """cell: LSTM, GRU or RNN.  backwards: of each direction, whether it goes from the last step to the first.
    functions: of each direction, f, g and k of the equations as far as the cell has them.  The flags are ONNX's.
    handed: what becomes of an LSTM's h, of all sequences, in front of its product."""

    cell: str
    backwards: tuple[bool, ...]
    functions: tuple[Sequence[Function], ...]
    linear_before_reset: bool = False
    input_forget: bool = False
    handed: Function | None = None

    def run(
        self, x: Array, weights: Sequence[SequenceWeights], h0: Array | None = None, c0: Array | None = None,
        lengths: Array | None = None,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """x: [t, n, i]; weights: of each direction; h0, c0: [directions, n, h], 0 if not there; lengths: steps of each
        sequence; later ones leave the state as it was, and give 0.  The outputs [t, directions, n, h], and the last h
        and c [directions, n, h]."""
        outputs, lasts, cells = [], [], []
        live = np.arange(len(x))[:, None, None] < (len(x) if lengths is None else lengths[:, None])
        for d, own in enumerate(weights):
            h = h0[d] if h0 is not None else np.zeros((x.shape[1], own.r.shape[-1]), x.dtype)
            c = c0[d] if c0 is not None else np.zeros_like(h)
            steps = []
            for t in range(len(x))[:: -1 if self.backwards[d] else 1]:
                new, new_c = self.step(self.functions[d], x[t] @ own.w.T + own.wb, h, c, own)
                h, c = np.where(live[t], new, h), np.where(live[t], new_c, c)
                steps.append(np.where(live[t], new, 0))
            outputs.append(np.stack(steps[::-1] if self.backwards[d] else steps))
            lasts.append(h)
            cells.append(c)
        return np.stack(outputs, 1), np.stack(lasts), np.stack(cells)

    def step(self, f: Sequence[Function], x: Array, h: Array, c: Array, own: SequenceWeights) -> tuple[Array, Array]:
        """The next h and c.  x: what the step's input adds to the gates."""
        if self.cell == "LSTM":
            return lstm_step(f, x + own.rb, h if self.handed is None else self.handed(h), c, own, self.input_forget)
        if self.cell == "GRU":
            return gru_step(f, x, h, own, self.linear_before_reset), c
        return np.asarray(f[0](x + h @ own.r.T + own.rb)), c


def lstm_step(
    f: Sequence[Function], x: Array, h: Array, c: Array, own: SequenceWeights, input_forget: bool = False
) -> tuple[Array, Array]:
    i, o, forget, cell = np.split(x + h @ own.r.T, 4, -1)
    pi, po, pf = np.split(own.p, 3) if own.p is not None else (np.zeros(1, h.dtype),) * 3
    gate = f[0](i + pi * c)
    kept = 1 - gate if input_forget else f[0](forget + pf * c)
    new = kept * c + gate * f[1](cell)
    return np.asarray(f[0](o + po * new) * f[2](new)), np.asarray(new)


def gru_step(f: Sequence[Function], x: Array, h: Array, own: SequenceWeights, linear_before_reset: bool) -> Array:
    xz, xr, xn = np.split(x, 3, -1)
    rz, rr, rn = np.split(own.r, 3)
    bz, br, bn = np.split(np.broadcast_to(own.rb, len(own.r)), 3)
    z, reset = f[0](xz + h @ rz.T + bz), f[0](xr + h @ rr.T + br)
    inner = reset * (h @ rn.T + bn) if linear_before_reset else (reset * h) @ rn.T + bn
    return np.asarray((1 - z) * f[1](xn + inner) + z * h)
