"""Conv and ConvTranspose as convolution and deconvolution, of one to three spatial axes and any groups."""

from functools import partial

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import any_format, stored
from asmdnn.network.fusion.maps import Group
from asmdnn.network.fusion.scaling import operands_of
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.elementwise import lower_maps
from asmdnn.network.lowering.frames import is_frames, lower_frames
from asmdnn.network.lowering.given_weights import Product, has_given_weights, lower_given, seen_as_gradient
from asmdnn.network.lowering.integer_tail import AnyTail, Start, tail_of
from asmdnn.network.lowering.integers import (
    bias_of,
    cheapest_way,
    is_product_of_integers,
    multiplies_words,
    source_of,
    weights_of,
)
from asmdnn.network.lowering.lowering import ImageFormats, Lowering
from asmdnn.network.lowering.sources import cheapest, operand_of
from asmdnn.network.lowering.zero_points import sums_of_windows, with_sums
from asmdnn.network.operators.geometry import window_of
from asmdnn.network.operators.products import transposed_window
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.convolution_backward.description import ConvolutionBackwardData
from asmdnn.records import replace
from asmdnn.types import HALF_FLOATS, Algorithm, DataType, f32, s8

SCALES_OF_CHANNELS, SCALES_OF_IMAGES = 2, 3  # masks: of dim 1, and of dims 0 and 1
Description = ConvolutionForward | DeconvolutionForward


def lower_conv(steps: Steps, group: Group) -> None:
    """Of integers as such, if that is cheaper than as floats: it is but for some of few channels, and where a level
    multiplies bytes as words, for kernels that read bytes into f32: Winograd's and those of rows."""
    if not group.has_integers:
        is_narrow = steps.multiplies_narrow(group.result) and not has_given_weights(steps, group.node)
        convolve_narrow(steps, group) if is_narrow else convolve_floats(steps, group)
        return
    if not is_product_of_integers(steps, group):
        convolve_dequantized(steps, group)
        return
    is_dense = group.node.get("group", 1) == 1
    if multiplies_words(steps.engine):
        cheapest_way(steps, group, (convolve_integers, convolve_widened))
    else:
        cheapest_way(steps, group, (convolve_integers, convolve_dequantized), takes_first=is_dense)


def convolve_widened(steps: Steps, group: Group) -> None:
    """By kernels that read bytes into f32, where there are some: they save a pass over src."""
    ways = (partial(convolve_integers, factors=f32), convolve_dequantized)
    cheapest_way(steps, group, ways, takes_first=True)


def convolve_dequantized(steps: Steps, group: Group) -> None:
    """As floats, with what is after it or without."""
    cheapest_way(steps, group, (convolve_floats, in_two_steps))


def convolve_integers(steps: Steps, group: Group, factors: DataType = s8) -> None:
    """What is after the sums is one expression of f32.  factors: what weights become; the sums of s8 are exact, those
    of f32, for kernels that read bytes into f32, nearly so.  Raises Refused."""
    node = group.node
    desc = convolution(steps, node)
    source, weights = source_of(steps, node.inputs[0]), weights_of(steps, node.inputs[1], 0, factors)
    bias = bias_of(steps, node.inputs[2]) if len(node.inputs) > 2 else np.zeros(1)
    channels = (1, -1, *[1] * (desc.src.ndims - 2))
    start = Start((source.numbers.scale * weights.scale).reshape(channels), bias.reshape(channels))
    sums = None if weights.rest is None else sums_of_windows(steps, group, source, desc)
    start = with_sums(start, weights, sums, channels)
    tail = tail_of(steps, group, None, start, reads_bytes=True)
    formats = {
        "src": any_format(desc.src.dims, source.dtype),
        "weights": any_format(desc.weights.dims, factors),
        "dst": steps.result_format(desc.dst.dims, stored(steps.value(group.result))),
        "bias": None,
    }
    desc, attr = desc.with_formats(formats), Attr(tail.post_ops(), zero_points=source.zero_points)  # type: ignore[arg-type]
    place = cheapest(steps, source.name, steps.bytes_of(source.name), desc, attr)
    desc = desc.with_formats({"src": place.desc})
    array = weights.array.reshape(desc.weights.dims)
    constants = {"weights": (weights.name, array), **source.constants}
    if factors == f32:
        constants["weights"] = (f"{weights.name} as f32", array.astype(np.float32))
    places = {"src": place, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=attr)


def convolve_narrow(steps: Steps, group: Group) -> None:
    """Of a narrow type, with sums of f32; the bias stays f32."""
    node = group.node
    desc: Description = deconvolution(steps, node) if node.op == "ConvTranspose" else convolution(steps, node)
    constants, tail = constants_of(steps, node, desc), tail_of(steps, group, reads_bytes=True)
    dtype = steps.factor_type(group.result)
    formats = {
        "src": any_format(desc.src.dims, dtype),
        "weights": any_format(desc.weights.dims, dtype),
        "dst": steps.result_format(desc.dst.dims, steps.type_of(group.result)),
    }
    desc, attr = desc.with_formats(formats), tail.attr()
    place = operand_of(steps, node.inputs[0], desc, attr)
    desc = desc.with_formats({"src": place.desc})
    places = {"src": place, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=attr)


def in_two_steps(steps: Steps, group: Group) -> None:
    """Of floats to floats, and what is after it by itself."""
    if group.main is None or not group.maps:
        raise Refused("there is nothing after it")
    convolve_floats(steps, replace(group, maps=(), result=group.x))
    lower_maps(steps, Group(None, group.maps, group.x, group.result, floats=group.floats))


def convolve_floats(steps: Steps, group: Group) -> None:
    """src in the format that the primitive prefers, weights packed once, maps after it as post-ops."""
    node = group.node
    is_transposed = node.op == "ConvTranspose"
    desc: Description = deconvolution(steps, node) if is_transposed else convolution(steps, node)
    if group.scale is None and has_given_weights(steps, node):
        lower_given(steps, (node, *group.maps), group.label, desc, tail_of(steps, group))
        return
    constants, tail = constants_of(steps, node, desc), tail_of(steps, group)
    desc = desc.with_formats({"dst": steps.result_format(desc.dst.dims, steps.type_of(group.result))})
    if not is_transposed and group.scale is None and is_frames(steps, node, tail):
        lower_frames(steps, group, constants, tail)
        return
    x, scales, attr = scaled(steps, group, tail)
    is_narrow = steps.kept(x).desc.dtype in HALF_FLOATS
    source = operand_of(steps, x, desc, attr) if is_narrow else cheapest(steps, x, steps.place(x), desc, attr)
    if steps.chosen(desc, "src", attr) != source.desc:  # else it is planned already
        desc = desc.with_formats({"src": source.desc})
    places = {"src": source, **scales, **tail.places()}
    steps.add(group.nodes, group.label, desc, places, {"dst": group.result}, constants=constants, attr=attr)


def scaled(steps: Steps, group: Group, tail: AnyTail) -> tuple[str, dict[str, Place], Attr]:
    """The operand, the argument that scales its channels, and both kinds of attributes."""
    if group.scale is None:
        return group.node.inputs[0], {}, tail.attr()
    found = operands_of(steps.graph, group.scale.inputs, steps.shape(group.scale.outputs[0]))
    assert found is not None, "as the group was made"
    x, name = found
    images, channels = steps.shape(name)[:2]
    plain = steps.plain(name)
    vector = Place(plain.buffer, plain.desc.reshape((images * channels,)))
    attr = Attr(tail.post_ops(), scales={"src": scale_mask(steps.shape(name), steps.shape(x))})
    return x, {"src_scales": vector}, attr


def scale_mask(scales: tuple[int, ...], x: tuple[int, ...]) -> int:
    """Of scales for each channel of x, the same for all images or not."""
    return SCALES_OF_CHANNELS if scales[0] < x[0] else SCALES_OF_IMAGES


def constants_of(steps: Steps, node: Node, desc: Description) -> dict[str, tuple[str, Array]]:
    """Weights, with the description's dims, and bias, with their names.  Raises Refused for what is computed."""
    names = {"weights": node.inputs[1]}
    if len(node.inputs) > 2 and node.inputs[2] != NOTHING:
        names["bias"] = node.inputs[2]
    constants = dict[str, tuple[str, Array]]()
    for argument, name in names.items():
        array = steps.constant(name)
        if array is None:
            raise Refused(f"its {argument} {name} is no constant")
        constants[argument] = (name, array)
    name, weights = constants["weights"]
    if node.op == "ConvTranspose":
        weights = adjoint(weights, node.get("group", 1))
    return {**constants, "weights": (name, weights.reshape(desc.weights.dims))}


def tensors(steps: Steps, node: Node, weights: tuple[int, ...]) -> dict[str, MemoryDesc | None]:
    """With formats left to the primitive."""
    groups, out = node.get("group", 1), weights[0]
    if groups > 1:
        weights = (groups, out // groups, *weights[1:])
    has_bias = node.op != "ConvInteger" and len(node.inputs) > 2 and node.inputs[2] != NOTHING
    return {
        "src": any_format(steps.shape(node.inputs[0])),
        "weights": any_format(weights),
        "bias": MemoryDesc((out,), f32, "a") if has_bias else None,
        "dst": steps.result_format(steps.shape(node.outputs[0])),
    }


def convolution(steps: Steps, node: Node) -> ConvolutionForward:
    """Winograd's algorithm where it is expected to be faster; padding after is what dst needs."""
    (x, w), result = (steps.shape(name) for name in node.inputs[:2]), steps.shape(node.outputs[0])
    window = window_of(node, x[2:], w[2:])
    return ConvolutionForward(
        **tensors(steps, node, w),  # type: ignore[arg-type]
        algorithm=Algorithm.convolution_auto,
        strides=window.strides,
        dilations=tuple(d - 1 for d in window.dilations),
        padding_l=window.before,
        padding_r=tuple(
            (o - 1) * s + (k - 1) * d + 1 - n - a
            for o, n, k, s, d, a, _ in zip(result[2:], x[2:], *window.fields(), strict=True)
        ),
    )


def given_product(steps: Steps, node: Node, dtype: DataType) -> Product:
    """What lowering plans where weights are data, of operands of a type."""
    product = seen_as_gradient(deconvolution(steps, node) if node.op == "ConvTranspose" else convolution(steps, node))
    source = "diff_dst" if isinstance(product, ConvolutionBackwardData) else "src"
    tensors = {name: getattr(product, name).dims for name in (source, "weights")}
    return product.with_formats({name: any_format(dims, dtype) for name, dims in tensors.items()})


def deconvolution(steps: Steps, node: Node) -> DeconvolutionForward:
    """Output padding is padding after below 0."""
    (x, w), result = (steps.shape(name) for name in node.inputs[:2]), steps.shape(node.outputs[0])
    window, _ = transposed_window(node, x[2:], w[2:])
    return DeconvolutionForward(
        **tensors(steps, node, (result[1], w[0] // node.get("group", 1), *w[2:])),  # type: ignore[arg-type]
        strides=window.strides,
        dilations=tuple(d - 1 for d in window.dilations),
        padding_l=window.before,
        padding_r=tuple(
            (n - 1) * s + (k - 1) * d + 1 - a - o
            for o, n, k, s, d, a, _ in zip(result[2:], x[2:], *window.fields(), strict=True)
        ),
    )


def adjoint(weights: Array, groups: int) -> Array:
    """ONNX's (c, o / groups, ...) as (o, c / groups, ...)."""
    parts = [part.swapaxes(0, 1) for part in np.split(weights, groups)]
    return np.concatenate(parts)


LOWERINGS = dict.fromkeys(("Conv", "ConvTranspose"), Lowering(lower_conv, ImageFormats.CHOOSES, of_floats=True))
