"""Recurrent layers: what the attributes of their nodes say, and the types of their results."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from asmdnn.definitions.recurrent.sequences import (
    FUNCTIONS,
    GATES,
    USUAL_FUNCTIONS,
    SequenceLayer,
    SequenceWeights,
)
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value
from asmdnn.types import RNNActivation, RNNDirection

LEAK = 0.01  # of LeakyRelu, unless activation_alpha says another one
MORE = ("b", "sequence_lens", "initial_h", "initial_c", "p")  # the inputs after x, w and r
DIRECTIONS: dict[str, RNNDirection] = {
    "forward": "unidirectional_left2right",
    "reverse": "unidirectional_right2left",
    "bidirectional": "bidirectional_concat",
}  # as the primitives call them, and so
ACTIVATIONS: dict[str, RNNActivation] = {"tanh": "tanh", "relu": "relu", "leakyrelu": "relu", "sigmoid": "logistic"}


def directions_of(node: Node) -> tuple[bool, ...]:
    """Whether each direction goes backwards."""
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[node.get("direction", "forward")]


def activations_of(node: Node) -> list[tuple[str, float]]:
    """(name in small letters, alpha) of all functions, direction by direction.  activation_alpha has a number for each
    function that takes one, in their order."""
    usual = USUAL_FUNCTIONS[node.op] * len(directions_of(node))
    alphas = iter(node.get("activation_alpha") or ())
    names = [name.lower() for name in node.get("activations") or usual]
    return [(name, float(next(alphas, LEAK)) if name == "leakyrelu" else 0.0) for name in names]


def functions_of(node: Node, direction: int) -> list[Callable[[Array], Any]]:
    """Those of a direction.  Raises ValueError for what is not defined."""
    count, found = len(USUAL_FUNCTIONS[node.op]), list[Callable[[Array], Any]]()
    for name, alpha in activations_of(node)[direction * count : (direction + 1) * count]:
        if name != "leakyrelu" and name not in FUNCTIONS:
            raise ValueError(f"activation {name} is not defined")
        found.append(FUNCTIONS.get(name, partial(leaky_relu, alpha)))
    for name in ("clip", "input_forget"):
        if node.get(name):
            raise ValueError(f"{name}={node.get(name)} is not defined")
    return found


def missing_kernel(node: Node) -> str:
    """What a node has that the primitives do not; "" for one that they compute."""
    usual = [(name, 0.0) for name in USUAL_FUNCTIONS[node.op] * len(directions_of(node))]
    given = activations_of(node)
    if node.op == "RNN" and len(set(given)) == 1 and given[0][0] in ACTIVATIONS:
        given = usual
    if given != usual:
        names = [", ".join(name for name, _ in functions) for functions in (given, usual)]
        return f"activations {names[0]} have no kernel, {names[1]} have"
    return next((f"{name}={node.get(name)} has no kernel" for name in ("clip", "input_forget") if node.get(name)), "")


def cell_of(node: Node) -> str:
    """As asmdnn.recurrent calls it."""
    return {"LSTM": "lstm", "RNN": "rnn", "GRU": "lbr_gru" if node.get("linear_before_reset", 0) else "gru"}[node.op]


def leaky_relu(alpha: float, x: Array) -> Any:
    return np.where(x < 0, alpha * x, x)


def layer(node: Node, x: Array, w: Array, r: Array, *more: Array | None) -> tuple[Array, ...]:
    """x: [t, n, i]; w: [directions, gates * h, i]; r: [directions, gates * h, h]; then, where given: both biases, the
    lengths, h and c at the start, and p, the peepholes.  With a layout of 1, sequences come before steps and
    directions."""
    b, lengths, h0, c0, p = more + (None,) * (5 - len(more))
    directions, is_batch_first = range(len(w)), bool(node.get("layout", 0))
    if is_batch_first:
        x = x.swapaxes(0, 1)
        h0, c0 = (None if array is None else array.swapaxes(0, 1) for array in (h0, c0))
    biases = np.zeros((len(w), 2, w.shape[1]), x.dtype) if b is None else b.reshape(len(w), 2, w.shape[1])
    weights = [SequenceWeights(w[d], r[d], biases[d, 0], biases[d, 1], None if p is None else p[d]) for d in directions]
    functions = tuple(functions_of(node, d) for d in directions)
    own = SequenceLayer(node.op, directions_of(node), functions, bool(node.get("linear_before_reset", 0)))
    outputs, *states = own.run(x, weights, h0, c0, lengths)
    if is_batch_first:
        outputs, states = outputs.transpose(2, 0, 1, 3), [state.swapaxes(0, 1) for state in states]
    return (outputs, *states) if node.op == "LSTM" else (outputs, states[0])


def types(node: Node, x: Value, w: Value, r: Value, *more: Value | None) -> list[Type]:
    size, directions, is_batch_first = (
        node.get("hidden_size", r.shape[-1]),
        len(directions_of(node)),
        node.get("layout", 0),
    )
    first, second, inputs = x.shape
    t, n = (second, first) if is_batch_first else (first, second)
    dims, state = (t, directions, n, size), (directions, n, size)
    if is_batch_first:
        dims, state = (n, t, directions, size), (n, directions, size)
    rows = GATES[node.op] * size
    wanted = ((directions, 2 * rows), (n,), state, state, (directions, 3 * size))
    known = [("w", w, (directions, rows, inputs)), ("r", r, (directions, rows, size))]
    known += [(name, *both) for name, *both in zip(MORE, more, wanted, strict=False) if both[0] is not None]  # type: ignore[misc]
    for name, value, shape in known:
        if value.shape != shape:
            raise ValueError(f"{name} has dims {value.shape}, and must have {shape}")
    return [(dims, x.dtype), *[(state, x.dtype)] * (2 if node.op == "LSTM" else 1)]


OPERATORS = {op: Operator(layer, types) for op in USUAL_FUNCTIONS}
