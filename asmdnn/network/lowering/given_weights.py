"""Convolutions whose weights or bias are data of the network: read as they lie, by the ways for plain weights."""

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.lowering.integer_tail import AnyTail
from asmdnn.network.steps import Place, Steps
from asmdnn.primitives.convolution.description import ConvolutionForward, DeconvolutionForward


def has_given_weights(steps: Steps, node: Node) -> bool:
    """Whether weights or bias are no constants."""
    return any(name != NOTHING and steps.constant(name) is None for name in node.inputs[1:3])


def lower_given(
    steps: Steps, nodes: tuple[Node, ...], label: str, desc: ConvolutionForward | DeconvolutionForward, tail: AnyTail
) -> None:
    """The first of the nodes is the convolution, the others are the maps after it."""
    node = nodes[0]
    source, weights = steps.plain(node.inputs[0]), weights_of(steps, node, desc.weights.dims)
    places = {"src": source, "weights": weights, **tail.places()}
    if desc.bias is not None:
        places["bias"] = steps.plain(node.inputs[2])
    formats = {"src": source.desc, "weights": weights.desc}
    steps.add(
        nodes, label, desc.with_formats(formats), places, {"dst": nodes[-1].outputs[0]}, constants={}, attr=tail.attr()
    )


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
