"""Padding in front of a pooling becomes the pooling's own, which reads none of it.

    max over windows of pad(x, -infinity)  =  max over windows with that padding
    max over windows of pad(x, 0)          =  the same, of an x that is never negative, such as a Relu's
    mean over windows of pad(x, 0)         =  mean over windows with that padding, which counts as zeros

for spatial axes, if every window has an element of x.  The same numbers.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from asmdnn.network.fusion.padding import padding_of, together
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.activations import CLIP_BY_INPUTS
from asmdnn.network.static import StaticGraph, needed

NEVER_NEGATIVE = {"Relu", "Sigmoid", "HardSigmoid", "Softmax", "Abs", "Exp", "Softplus"}


def pooled_within(graph: StaticGraph) -> StaticGraph:
    """The graph with such padding inside poolings."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    nodes = [padded(graph, node, makers) for node in graph.nodes]
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), graph.values)


def padded(graph: StaticGraph, node: Node, makers: Mapping[str, Node]) -> Node:
    """The pooling with the padding in front of it, or the node as it is."""
    pad = makers.get(node.inputs[0]) if node.op in ("MaxPool", "AveragePool") and not node.domain else None
    found = padding_of(graph, pad) if pad is not None else None
    if pad is None or found is None or len(node.outputs) > 1 or not is_plain(node):
        return node
    widths, number = found
    pads = together(node.attributes, widths)
    counts = node.op == "AveragePool"
    if not fits(node, pads) or not (number == 0 if counts else is_neutral(graph, pad.inputs[0], number, makers)):
        return node
    if counts and any(node.get("pads", ())) and not node.get("count_include_pad", 0):
        return node
    attributes = {**node.attributes, "pads": pads, "auto_pad": "NOTSET"} | ({"count_include_pad": 1} if counts else {})
    return Node(
        node.op, (pad.inputs[0],), node.outputs, attributes=attributes, name=node.name, domain="", opset=node.opset
    )


def is_plain(node: Node) -> bool:
    """Whether its windows follow from its padding alone."""
    return node.get("auto_pad", "NOTSET") in ("NOTSET", "VALID") and not node.get("ceil_mode", 0)


def fits(node: Node, pads: Sequence[int]) -> bool:
    """Whether no window lies in the padding alone."""
    kernel = node.get("kernel_shape")
    dilations = node.get("dilations", (1,) * len(kernel))
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    return all(p <= r for p, r in zip(pads, (*reach, *reach), strict=True))


def is_neutral(graph: StaticGraph, x: str, number: float, makers: Mapping[str, Node]) -> bool:
    """Whether a maximum of any elements of x and the number is one of the elements."""
    return number == -np.inf or (number <= 0 and is_never_negative(graph, makers.get(x)))


def is_never_negative(graph: StaticGraph, node: Node | None) -> bool:
    """Whether an operator makes no number below 0."""
    if node is None or node.domain:
        return False
    if node.op == "Clip" and node.opset >= CLIP_BY_INPUTS and len(node.inputs) > 1 and node.inputs[1] != NOTHING:
        least = graph.values[node.inputs[1]].data
        return least is not None and float(np.ravel(least)[0]) >= 0
    return node.op in NEVER_NEGATIVE
