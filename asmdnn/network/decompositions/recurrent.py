"""RNN, LSTM and GRU as the layers that training has (operators/trained_recurrent.py): weights in the primitives' order.

ONNX stacks gates as i o f c or z r h, each with rows of outputs, and has two biases; here they are i f c~ o or u r c~,
inputs come before outputs, and biases are added, but for the second one of a GRU's candidate inside the reset.
"""

from collections.abc import Sequence
from typing import Any

from asmdnn.definitions.recurrent.sequences import USUAL_FUNCTIONS
from asmdnn.errors import shown
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import ints
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.recurrent import (
    ACTIVATIONS,
    DIRECTIONS,
    activations_of,
    cell_of,
    directions_of,
    missing_kernel,
)
from asmdnn.recurrent import ONNX_GATES, ONNX_PEEPHOLE

Names = tuple[str, ...] | None


def given(w: Decomposer, node: Node, *inputs: str) -> Names:
    """One whose weights are data; None for others, whose weights are packed once."""
    _, weights, r, b, lengths, _, _, p = (*inputs, *[NOTHING] * 8)[:8]
    names = [name for name in (weights, r, b, p) if name != NOTHING]
    constant_lengths = lengths == NOTHING or w.data(lengths) is not None
    if all(w.data(name) is not None for name in names) or missing_kernel(node) or not constant_lengths:
        return None
    return trained(w, node, *inputs)


def trained(w: Decomposer, node: Node, *inputs: str) -> Names:
    """Raises Unimplemented for what the primitives do not have."""
    x, weights, r, b, lengths, h0, c0, p = (*inputs, *[NOTHING] * 8)[:8]
    reason = missing_kernel(node)
    if not reason and lengths != NOTHING and w.data(lengths) is None:
        reason = f"its sequence_lens {shown(lengths)} is no constant"
    if reason:
        raise w.no_gradient(reason)
    cell, first = cell_of(node), bool(node.get("layout", 0))
    if first:
        x = w.turned(x, 1, 0, 2)
    (t, n, _), order = w.shape(x), ONNX_GATES[cell]
    states = [state_of(w, name, first) for name in (h0, c0)]
    operands = (x, of_gates(w, weights, order), of_gates(w, r, order), bias_of(w, b, cell), *states)
    attributes: dict[str, Any] = {"cell": cell, "direction": DIRECTIONS[node.get("direction", "forward")]}
    known = ints(w.data(lengths)) if lengths != NOTHING else ()
    if any(length != t for length in known):
        attributes["lengths"] = known
    if node.op == "RNN":
        name, alpha, _ = activations_of(node)[0]
        attributes |= {"activation": ACTIVATIONS[name], "alpha": alpha}
    count = 2 if cell == "rnn" else 4 if cell == "lstm" else 3
    y, *last = w.results("Recurrent", (*operands, peephole_of(w, p)), count, OWN, **attributes)
    directions, units = len(directions_of(node)), w.shape(r)[2]
    apart = w.reshaped(y, t, n, directions, units)
    found = [w.turned(apart, *((1, 0, 2, 3) if first else (0, 2, 1, 3)))]
    for name in last[: 2 if cell == "lstm" else 1]:
        state = w.reshaped(name, directions, n, units)
        found.append(w.turned(state, 1, 0, 2) if first else state)
    return tuple(found)


def of_gates(w: Decomposer, name: str, order: Sequence[int]) -> str:
    """[directions, gates u, c] as [1, directions, c, gates, u]."""
    directions, rows, columns = w.shape(name)
    gates = len(order)
    apart = reordered(w, w.reshaped(name, directions, gates, rows // gates, columns), order)
    return w.lifted(w.turned(apart, 0, 3, 1, 2), 0)


def reordered(w: Decomposer, x: str, order: Sequence[int]) -> str:
    """Parts of axis 1."""
    if list(order) == sorted(order):
        return x
    parts = w.results("Split", (x, w.ints(*[1] * len(order))), len(order), axis=1)
    return w.joined(1, *(parts[i] for i in order))


def bias_of(w: Decomposer, name: str, cell: str) -> str:
    """[directions, 2 gates u] as [1, directions, gates or 4, u]."""
    if name == NOTHING:
        return NOTHING
    directions, rows = w.shape(name)
    order = ONNX_GATES[cell]
    gates = len(order)
    both = w.reshaped(name, directions, 2 * gates, rows // (2 * gates))
    outer, inner = w.results("Split", (both, w.ints(gates, gates)), 2, axis=1)
    if cell == "lbr_gru":
        (outer, of_input), (inner, of_state) = (
            w.results("Split", (part, w.ints(2, 1)), 2, axis=1) for part in (outer, inner)
        )
        return w.lifted(w.joined(1, w.add(outer, inner), of_input, of_state), 0)
    return w.lifted(reordered(w, w.add(outer, inner), order), 0)


def peephole_of(w: Decomposer, name: str) -> str:
    """[directions, 3 u] as [1, directions, 3, u]."""
    if name == NOTHING:
        return NOTHING
    directions, rows = w.shape(name)
    return w.lifted(reordered(w, w.reshaped(name, directions, 3, rows // 3), ONNX_PEEPHOLE), 0)


def state_of(w: Decomposer, name: str, first: bool) -> str:
    """[directions, n, u], or with sequences first, as [1, directions, n, u]."""
    if name == NOTHING:
        return NOTHING
    return w.lifted(w.turned(name, 1, 0, 2) if first else name, 0)


DECOMPOSITIONS = dict.fromkeys(USUAL_FUNCTIONS, given)
TRAINED = dict.fromkeys(USUAL_FUNCTIONS, trained)
