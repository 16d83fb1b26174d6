"""Recurrent layers of training as the two passes of the primitives, on weights as they lie: packed in each call."""

from typing import Any

from asmdnn.network.descriptors import row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.gradients import read_by_others
from asmdnn.network.operators.trained_recurrent import ARGUMENTS, PARTS
from asmdnn.network.steps import Steps
from asmdnn.primitives.core.backward import DIFF
from asmdnn.primitives.recurrent.backward_description import (
    GRUBackward,
    LBRGRUBackward,
    LSTMBackward,
    VanillaRNNBackward,
)
from asmdnn.primitives.recurrent.description import GRUForward, LBRGRUForward, LSTMForward, VanillaRNNForward
from asmdnn.types import PropKind

FORWARD = {"rnn": VanillaRNNForward, "lstm": LSTMForward, "gru": GRUForward, "lbr_gru": LBRGRUForward}
BACKWARD = {"rnn": VanillaRNNBackward, "lstm": LSTMBackward, "gru": GRUBackward, "lbr_gru": LBRGRUBackward}
RESULTS = {"lstm": ("dst_layer", "dst_iter", "dst_iter_c"), "": ("dst_layer", "dst_iter")}


def lower_forward(steps: Steps, group: Group) -> None:
    """With the workspace if a gradient reads it; states after the last step if anybody does."""
    node = group.node
    places = places_of(steps, dict(zip(ARGUMENTS, node.inputs, strict=False)))
    outputs = dict(zip(RESULTS.get(node.get("cell"), RESULTS[""]), node.outputs, strict=False))
    is_read = read_by_others(steps) | {*steps.graph.outputs.values()}
    wanted = {name: value for name, value in outputs.items() if name == "dst_layer" or value in is_read}
    formats = {name: row_major(steps.shape(value)) for name, value in wanted.items()}
    trains = bool(PARTS[node.get("cell")]) and node.outputs[-1] in is_read
    kind = PropKind.forward_training if trains else PropKind.forward_inference
    if trains:
        wanted["workspace"] = node.outputs[-1]
    desc = FORWARD[node.get("cell")](**described(places), **formats, **common(node), prop_kind=kind)
    steps.add(group.nodes, group.label, desc, places, wanted)


def lower_backward(steps: Steps, group: Group) -> None:
    """Gradients are plain."""
    node = group.node
    count = len(ARGUMENTS)
    given = dict(zip(ARGUMENTS, node.inputs[:count], strict=True))
    wanted = {f"{DIFF}{name}": row_major(steps.shape(value)) for name, value in given.items() if value != NOTHING}
    del given["bias"]
    more = ("dst_layer", "workspace", *(f"{DIFF}{name}" for name in RESULTS["lstm"]))
    places = places_of(steps, given | dict(zip(more, node.inputs[count:], strict=False)))
    descs = described({name: place for name, place in places.items() if name != "workspace"})
    desc = BACKWARD[node.get("cell")](**descs, **wanted, **common(node))
    steps.add(group.nodes, group.label, desc, places, dict(zip(wanted, node.outputs, strict=True)))


def places_of(steps: Steps, names: dict[str, str]) -> dict[str, Place]:
    """Where they lie, in any order of axes, but without blocks."""
    found = {}
    for name, value in names.items():
        if value != NOTHING:
            place = steps.place(value)
            found[name] = steps.plain(value) if place.desc.inner_blocks else place
    return found


def described(places: dict[str, Place]) -> dict[str, Any]:
    return {name: place.desc for name, place in places.items()}


def common(node: Node) -> dict[str, Any]:
    """Arguments of both passes that are no tensors."""
    found = {"direction": node.get("direction"), "lengths": tuple(node.get("lengths") or ())}
    if node.get("cell") == "rnn":
        found |= {"activation": node.get("activation"), "alpha": node.get("alpha")}
    return found


LOWERINGS = {"asmdnn.Recurrent": lower_forward, "asmdnn.RecurrentGradient": lower_backward}
