"""RNN, LSTM and GRU as the recurrent primitives, their weights packed once."""

from typing import Any

import numpy as np

from asmdnn import recurrent
from asmdnn.definitions.recurrent.sequences import USUAL_FUNCTIONS
from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.recurrent import (
    ACTIVATIONS,
    DIRECTIONS,
    activations_of,
    cell_of,
    directions_of,
    missing_kernel,
)
from asmdnn.network.steps import Place, Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.recurrent.description import GRUForward, LBRGRUForward, LSTMForward, VanillaRNNForward


def lower_recurrent(steps: Steps, group: Group) -> None:
    """x is [t, n, i]; Y is [t, directions, n, h], a permutation of how the primitive writes it.  With a layout of 1,
    sequences come first in all of them, which are permutations, too."""
    node = group.main
    assert node is not None
    x, w, r, b, lengths, h0, c0, p = (*node.inputs, *[NOTHING] * 8)[:8]
    directions = len(directions_of(node))
    reason = missing_kernel(node)
    if reason:
        raise Refused(reason)
    weights = weights_of(steps, node, (w, r, b, p))
    source, size = steps.plain(x), weights["weights_iter"].shape[2]
    if is_batch_first(node):
        source = Place(source.buffer, source.desc.permute_axes((1, 0, 2)))
    t, n, _ = source.desc.dims
    descs: dict[str, Any] = {name: any_format(array.shape) for name, array in weights.items() if name != "bias"}
    descs |= {name: row_major(weights[name].shape) for name in ("bias", "weights_peephole") if name in weights}
    places = {"src_layer": source}
    places |= {name: state_at(steps, node, h) for name, h in (("src_iter", h0), ("src_iter_c", c0)) if h != NOTHING}
    outputs = (*node.outputs, NOTHING, NOTHING)
    results = {"dst_layer": outputs[0], "dst_iter": outputs[1], "dst_iter_c": outputs[2]}
    state = row_major((1, directions, n, size))
    descs |= {name: state for name in ("dst_iter", "dst_iter_c") if results[name]}
    if node.op == "LSTM" and "dst_iter" in descs:
        descs.setdefault("dst_iter_c", state)
    desc = make(node, {
        **descs, **{name: place.desc for name, place in places.items()},
        "dst_layer": row_major((t, n, directions * size)),
        "direction": DIRECTIONS[node.get("direction", "forward")], "lengths": lengths_of(steps, lengths, t),
    })  # fmt: skip
    wanted = {name: value for name, value in results.items() if name in (*descs, "dst_layer")}
    constants = {name: (f"{w} {name}", array) for name, array in weights.items()}
    steps.add(group.nodes, group.label, desc, places, wanted, constants)
    rows = row_major((t, n, directions * size)).reshape((t, n, directions, size))
    seen_as = {outputs[0]: rows if is_batch_first(node) else rows.permute_axes((0, 2, 1, 3))}
    seen_as |= dict.fromkeys(outputs[1:3], state.reshape((directions, n, size)))
    for value, as_written in seen_as.items():
        if value:
            (made,) = steps.places[value]
            axes = (1, 0, *range(2, as_written.ndims)) if is_batch_first(node) else range(as_written.ndims)
            steps.places[value] = [Place(made.buffer, as_written.permute_axes(tuple(axes)))]


def is_batch_first(node: Node) -> bool:
    return bool(node.get("layout", 0))


def state_at(steps: Steps, node: Node, name: str) -> Place:
    """An initial state as [1, directions, n, h]."""
    plain = steps.plain(name)
    if is_batch_first(node):
        n, directions, size = plain.desc.dims
        return Place(plain.buffer, plain.desc.reshape((1, n, directions, size)).permute_axes((0, 2, 1, 3)))
    return Place(plain.buffer, plain.desc.reshape((1, *plain.desc.dims)))


def weights_of(steps: Steps, node: Node, names: tuple[str, ...]) -> dict[str, Array]:
    """In the primitives' order of dims and gates."""
    data = []
    for name in names:
        value = steps.value(name).data if name != NOTHING else None
        if name != NOTHING and value is None:
            raise Refused(f"its weights {name} are no constant")
        data.append(value)
    return {name: np.asarray(array) for name, array in recurrent.from_onnx(cell_of(node), *data).items()}


def lengths_of(steps: Steps, name: str, t: int) -> tuple[int, ...]:
    """How many steps each sequence has; () if all have t."""
    if name == NOTHING:
        return ()
    data = steps.value(name).data
    if data is None:
        raise Refused(f"its sequence_lens {name} is no constant")
    found = tuple(int(n) for n in data)
    return () if all(n == t for n in found) else found


def make(node: Node, arguments: dict[str, Any]) -> Any:
    if node.op == "RNN":
        name, alpha, _ = activations_of(node)[0]
        return VanillaRNNForward(**arguments, activation=ACTIVATIONS[name], alpha=alpha)
    if node.op == "LSTM":
        return LSTMForward(**arguments)
    return (LBRGRUForward if node.get("linear_before_reset", 0) else GRUForward)(**arguments)


LOWERINGS = dict.fromkeys(USUAL_FUNCTIONS, lower_recurrent)
