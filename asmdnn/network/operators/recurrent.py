"""Recurrent layers: what the attributes of their nodes say, and the types of their results."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from asmdnn.definitions import elementwise
from asmdnn.definitions.recurrent.sequences import (
    FUNCTIONS,
    GATES,
    USUAL_FUNCTIONS,
    Function,
    SequenceLayer,
    SequenceWeights,
)
from asmdnn.definitions.rounding import as_bytes
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value
from asmdnn.records import replace
from asmdnn.types import RNNActivation, RNNDirection

CELL = 2  # which of an LSTM's functions takes its cells
MORE = ("b", "sequence_lens", "initial_h", "initial_c", "p")  # the inputs after x, w and r
DIRECTIONS: dict[str, RNNDirection] = {
    "forward": "unidirectional_left2right",
    "reverse": "unidirectional_right2left",
    "bidirectional": "bidirectional_concat",
}  # as the primitives call them, and so
ACTIVATIONS: dict[str, RNNActivation] = {"tanh": "tanh", "relu": "relu", "leakyrelu": "relu", "sigmoid": "logistic"}


class Activation(NamedTuple):
    """A function of x, alpha and beta, with what these are unless the node says.  None: it takes none; NaN: there is
    no such default."""

    function: Callable[[Array, float, float], Any]
    alpha: float | None = None
    beta: float | None = None


WITH_NUMBERS = {
    "affine": Activation(elementwise.FORWARD["linear"], np.nan, np.nan),
    "elu": Activation(elementwise.FORWARD["elu"], 1.0),
    "hardsigmoid": Activation(elementwise.FORWARD["hardsigmoid"], 0.2, 0.5),
    "leakyrelu": Activation(elementwise.FORWARD["relu"], 0.01),
    "scaledtanh": Activation(lambda x, alpha, beta: alpha * np.tanh(beta * x), np.nan, np.nan),
    "softplus": Activation(lambda x, alpha, beta: elementwise.softplus(x)),
    "softsign": Activation(lambda x, alpha, beta: elementwise.softsign(x)),
    "thresholdedrelu": Activation(lambda x, alpha, beta: elementwise.above(x, alpha), 1.0),
}


class GivenActivation(NamedTuple):
    """As a node has it: its name in small letters, and the numbers that it takes, else 0."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0


def directions_of(node: Node) -> tuple[bool, ...]:
    """Whether each direction goes backwards."""
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[node.get("direction", "forward")]


def activations_of(node: Node) -> list[GivenActivation]:
    """Those of all functions, direction by direction.  activation_alpha and activation_beta have a number for each
    function that takes one, in their order."""
    usual = USUAL_FUNCTIONS[node.op] * len(directions_of(node))
    alphas, betas = (iter(node.get(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    found = []
    for name in (name.lower() for name in node.get("activations") or usual):
        _, alpha, beta = WITH_NUMBERS.get(name, (None, None, None))
        numbers = (0.0 if x is None else float(next(given, x)) for x, given in ((alpha, alphas), (beta, betas)))
        found.append(GivenActivation(name, *numbers))
    return found


def functions_of(node: Node, direction: int) -> list[Function]:
    """Those of a direction, of clipped arguments if the node says so; not of an LSTM's cells, as in onnxruntime.

    Raises ValueError for what is not defined."""
    count, found = len(USUAL_FUNCTIONS[node.op]), list[Function]()
    for name, alpha, beta in activations_of(node)[direction * count : (direction + 1) * count]:
        if name not in FUNCTIONS and name not in WITH_NUMBERS:
            raise ValueError(f"activation {name} is not defined")
        if alpha != alpha or beta != beta:
            raise ValueError(f"activation {name} needs numbers in activation_alpha and activation_beta")
        function = FUNCTIONS.get(name) or partial(with_numbers, WITH_NUMBERS[name].function, alpha, beta)
        is_clipped = node.get("clip") and (node.op != "LSTM" or len(found) < CELL)
        found.append(partial(clipped, function, node.get("clip")) if is_clipped else function)
    return found


def with_numbers(function: Callable[[Array, float, float], Any], alpha: float, beta: float, x: Array) -> Any:
    return function(x, alpha, beta)


def clipped(function: Function, largest: float, x: Array) -> Any:
    return function(np.clip(x, -largest, largest))


def missing_kernel(node: Node) -> str:
    """What a node has that the primitives do not; "" for one that they compute."""
    usual = [GivenActivation(name) for name in USUAL_FUNCTIONS[node.op] * len(directions_of(node))]
    given = activations_of(node)
    if node.op == "RNN" and len(set(given)) == 1 and given[0].name in ACTIVATIONS:
        given = usual
    if given != usual:
        names = [", ".join(function.name for function in functions) for functions in (given, usual)]
        return f"activations {names[0]} have no kernel, {names[1]} have"
    return next((f"{name}={node.get(name)} has no kernel" for name in ("clip", "input_forget") if node.get(name)), "")


def cell_of(node: Node) -> str:
    """As asmdnn.recurrent calls it."""
    return {"LSTM": "lstm", "RNN": "rnn", "GRU": "lbr_gru" if node.get("linear_before_reset", 0) else "gru"}[node.op]


def layer(
    node: Node, x: Array, w: Array, r: Array, *more: Array | None, handed: Function | None = None
) -> tuple[Array, ...]:
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
    reset, forget = (bool(node.get(name, 0)) for name in ("linear_before_reset", "input_forget"))
    own = SequenceLayer(node.op, directions_of(node), functions, reset, forget, handed)
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


def of_floats(node: Node) -> Node:
    """The LSTM that one of bytes stands for."""
    return replace(node, op="LSTM", domain="")


def dynamic_layer(
    node: Node, x: Array, w: Array, r: Array, w_scales: Array, r_scales: Array, *more: Array | None
) -> tuple[Array, ...]:
    """An LSTM of s8 weights, with scales [directions, gates * h], whose x and h are rounded to bytes as they come."""
    weights = (array.astype(np.float64) * scales[..., None] for array, scales in ((w, w_scales), (r, r_scales)))
    found = layer(of_floats(node), as_bytes(x), *weights, *more, handed=as_bytes)
    return tuple(array.astype(x.dtype) for array in found)


def dynamic_types(
    node: Node, x: Value, w: Value, r: Value, w_scales: Value, r_scales: Value, *more: Value | None
) -> list[Type]:
    return types(of_floats(node), x, w, r, *more)


OPERATORS = {op: Operator(layer, types) for op in USUAL_FUNCTIONS}
