"""One step of each recurrent cell and its gradients, from the equations of oneDNN's RNN primitives.

x is f32[n, c], h and c the states f32[n, r] and f32[n, units]; W, U, B are the weights of layer and iteration and the
bias, and * is element by element.

    VANILLA_RNN   h' = f(x W + h U + B)
    VANILLA_LSTM  i = s(x W_i + h U_i + P_i * c + B_i), f alike, g = tanh(x W_g + h U_g + B_g), c' = f * c + i * g,
                  o = s(x W_o + h U_o + P_o * c' + B_o), h' = o * tanh(c'), or that times the projection
    VANILLA_GRU   u = s(x W_u + h U_u + B_u), r alike, o = tanh(x W_o + (r * h) U_o + B_o), h' = u * h + (1 - u) * o
    LBR_GRU       as VANILLA_GRU, but o = tanh(x W_o + r * (h U_o + B_4) + B_o)

What products take is handed on in the type of h: h, r * h, and the gradients of sums (`Function.hands`).

Gates are in oneDNN's order: i f g o and u r o.  A gradient is named d of what it is of; of a gate it is that of the sum
inside its function.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

from asmdnn.definitions.recurrent.bounded import Bounded, stacked
from asmdnn.definitions.recurrent.values import Function, StepGradients, StepValues, Weights
from asmdnn.records import dataclass

Forward = Callable[[Bounded, Bounded, Bounded | None, Weights, Function], StepValues]
Backward = Callable[[StepValues, Bounded, Bounded | None, Weights, Function], StepGradients]


def rnn(x: Bounded, h: Bounded, c: Bounded | None, w: Weights, function: Function) -> StepValues:
    result = function.hands.of(function.of(x @ w.layer[:, 0] + h @ w.iter[:, 0] + w.bias[0]))
    return StepValues(x=x, h0=h, c0=None, h=result, c=None, gates=(result,), hidden=result)


def rnn_gradients(step: StepValues, dh: Bounded, dc: Bounded | None, w: Weights, function: Function) -> StepGradients:
    return spread(step, [function.hands.of(dh * function.gradient(step.h))], w)


def lstm(x: Bounded, h: Bounded, c: Bounded | None, w: Weights, function: Function) -> StepValues:
    assert c is not None
    i, f, g, o = (x @ w.layer[:, gate] + h @ w.iter[:, gate] + w.bias[gate] for gate in range(4))
    if w.peephole is not None:
        i, f = i + w.peephole[0] * c, f + w.peephole[1] * c
    i, f, g = i.logistic(), f.logistic(), g.tanh()
    cell = f * c + i * g
    o = (o if w.peephole is None else o + w.peephole[2] * cell).logistic()
    hidden = function.hands.of(o * cell.tanh())
    result = hidden if w.projection is None else function.hands.of(hidden @ w.projection)
    return StepValues(x=x, h0=h, c0=c, h=result, c=cell, gates=(i, f, g, o), hidden=hidden)


def lstm_gradients(step: StepValues, dh: Bounded, dc: Bounded | None, w: Weights, function: Function) -> StepGradients:
    assert dc is not None and step.c is not None and step.c0 is not None
    i, f, g, o = step.gates
    projection = None
    if w.projection is not None:
        dh = function.hands.of(dh)
        projection = step.hidden.T @ dh
        dh = dh @ w.projection.T
    squashed = step.c.tanh()
    d_o = dh * squashed * o * (1.0 - o)
    dc = dc + dh * o * (1.0 - squashed * squashed)
    if w.peephole is not None:
        dc = dc + d_o * w.peephole[2]
    d_i, d_f, d_g = dc * g * i * (1.0 - i), dc * step.c0 * f * (1.0 - f), dc * i * (1.0 - g * g)
    dc0, peephole = dc * f, None
    d_i, d_f, d_g, d_o = map(function.hands.of, (d_i, d_f, d_g, d_o))
    if w.peephole is not None:
        dc0 = dc0 + d_i * w.peephole[0] + d_f * w.peephole[1]
        peephole = stacked([(d_i * step.c0).sum_rows(), (d_f * step.c0).sum_rows(), (d_o * step.c).sum_rows()])
    found = spread(step, [d_i, d_f, d_g, d_o], w)
    weights = Weights(found.weights.layer, found.weights.iter, found.weights.bias, peephole, projection)
    return StepGradients(found.x, found.h, dc0, weights)


def gru(x: Bounded, h: Bounded, c: Bounded | None, w: Weights, function: Function) -> StepValues:
    u, r = ((x @ w.layer[:, gate] + h @ w.iter[:, gate] + w.bias[gate]).logistic() for gate in range(2))
    reset = function.hands.of(r * h)
    o = (x @ w.layer[:, 2] + reset @ w.iter[:, 2] + w.bias[2]).tanh()
    result = function.hands.of(u * h + (1.0 - u) * o)
    return StepValues(x=x, h0=h, c0=None, h=result, c=None, gates=(u, r, o), hidden=o)


def gru_gradients(step: StepValues, dh: Bounded, dc: Bounded | None, w: Weights, function: Function) -> StepGradients:
    u, r, o = step.gates
    d_u, d_o = map(function.hands.of, (dh * (step.h0 - o) * u * (1.0 - u), dh * (1.0 - u) * (1.0 - o * o)))
    d_reset = d_o @ w.iter[:, 2].T  # of r * h
    d_r = function.hands.of(d_reset * step.h0 * r * (1.0 - r))
    found = spread(step, [d_u, d_r, d_o], w)
    dh0 = dh * u + d_reset * r + d_u @ w.iter[:, 0].T + d_r @ w.iter[:, 1].T
    d_iter = stacked([step.h0.T @ d_u, step.h0.T @ d_r, function.hands.of(r * step.h0).T @ d_o], 1)
    return StepGradients(found.x, dh0, None, Weights(found.weights.layer, d_iter, found.weights.bias))


def lbr_gru(x: Bounded, h: Bounded, c: Bounded | None, w: Weights, function: Function) -> StepValues:
    u, r = ((x @ w.layer[:, gate] + h @ w.iter[:, gate] + w.bias[gate]).logistic() for gate in range(2))
    hidden = h @ w.iter[:, 2] + w.bias[3]
    o = (x @ w.layer[:, 2] + w.bias[2] + r * hidden).tanh()
    result = function.hands.of(u * h + (1.0 - u) * o)
    return StepValues(x=x, h0=h, c0=None, h=result, c=None, gates=(u, r, o), hidden=hidden)


def lbr_gru_gradients(
    step: StepValues, dh: Bounded, dc: Bounded | None, w: Weights, function: Function
) -> StepGradients:
    u, r, o = step.gates
    d_u, d_o = dh * (step.h0 - o) * u * (1.0 - u), dh * (1.0 - u) * (1.0 - o * o)
    d_r, d_hidden = d_o * step.hidden * r * (1.0 - r), d_o * r
    d_u, d_o, d_r, d_hidden = map(function.hands.of, (d_u, d_o, d_r, d_hidden))
    found = spread(step, [d_u, d_r, d_o], w, [d_u, d_r, d_hidden])
    d_bias = stacked([gate.sum_rows() for gate in (d_u, d_r, d_o, d_hidden)])
    return StepGradients(found.x, found.h + dh * u, None, Weights(found.weights.layer, found.weights.iter, d_bias))


def spread(
    step: StepValues, gates: Sequence[Bounded], w: Weights, iterated: Sequence[Bounded] | None = None
) -> StepGradients:
    """Gradients of the gates' sums to all that they are sums of; `iterated`: those of h U, if they differ."""
    iterated = gates if iterated is None else iterated
    layer = stacked([step.x.T @ gate for gate in gates], 1)
    recurrent = stacked([step.h0.T @ gate for gate in iterated], 1)
    bias = stacked([gate.sum_rows() for gate in gates])
    dx = reduce(add, (gate @ w.layer[:, number].T for number, gate in enumerate(gates)))
    dh = reduce(add, (gate @ w.iter[:, number].T for number, gate in enumerate(iterated)))
    return StepGradients(dx, dh, None, Weights(layer, recurrent, bias))


@dataclass(frozen=True, slots=True)
class ReferenceCell:
    """gates, biases: how many it has."""

    forward: Forward
    backward: Backward
    gates: int
    biases: int


CELLS = {
    "VANILLA_RNN": ReferenceCell(rnn, rnn_gradients, 1, 1),
    "VANILLA_LSTM": ReferenceCell(lstm, lstm_gradients, 4, 4),
    "VANILLA_GRU": ReferenceCell(gru, gru_gradients, 3, 3),
    "LBR_GRU": ReferenceCell(lbr_gru, lbr_gru_gradients, 3, 4),
}
