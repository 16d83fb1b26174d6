"""Recurrent layers as training has them, weights and all as data: domain "asmdnn" in a graph, never in a file.

Recurrent(x, w, r, b, h0, c0, p): a layer with dims and the order of gates as the primitives have them
(primitives/recurrent/description.py), its results y [t, n, directions u], the last h and an LSTM's last c
[1, directions, n, u], and, but for RNN, the workspace of the primitive.  What stands after r may be left out.
RecurrentGradient(x, w, r, b, h0, c0, p, y, workspace, dy, dh, dc): by each of the first seven that is there, in order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.definitions.recurrent.layers import CONCAT, LEFT2RIGHT, RIGHT2LEFT, Net, ReferenceRun
from asmdnn.definitions.recurrent.values import Function
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value

ARGUMENTS = (
    "src_layer", "weights_layer", "weights_iter", "bias", "src_iter", "src_iter_c", "weights_peephole",
)  # fmt: skip
CELLS = {"rnn": "VANILLA_RNN", "lstm": "VANILLA_LSTM", "gru": "VANILLA_GRU", "lbr_gru": "LBR_GRU"}
PARTS = {"rnn": 0, "lstm": 4, "gru": 3, "lbr_gru": 4}  # of a row of the workspace's gates
DIRECTIONS = {
    "unidirectional_left2right": LEFT2RIGHT,
    "unidirectional_right2left": RIGHT2LEFT,
    "bidirectional_concat": CONCAT,
}


def named(operands: Sequence[Any]) -> dict[str, Any]:
    """By argument, those that are there; missing ones at the end count as left out."""
    return {name: x for name, x in zip(ARGUMENTS, operands, strict=False) if x is not None}


def run_of(node: Node, operands: Sequence[Array | None]) -> ReferenceRun:
    """The layer in double precision."""
    function = Function(node.get("activation", "tanh"), node.get("alpha", 0.0))
    net = Net(CELLS[node.get("cell")], DIRECTIONS[node.get("direction")], function)
    lengths = node.get("lengths")
    return ReferenceRun(net, named(operands), np.array(lengths, np.int64) if lengths else None)


def layer(node: Node, x: Array, *operands: Array | None) -> tuple[Array, ...]:
    cell, run = node.get("cell"), run_of(node, (x, *operands))
    found = [result.value for result in run.results.values()]
    if PARTS[cell]:
        found.append(workspace(run, cell))
    return tuple(np.asarray(part, x.dtype) for part in found)


def workspace(run: ReferenceRun, cell: str) -> Array:
    """Rows of gates of each direction, then of an LSTM's c; those after a sequence's end are zeros."""
    gates, states = list[Array](), list[Array]()
    for one in run.passes.values():
        for t, step in sorted(one.steps.items()):
            live = 1.0 if one.live is None else one.live[t]
            parts = [*step.gates, step.hidden] if cell == "lbr_gru" else step.gates
            gates.append(np.concatenate([part.value * live for part in parts], 1).ravel())
            if step.c is not None:
                states.append((step.c.value * live).ravel())
    return np.concatenate([*gates, *states])


def layer_types(node: Node, x: Value, w: Value, *more: Value | None) -> list[Type]:
    (t, n, _), (_, d, _, _, u), cell = x.shape, w.shape, node.get("cell")
    state = (1, d, n, u)
    dims = [(t, n, d * u), state, *([state] if cell == "lstm" else ())]
    size = t * n * d * u * (PARTS[cell] + (cell == "lstm"))
    return [(shape, x.dtype) for shape in (*dims, *([(size,)] if size else ()))]


def gradients(node: Node, *operands: Array | None) -> tuple[Array, ...]:
    """The workspace and y are not read: the forward pass is computed again."""
    given, after = operands[: len(ARGUMENTS)], operands[len(ARGUMENTS) + 2 :]
    names = zip(("diff_dst_layer", "diff_dst_iter", "diff_dst_iter_c"), after, strict=False)
    assert operands[0] is not None, "a layer has an input"
    found = run_of(node, given).gradients({name: x for name, x in names if x is not None})
    return tuple(np.asarray(found[f"diff_{name}"].value, operands[0].dtype) for name in named(given))


def gradient_types(node: Node, *values: Value | None) -> list[Type]:
    return [(value.shape, value.dtype) for value in values[: len(ARGUMENTS)] if value is not None]


OPERATORS = {"Recurrent": Operator(layer, layer_types), "RecurrentGradient": Operator(gradients, gradient_types)}
