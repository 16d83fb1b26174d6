"""Recurrent layers, step by step, as ONNX's reference states them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from asmdnn.definitions.elementwise import logistic
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value
from asmdnn.types import RNNActivation, RNNDirection

FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "sigmoid": logistic,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}
LEAK = 0.01  # of LeakyRelu, unless activation_alpha says another one
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
MORE = ("b", "sequence_lens", "initial_h", "initial_c", "p")  # the inputs behind x, w and r
DIRECTIONS: dict[str, RNNDirection] = {
    "forward": "unidirectional_left2right",
    "reverse": "unidirectional_right2left",
    "bidirectional": "bidirectional_concat",
}  # as the primitives call them, and so
ACTIVATIONS: dict[str, RNNActivation] = {"tanh": "tanh", "relu": "relu", "leakyrelu": "relu", "sigmoid": "logistic"}
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


def directions_of(node: Node) -> tuple[bool, ...]:
    """Whether each direction goes backwards."""
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[node.get("direction", "forward")]


def activations_of(node: Node) -> list[tuple[str, float]]:
    """(name in small letters, alpha) of all functions, direction by direction.  activation_alpha has a number for each
    function that takes one, in their order."""
    usual = DEFAULTS[node.op] * len(directions_of(node))
    alphas = iter(node.get("activation_alpha") or ())
    names = [name.lower() for name in node.get("activations") or usual]
    return [(name, float(next(alphas, LEAK)) if name == "leakyrelu" else 0.0) for name in names]


def functions_of(node: Node, direction: int) -> list[Callable[[Array], Any]]:
    count, found = len(DEFAULTS[node.op]), list[Callable[[Array], Any]]()
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
    usual = [(name.lower(), 0.0) for name in DEFAULTS[node.op] * len(directions_of(node))]
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


def lstm_step(
    f: Sequence[Callable[[Array], Any]], gates: Array, h: Array, c: Array, r: Array, p: Array | None
) -> tuple[Array, Array]:
    i, o, forget, cell = np.split(gates + h @ r.T, 4, -1)
    pi, po, pf = np.split(p, 3) if p is not None else (np.zeros(1, h.dtype),) * 3
    new = f[0](forget + pf * c) * c + f[0](i + pi * c) * f[1](cell)
    return np.asarray(f[0](o + po * new) * f[2](new)), np.asarray(new)


def gru_step(node: Node, f: Sequence[Callable[[Array], Any]], gates: Array, h: Array, r: Array, rb: Array) -> Array:
    size = h.shape[-1]
    z, reset = (
        f[0](gates[..., k * size : (k + 1) * size] + h @ r[k * size : (k + 1) * size].T + rb[k * size : (k + 1) * size])
        for k in (0, 1)
    )
    rh, bias, x = r[2 * size :], rb[2 * size :], gates[..., 2 * size :]
    inner = reset * (h @ rh.T + bias) if node.get("linear_before_reset", 0) else (reset * h) @ rh.T + bias
    return np.asarray((1 - z) * f[1](x + inner) + z * h)


def layer(node: Node, x: Array, w: Array, r: Array, *more: Array | None) -> tuple[Array, ...]:
    """x: [t, n, i]; w: [directions, gates * h, i]; r: [directions, gates * h, h]; then, where given: both biases, the
    lengths, h and c at the start, and p, the peepholes.  With a layout of 1, sequences come before steps and
    directions."""
    b, lengths, h0, c0, p = more + (None,) * (5 - len(more))
    if node.get("layout", 0):
        x = x.swapaxes(0, 1)
        h0, c0 = (None if array is None else array.swapaxes(0, 1) for array in (h0, c0))
    live = np.arange(len(x))[:, None, None] < (len(x) if lengths is None else lengths[:, None])
    outputs, lasts, cells = [], [], []
    for d, backwards in enumerate(directions_of(node)):
        size = r.shape[-1]
        wb, rb = np.split(b[d], 2) if b is not None else (np.zeros(1, x.dtype), np.zeros(w.shape[1], x.dtype))
        h = h0[d] if h0 is not None else np.zeros((x.shape[1], size), x.dtype)
        c = c0[d] if c0 is not None else np.zeros_like(h)
        f, steps = functions_of(node, d), []
        for t in range(x.shape[0])[:: -1 if backwards else 1]:
            gates, new_c = x[t] @ w[d].T + wb, c
            if node.op == "LSTM":
                new, new_c = lstm_step(f, gates + rb, h, c, r[d], None if p is None else p[d])
            elif node.op == "GRU":
                new = gru_step(node, f, gates, h, r[d], rb)
            else:
                new = np.asarray(f[0](gates + h @ r[d].T + rb))
            h, c = np.where(live[t], new, h), np.where(live[t], new_c, c)
            steps.append(np.where(live[t], new, 0))
        outputs.append(np.stack(steps[::-1] if backwards else steps))
        lasts.append(h)
        cells.append(c)
    if node.get("layout", 0):
        results = (np.stack(outputs, 2).swapaxes(0, 1), np.stack(lasts, 1), np.stack(cells, 1))
    else:
        results = (np.stack(outputs, 1), np.stack(lasts), np.stack(cells))
    return results if node.op == "LSTM" else results[:2]


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


OPERATORS = {op: Operator(layer, types) for op in DEFAULTS}
