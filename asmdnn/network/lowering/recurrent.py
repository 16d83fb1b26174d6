"""RNN, LSTM and GRU as the recurrent primitives, their weights packed once."""

from typing import Any

import numpy as np

from asmdnn import recurrent
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.recurrent import DEFAULTS
from asmdnn.network.steps import Place, Steps, any_format, row_major
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.recurrent.description import GRUForward, LBRGRUForward, LSTMForward, VanillaRNNForward
from asmdnn.types import RNNActivation, RNNDirection

DIRECTIONS: dict[str, RNNDirection] = {
    "forward": "unidirectional_left2right",
    "reverse": "unidirectional_right2left",
    "bidirectional": "bidirectional_concat",
}
ACTIVATIONS: dict[str, RNNActivation] = {"Tanh": "tanh", "Relu": "relu", "Sigmoid": "logistic"}


def lower_recurrent(steps: Steps, group: Group) -> None:
    """x is [t, n, i]; Y is [t, directions, n, h], a permutation of how the primitive writes it."""
    node = group.main
    assert node is not None
    x, w, r, b, lengths, h0, c0, p = (*node.inputs, *[NOTHING] * 8)[:8]
    directions = 2 if node.get("direction", "forward") == "bidirectional" else 1
    check_attributes(node, directions)
    weights = weights_of(steps, node, (w, r, b, p))
    t, n, _ = steps.shape(x)
    size = weights["weights_iter"].shape[2]
    source, state = steps.plain(x), row_major((1, directions, n, size))
    descs: dict[str, Any] = {name: any_format(array.shape) for name, array in weights.items() if name != "bias"}
    if "bias" in weights:
        descs["bias"] = row_major(weights["bias"].shape)
    if "weights_peephole" in weights:
        descs["weights_peephole"] = row_major(weights["weights_peephole"].shape)
    places = {"src_layer": source}
    for argument, name in (("src_iter", h0), ("src_iter_c", c0)):
        if name != NOTHING:
            plain = steps.plain(name)
            places[argument] = Place(plain.buffer, plain.desc.reshape(state.dims))
            descs[argument] = places[argument].desc
    outputs = (*node.outputs, NOTHING, NOTHING)
    results = {"dst_layer": outputs[0], "dst_iter": outputs[1], "dst_iter_c": outputs[2]}
    descs |= {name: state for name in ("dst_iter", "dst_iter_c") if results[name]}
    if node.op == "LSTM" and "dst_iter" in descs:
        descs.setdefault("dst_iter_c", state)
    desc = make(node, {
        "src_layer": source.desc, "dst_layer": row_major((t, n, directions * size)),
        "direction": DIRECTIONS[node.get("direction", "forward")], "lengths": lengths_of(steps, lengths, t), **descs,
    })  # fmt: skip
    wanted = {name: value for name, value in results.items() if name in (*descs, "dst_layer")}
    constants = {name: (f"{w} {name}", array) for name, array in weights.items()}
    steps.add(group.nodes, group.label, desc, places, wanted, constants)
    if outputs[0]:
        (made,) = steps.places[outputs[0]]
        rows = row_major((t, n, directions * size)).reshape((t, n, directions, size)).permute_axes((0, 2, 1, 3))
        steps.places[outputs[0]] = [Place(made.buffer, rows)]


def check_attributes(node: Node, directions: int) -> None:
    """Raise Refused for what the primitives do not have."""
    usual = DEFAULTS[node.op] * directions
    given = tuple(name.capitalize() for name in node.get("activations") or usual)
    if node.op == "RNN" and len(set(given)) == 1 and given[0] in ACTIVATIONS:
        given = usual
    if given != usual:
        raise Refused(f"activations {', '.join(given)} have no kernel, {', '.join(usual)} have")
    for name in ("clip", "layout", "input_forget"):
        if node.get(name):
            raise Refused(f"{name}={node.get(name)} has no kernel")


def weights_of(steps: Steps, node: Node, names: tuple[str, ...]) -> dict[str, Array]:
    """In the primitives' order of dims and gates."""
    data = []
    for name in names:
        value = steps.value(name).data if name != NOTHING else None
        if name != NOTHING and value is None:
            raise Refused(f"its weights {name} are no constant")
        data.append(value)
    cell = {"LSTM": "lstm", "RNN": "rnn", "GRU": "lbr_gru" if node.get("linear_before_reset", 0) else "gru"}[node.op]
    return {name: np.asarray(array) for name, array in recurrent.from_onnx(cell, *data).items()}


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
        name = (node.get("activations") or ("Tanh",))[0].capitalize()
        return VanillaRNNForward(**arguments, activation=ACTIVATIONS[name])
    if node.op == "LSTM":
        return LSTMForward(**arguments)
    return (LBRGRUForward if node.get("linear_before_reset", 0) else GRUForward)(**arguments)


LOWERINGS = dict.fromkeys(DEFAULTS, lower_recurrent)
