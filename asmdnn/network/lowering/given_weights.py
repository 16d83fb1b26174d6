"""Convolutions whose weights or bias are data of the network, such as the parameters of a training step.

The weights lie in row-major order, and are packed with every call.  The source is read as it lies, or in the format
that the primitive likes, whatever takes less together with the reorder.  A transposed convolution without a bias is
planned as the gradient that it mostly is: the same tensors under other names, with Winograd's algorithm as a way more.
What multiplies a narrow type reads copies of source and weights in it.
"""

from typing import NamedTuple

from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import any_format
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.integer_tail import AnyTail
from asmdnn.network.lowering.sources import cheapest, operand_of
from asmdnn.network.steps import Steps
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.convolution_backward.description import ConvolutionBackwardData
from asmdnn.types import Algorithm, f32

Product = ConvolutionForward | DeconvolutionForward | ConvolutionBackwardData


class ProductNames(NamedTuple):
    """What a product calls the tensor that is read beside weights, and its result."""

    src: str
    dst: str


FORWARD, GRADIENT = ProductNames("src", "dst"), ProductNames("diff_dst", "diff_src")
NAMES = {ConvolutionForward: FORWARD, DeconvolutionForward: FORWARD, ConvolutionBackwardData: GRADIENT}


def has_given_weights(steps: Steps, node: Node) -> bool:
    """Whether weights or bias are no constants."""
    return any(name != NOTHING and steps.constant(name) is None for name in node.inputs[1:3])


def lower_given(
    steps: Steps, nodes: tuple[Node, ...], label: str, desc: ConvolutionForward | DeconvolutionForward, tail: AnyTail
) -> None:
    """The first of the nodes is the convolution, the others are the maps after it."""
    node, attr, result = nodes[0], tail.attr(), nodes[-1].outputs[0]
    product, dtype = seen_as_gradient(desc), steps.factor_type(result)
    names = NAMES[type(product)]
    weights = weights_of(steps, node, desc.weights.dims, names)
    free = {names.src: any_format(desc.src.dims, dtype)}
    if dtype == f32:
        product = product.with_formats({**free, "weights": weights.desc})
        source = cheapest(steps, node.inputs[0], steps.place(node.inputs[0]), product, attr, names.src)
    else:
        product = product.with_formats({**free, "weights": any_format(weights.desc.dims, dtype)})
        source = operand_of(steps, node.inputs[0], product, attr, names.src)
    product = product.with_formats({names.src: source.desc})
    if dtype != f32:
        weights = packed(steps, node.inputs[1], weights, steps.chosen(product, "weights", attr))
    places = {names.src: source, "weights": weights, **tail.places()}
    if desc.bias is not None:
        places["bias"] = steps.plain(node.inputs[2])
    steps.add(nodes, label, product, places, {names.dst: result}, constants={}, attr=attr)


def seen_as_gradient(desc: ConvolutionForward | DeconvolutionForward) -> Product:
    """A transposed convolution without a bias as the gradient by the data of a convolution, others as they are."""
    if not isinstance(desc, DeconvolutionForward) or desc.bias is not None:
        return desc
    w = desc.weights
    axes = order_of(w.ndims, desc.src.ndims)
    return ConvolutionBackwardData(
        diff_src=desc.dst,
        weights=any_format(tuple(w.dims[axis] for axis in axes)),
        diff_dst=desc.src,
        strides=desc.strides,
        dilations=desc.dilations,
        padding_l=desc.padding_l,
        padding_r=desc.padding_r,
        algorithm=Algorithm.convolution_auto,
    )


def packed(steps: Steps, name: str, weights: Place, wanted: MemoryDesc) -> Place:
    """A parameter's weights as a product of a narrow type reads them fastest, rounded with every call."""
    target = Place(steps.memory.add(f"{name} as {wanted.dtype} panels", wanted), wanted)
    steps.reorder(weights, target, name)
    return target


def order_of(ndim: int, of_images: int) -> tuple[int, ...]:
    """The axes of weights with those of inputs and outputs exchanged; of_images: how many axes these have."""
    first = ndim - of_images  # 1 of several groups
    return (*range(first), first + 1, first, *range(first + 2, ndim))


def weights_of(steps: Steps, node: Node, dims: tuple[int, ...], names: ProductNames) -> Place:
    """The weights as the product counts their axes.  dims: those of the convolution, outputs first; ConvTranspose has
    inputs first, in every group, and so has the gradient."""
    plain = steps.plain(node.inputs[1])
    if node.op != "ConvTranspose":
        return Place(plain.buffer, plain.desc.reshape(dims))
    order = order_of(len(dims), len(plain.desc.dims))
    turned = plain.desc.reshape(tuple(dims[axis] for axis in order))
    return Place(plain.buffer, turned if names == GRADIENT else turned.permute_axes(order))
