"""Recurrent layers, step by step, as ONNX's reference states them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.activations import logistic
from asmdnn.network.operators.definition import Operator, Type, Value

FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "sigmoid": logistic,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
}
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


def directions_of(node: Node) -> tuple[bool, ...]:
    """Whether each direction goes backwards."""
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[node.get("direction", "forward")]


def functions_of(node: Node, direction: int) -> list[Callable[[Array], Any]]:
    usual = DEFAULTS[node.op]
    names = node.get("activations") or usual * len(directions_of(node))
    own = names[direction * len(usual) : (direction + 1) * len(usual)]
    if any(name.lower() not in FUNCTIONS for name in own) or node.get("clip") or node.get("layout", 0):
        raise Unimplemented(
            f"{node}: activations {names}, clip {node.get('clip')}, layout {node.get('layout', 0)} are not defined"
        )
    return [FUNCTIONS[name.lower()] for name in own]


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


def layer(
    node: Node, x: Array, w: Array, r: Array, b: Array | None = None, lengths: Array | None = None,
    h0: Array | None = None, c0: Array | None = None, p: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """x: [t, n, i]; w: [directions, gates * h, i]; r: [directions, gates * h, h]; b: both biases."""
    if lengths is not None and (np.asarray(lengths) != x.shape[0]).any():
        raise ValueError("sequence_lens that differ are not defined")
    outputs, lasts, cells = [], [], []
    for d, backwards in enumerate(directions_of(node)):
        size = r.shape[-1]
        wb, rb = np.split(b[d], 2) if b is not None else (np.zeros(1, x.dtype), np.zeros(w.shape[1], x.dtype))
        h = h0[d] if h0 is not None else np.zeros((x.shape[1], size), x.dtype)
        c = c0[d] if c0 is not None else np.zeros_like(h)
        f, steps = functions_of(node, d), []
        for t in range(x.shape[0])[:: -1 if backwards else 1]:
            gates = x[t] @ w[d].T + wb
            if node.op == "LSTM":
                h, c = lstm_step(f, gates + rb, h, c, r[d], None if p is None else p[d])
            elif node.op == "GRU":
                h = gru_step(node, f, gates, h, r[d], rb)
            else:
                h = np.asarray(f[0](gates + h @ r[d].T + rb))
            steps.append(h)
        outputs.append(np.stack(steps[::-1] if backwards else steps))
        lasts.append(h)
        cells.append(c)
    results = (np.stack(outputs, 1), np.stack(lasts), np.stack(cells))
    return results if node.op == "LSTM" else results[:2]


def types(node: Node, x: Value, w: Value, r: Value, *_: Value | None) -> list[Type]:
    (t, n), size, directions = x.shape[:2], r.shape[-1], len(directions_of(node))
    for direction in range(directions):
        functions_of(node, direction)
    states = [((directions, n, size), x.dtype)] * (2 if node.op == "LSTM" else 1)
    return [((t, directions, n, size), x.dtype), *states]


OPERATORS = {op: Operator(layer, types) for op in DEFAULTS}
