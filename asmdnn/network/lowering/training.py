"""Forward passes of training, and their gradients, as the primitives that have them."""

import numpy as np

from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.maps import Tail
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.channel_gradients.description import BatchNormBackward
from asmdnn.primitives.dropout.dropout import Dropout
from asmdnn.primitives.normalization.channel_description import BatchNormForward
from asmdnn.primitives.stochastic_rounding.stochastic_rounding import StochasticRounding
from asmdnn.types import PropKind, s32, u8


def lower_channel_norm(steps: Steps, group: Group) -> None:
    """In the format that is there, with the maps after it."""
    node = group.node
    x, (scale, shift) = steps.place(node.inputs[0]), (steps.plain(name) for name in node.inputs[1:])
    vector, tail = row_major(x.desc.dims[1:2]), Tail(steps, group.maps, group.x)
    desc = BatchNormForward(
        PropKind.forward_training, x.desc, steps.result_format(x.desc.dims), node.get("epsilon"),
        scale=vector, shift=vector, mean=vector, variance=vector,
    )  # fmt: skip
    places = {"src": x, "scale": scale, "shift": shift, **tail.places()}
    results = {"dst": group.result, "mean": node.outputs[1], "variance": node.outputs[2]}
    steps.add(group.nodes, group.label, desc, places, results, attr=tail.attr())


def lower_channel_norm_gradient(steps: Steps, group: Group) -> None:
    """src and diff_dst as the first of them lies."""
    node = group.node
    x = steps.place(node.inputs[0])
    d = steps.place(node.inputs[1], x.desc)
    scale, mean, variance = (steps.plain(name) for name in node.inputs[2:])
    vector = row_major(x.desc.dims[1:2])
    desc = BatchNormBackward(
        x.desc, d.desc, any_format(x.desc.dims), vector, vector, epsilon=node.get("epsilon"),
        scale=vector, diff_scale=vector, diff_shift=vector,
    )  # fmt: skip
    places = {"src": x, "diff_dst": d, "mean": mean, "variance": variance, "scale": scale}
    names = ("diff_src", "diff_scale", "diff_shift")
    steps.add(group.nodes, group.label, desc, places, dict(zip(names, node.outputs, strict=True)))


def lower_dropout(steps: Steps, group: Group) -> None:
    """The mask is written, too, and nobody reads it: the gradient draws the same numbers again."""
    node = group.node
    name, seed = node.inputs
    if seed not in steps.integers.given:
        raise Refused("a seed is no input")
    x = steps.plain(name)
    p = np.array([node.get("probability")], np.float32)
    places = {"src": x, "seed": Place(seed, row_major((1,), s32))}
    places["probability"] = steps.memory.add_weight(f"probability of {group.result}", p, row_major((1,)))
    desc = Dropout(x.desc, row_major(x.desc.dims), row_major(x.desc.dims, u8))
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result, "mask": ""})


def lower_rounding(steps: Steps, group: Group) -> None:
    node = group.node
    name, seed = node.inputs
    if seed not in steps.integers.given:
        raise Refused("a seed is no input")
    x = steps.plain(name)
    places = {"src": x, "seed": Place(seed, row_major((1,), s32))}
    desc = StochasticRounding(x.desc, row_major(x.desc.dims), node.get("first"))
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result})


LOWERINGS = {
    "asmdnn.ChannelNorm": lower_channel_norm,
    "asmdnn.ChannelNormGradient": lower_channel_norm_gradient,
    "asmdnn.RandomDropout": lower_dropout,
    "asmdnn.RandomRounding": lower_rounding,
}
