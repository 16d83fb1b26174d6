"""Padding with zeros in front of a convolution becomes the convolution's own, which reads none of it.

    conv(pad(x)) with padding p  =  conv(x) with padding p + the widths

for spatial axes.  Products with zeros are left out, so the same sums.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.moves import pad_widths
from asmdnn.network.static import StaticGraph, needed


def padded_within(graph: StaticGraph) -> StaticGraph:
    """The graph with such padding inside convolutions."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    nodes = []
    for node in graph.nodes:
        pad = makers.get(node.inputs[0]) if node.op == "Conv" and not node.domain else None
        found = padding_of(graph, pad) if pad is not None else None
        if (
            pad is not None
            and found is not None
            and found[1] == 0
            and node.get("auto_pad", "NOTSET") in ("NOTSET", "VALID")
        ):
            inputs = (pad.inputs[0], *node.inputs[1:])
            attributes = {**node.attributes, "pads": together(node.attributes, found[0]), "auto_pad": "NOTSET"}
            node = Node(
                node.op, inputs, node.outputs, attributes=attributes, name=node.name, domain="", opset=node.opset
            )
        nodes.append(node)
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), graph.values)


def padding_of(graph: StaticGraph, pad: Node) -> tuple[list[tuple[int, int]], float] | None:
    """(in front, after) of every spatial axis, and the number that is there; None if it is another padding."""
    if pad.op != "Pad" or pad.domain or pad.get("mode", "constant") != "constant":
        return None
    names = (*pad.inputs[1:], *[NOTHING] * 3)[:3]
    widths, value, axes = (graph.values[name].data if name != NOTHING else None for name in names)
    if any(name != NOTHING and not graph.is_constant(name) for name in names):
        return None
    filled = pad.get("value", 0.0) if value is None else float(np.ravel(value)[0])
    found = pad_widths(pad, len(graph.shape(pad.inputs[0])), widths, axes)
    fits = not any(map(any, found[:2])) and min(map(min, found)) >= 0
    return (found[2:], filled) if fits else None


def together(attributes: Mapping[str, object], widths: list[tuple[int, int]]) -> tuple[int, ...]:
    """The convolution's padding and the widths."""
    own = attributes.get("pads") if attributes.get("auto_pad", "NOTSET") == "NOTSET" else None
    given = tuple(own) if isinstance(own, tuple) else (0,) * 2 * len(widths)
    added = (*(before for before, _ in widths), *(after for _, after in widths))
    return tuple(a + b for a, b in zip(given, added, strict=True))
