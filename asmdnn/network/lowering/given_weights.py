"""Convolutions whose weights or bias are data of the network, such as the parameters of a training step.

The weights lie in row-major order, and are packed with every call.  The source is read as it lies, or in the format
that the primitive likes, whatever takes less together with the reorder.  A transposed convolution without a bias is
planned as the gradient that it mostly is: the same tensors under other names, with Winograd's algorithm as a way more.
"""

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.lowering.integer_tail import AnyTail
from asmdnn.network.lowering.sources import cheapest
from asmdnn.network.steps import Place, Steps
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward
from asmdnn.primitives.convolution_backward.description import ConvolutionBackwardData
from asmdnn.types import Algorithm


def has_given_weights(steps: Steps, node: Node) -> bool:
    """Whether weights or bias are no constants."""
    return any(name != NOTHING and steps.constant(name) is None for name in node.inputs[1:3])


def lower_given(
    steps: Steps, nodes: tuple[Node, ...], label: str, desc: ConvolutionForward | DeconvolutionForward, tail: AnyTail
) -> None:
    """The first of the nodes is the convolution, the others are the maps after it."""
    if isinstance(desc, DeconvolutionForward) and desc.bias is None:
        lower_adjoint(steps, nodes, label, desc, tail)
        return
    node, attr = nodes[0], tail.attr()
    weights = weights_of(steps, node, desc.weights.dims)
    desc = desc.with_formats({"weights": weights.desc})
    source = cheapest(steps, node.inputs[0], steps.place(node.inputs[0]), desc, attr)
    places = {"src": source, "weights": weights, **tail.places()}
    if desc.bias is not None:
        places["bias"] = steps.plain(node.inputs[2])
    desc = desc.with_formats({"src": source.desc})
    steps.add(nodes, label, desc, places, {"dst": nodes[-1].outputs[0]}, constants={}, attr=attr)


def lower_adjoint(steps: Steps, nodes: tuple[Node, ...], label: str, desc: DeconvolutionForward, tail: AnyTail) -> None:
    """A transposed convolution as the gradient by the data of a convolution."""
    node, attr = nodes[0], tail.attr()
    groups, dims = node.get("group", 1), steps.shape(node.inputs[1])
    plain = steps.plain(node.inputs[1])
    weights = Place(plain.buffer, plain.desc.reshape((groups, dims[0] // groups, *dims[1:]) if groups > 1 else dims))
    adjoint = ConvolutionBackwardData(
        diff_src=desc.dst,
        weights=weights.desc,
        diff_dst=desc.src,
        strides=desc.strides,
        dilations=desc.dilations,
        padding_l=desc.padding_l,
        padding_r=desc.padding_r,
        algorithm=Algorithm.convolution_auto,
    )
    source = cheapest(steps, node.inputs[0], steps.place(node.inputs[0]), adjoint, attr, "diff_dst")
    places = {"diff_dst": source, "weights": weights, **tail.places()}
    adjoint = adjoint.with_formats({"diff_dst": source.desc})
    steps.add(nodes, label, adjoint, places, {"diff_src": nodes[-1].outputs[0]}, constants={}, attr=attr)


def weights_of(steps: Steps, node: Node, dims: tuple[int, ...]) -> Place:
    """The weights as a convolution counts their axes; those of ConvTranspose have inputs first, in every group."""
    plain = steps.plain(node.inputs[1])
    if node.op != "ConvTranspose":
        return Place(plain.buffer, plain.desc.reshape(dims))
    first = len(dims) - len(plain.desc.dims)  # 1 of several groups
    order = list(range(len(dims)))
    order[first : first + 2] = order[first + 1], order[first]
    turned = plain.desc.reshape(tuple(dims[axis] for axis in order)).permute_axes(tuple(order))
    return Place(plain.buffer, turned)
