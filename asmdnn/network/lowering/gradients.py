"""Gradients as the primitives of backward passes, on values as they lie where these take them so."""

from typing import Any

from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Node
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.maps import Tail
from asmdnn.network.lowering.pooling import places_of
from asmdnn.network.lowering.sources import as_wanted, operand_of
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.operators.windows import pooling
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.channel_gradients.description import GroupNormBackward
from asmdnn.primitives.convolution_backward.description import ConvolutionBackwardWeights
from asmdnn.primitives.normalization.channel_description import GroupNormForward
from asmdnn.primitives.normalization.layer_description import LayerNormForward
from asmdnn.primitives.pooling.description import PoolingForward
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.primitives.row_gradients.description import LayerNormBackward, SoftmaxBackward
from asmdnn.primitives.softmax.description import SoftmaxAlgorithm
from asmdnn.types import Algorithm, DataType, PoolingAlgorithm, PropKind, f32

TRAINING = PropKind.forward_training


def weights_gradient(steps: Steps, node: Node, dtype: DataType = f32) -> ConvolutionBackwardWeights:
    """Of src and diff_dst of a type in any formats; diff_weights plain, as parameters are."""
    (n, c, *sizes), dims, result = (steps.shape(name) for name in (*node.inputs, node.outputs[0]))
    window, groups = window_of(node, tuple(sizes), node.get("kernel_shape")), node.get("group", 1)
    plain = row_major((groups, result[0] // groups, *result[1:]) if groups > 1 else result)
    return ConvolutionBackwardWeights(
        any_format((n, c, *sizes), dtype),
        plain,
        any_format(dims, dtype),
        strides=window.strides,
        dilations=tuple(step - 1 for step in window.dilations),
        padding_l=window.before,
        padding_r=tuple(
            (o - 1) * s + (k - 1) * t + 1 - m - a
            for o, m, k, s, t, a, _ in zip(dims[2:], sizes, *window.fields(), strict=True)
        ),
        algorithm=Algorithm.convolution_auto,
        diff_bias=row_major(dims[1:2]) if len(node.outputs) > 1 else None,
    )


def lower_conv_weights(steps: Steps, group: Group) -> None:
    """src and diff_dst as they lie, or as the primitive likes them; of a narrow type copies of both.  An update of the
    weights is a post-op, if there is no gradient of a bias."""
    node, dtype = group.node, steps.factor_type(group.node.outputs[0])
    tail = Tail(steps, group.maps, group.x, further=group.further)
    desc = weights_gradient(steps, node, dtype)
    names = dict(zip(("src", "diff_dst"), node.inputs, strict=True))
    if dtype == f32:
        places = as_wanted(steps, desc, names)
    else:
        places = {argument: operand_of(steps, name, desc, NO_ATTR, argument) for argument, name in names.items()}
    desc = desc.with_formats({name: place.desc for name, place in places.items()})
    results = {"diff_weights": group.result, **tail.results("diff_weights")}
    if desc.diff_bias is not None:
        results["diff_bias"] = node.outputs[1]
    steps.add(group.nodes, group.label, desc, {**places, **tail.places()}, results, attr=tail.attr())


def window_fields(node: Node, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Of a pooling's description.  Raises Refused."""
    window, _ = pooling(node, sizes)
    if min((*window.before, *window.after)) < 0:
        raise Refused("negative padding has no kernel")
    asked = tuple(node.get("pads", ()))[len(sizes) :] or (0,) * len(sizes)
    return {
        "kernel": window.kernel,
        "strides": window.strides,
        "dilations": tuple(step - 1 for step in window.dilations),
        "padding_l": window.before,
        "padding_r": asked if node.get("auto_pad", "NOTSET") == "NOTSET" else window.after,
    }


def lower_max_pool(steps: Steps, group: Group) -> None:
    """Each element is summed from its windows, which the forward pass has looked through; if another one has, the
    maxima are found anew."""
    node = group.node
    x, d = node.inputs
    dims, fields = steps.shape(d), window_fields(node, steps.shape(x)[2:])
    found = maxima_of(steps, node)
    if found is None:
        source, plain = steps.plain(x), row_major(dims)
        forward = PoolingForward(
            "max", source.desc, plain, **fields, indices=row_major(dims, places_of(fields["kernel"]))
        )
        steps.add((), f"{group.label}: places", forward, {"src": source}, {"dst": "", "indices": ""})
        found = made(steps, "indices")
    lies = found.desc
    diff_dst = steps.place(d, MemoryDesc(dims, f32, strides=lies.strides, inner_blocks=lies.inner_blocks))
    desc = PoolingBackward("max", any_format(steps.shape(x)), diff_dst.desc, **fields, indices=lies)
    steps.add(group.nodes, group.label, desc, {"diff_dst": diff_dst, "indices": found}, {"diff_src": group.result})


def maxima_of(steps: Steps, node: Node) -> Place | None:
    """What the forward pass has written of the same windows."""
    same = (
        other.outputs[0]
        for other in steps.graph.nodes
        if other.key == "MaxPool" and other.inputs[0] == node.inputs[0] and other.attributes == node.attributes
    )
    return next((steps.left[name] for name in same if name in steps.left), None)


def made(steps: Steps, argument: str) -> Place:
    """What the last step has made beside its value."""
    step = steps.steps[-1]
    return Place(step.buffers[argument], step.pd.plan.tensors[argument])


def lower_average_pool(steps: Steps, group: Group) -> None:
    node = group.node
    image = tuple(node.get("image"))
    includes = node.get("count_include_pad", 0) and any(node.get("pads", ()))
    if includes and node.get("ceil_mode", 0):
        raise Refused("means that count padding, but not what ceil_mode adds, have no kernel")
    average: PoolingAlgorithm = "avg_include_padding" if includes else "avg_exclude_padding"
    after = steps.place(node.inputs[0])
    desc = PoolingBackward(average, any_format(image), after.desc, **window_fields(node, image[2:]))
    steps.add(group.nodes, group.label, desc, {"diff_dst": after}, {"diff_src": group.result})


def lower_softmax(steps: Steps, group: Group) -> None:
    """Both tensors as the first of them lies."""
    node = group.node
    dst = steps.place(node.inputs[0])
    after = steps.place(node.inputs[1], dst.desc)
    alg: SoftmaxAlgorithm = "log" if node.get("log") else "accurate"
    desc = SoftmaxBackward(alg, dst.desc, after.desc, any_format(dst.desc.dims), node.get("axis"))
    steps.add(group.nodes, group.label, desc, {"dst": dst, "diff_dst": after}, {"diff_src": group.result})


def lower_layer_norm(steps: Steps, group: Group) -> None:
    """The statistics are computed anew, by the forward pass."""
    node = group.node
    x, d, scale = (steps.plain(name) for name in node.inputs)
    rms, epsilon, vector = bool(node.get("rms")), node.get("epsilon"), row_major(x.desc.dims[:1])
    means: dict[str, Any] = {} if rms else {"mean": vector}
    forward = LayerNormForward(TRAINING, x.desc, row_major(x.desc.dims), epsilon, **means, variance=vector, rms=rms)
    found = dict.fromkeys(("dst", *means, "variance"), "")
    steps.add((), f"{group.label}: statistics", forward, {"src": x}, found)
    places = {"src": x, "diff_dst": d, "scale": scale, **{name: made(steps, name) for name in (*means, "variance")}}
    columns = row_major(x.desc.dims[1:])
    desc = LayerNormBackward(
        x.desc, d.desc, row_major(x.desc.dims), vector if means else None, variance=vector, epsilon=epsilon,
        scale=scale.desc, diff_scale=columns, diff_shift=None if rms else columns, rms=rms,
    )  # fmt: skip
    if rms and node.outputs[2] in read_by_others(steps):
        raise Refused("an RMS norm has no shift")
    names = ("diff_src", "diff_scale") if rms else ("diff_src", "diff_scale", "diff_shift")
    steps.add(group.nodes, group.label, desc, places, dict(zip(names, node.outputs, strict=False)))


def lower_group_norm(steps: Steps, group: Group) -> None:
    """src and diff_dst as the first of them lies; the statistics are computed anew, by the forward pass."""
    node = group.node
    x, scale = steps.place(node.inputs[0]), steps.plain(node.inputs[2])
    d = steps.place(node.inputs[1], x.desc)
    groups, epsilon = node.get("num_groups"), node.get("epsilon")
    statistics, vector = row_major((x.desc.dims[0], groups)), row_major(x.desc.dims[1:2])
    both: dict[str, Any] = dict.fromkeys(("mean", "variance"), statistics)
    forward = GroupNormForward(TRAINING, x.desc, any_format(x.desc.dims), groups, epsilon, **both)
    found = dict.fromkeys(("dst", *both), "")
    steps.add((), f"{group.label}: statistics", forward, {"src": x}, found)
    places = {"src": x, "diff_dst": d, "scale": scale, **{name: made(steps, name) for name in both}}
    desc = GroupNormBackward(
        x.desc, d.desc, any_format(x.desc.dims), groups, **both, epsilon=epsilon,
        scale=vector, diff_scale=vector, diff_shift=vector,
    )  # fmt: skip
    names = ("diff_src", "diff_scale", "diff_shift")
    steps.add(group.nodes, group.label, desc, places, dict(zip(names, node.outputs, strict=True)))


def read_by_others(steps: Steps) -> set[str]:
    return {name for node in steps.graph.nodes for name in node.inputs}


LOWERINGS = {
    "asmdnn.ConvWeightsGradient": lower_conv_weights,
    "asmdnn.MaxPoolGradient": lower_max_pool,
    "asmdnn.AveragePoolGradient": lower_average_pool,
    "asmdnn.SoftmaxGradient": lower_softmax,
    "asmdnn.LayerNormGradient": lower_layer_norm,
    "asmdnn.GroupNormGradient": lower_group_norm,
}
