"""A 1x1 convolution after enlarging images comes before it, where it has fewer pixels.

    conv(resize(x))                        =  resize(conv(x))
    conv(concat(resize(x), resize(y), z))  =  resize(conv_x(x)) + resize(conv_y(y)) + conv_z(z)

Both are linear, one in channels, the other in pixels, so they change places; a bias does, too, since the shares of
pixels that linear and nearest resizing take add up to 1.  Heads of segmentation networks join images of several scales
so (Xie et al. 2021, SegFormer).  The same products in another order of sums.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from asmdnn.network.fusion.integers import with_names
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.resizing import CROP, coordinates_of, resize_inputs
from asmdnn.network.static import StaticGraph, needed

OPSET = 13
LEAST_CHANNELS = 32  # of an image: below, a pass over the sums costs more than the products that it saves
LEAST_GROWTH = 2  # how many times as many pixels
MOST_WIDENING = 2  # how many times as many channels are resized as before
BY_SHARES = ("nearest", "linear")  # cubic shares are below 0, and roundings grow


class ConvolvedPart(NamedTuple):
    """Channels that a convolution reads: a value, from which channel on, and what enlarges it, if something does."""

    name: str
    begin: int
    end: int
    resize: Node | None


def convolved_first(graph: StaticGraph) -> StaticGraph:
    """The graph with such convolutions in front."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    readers, values, nodes = graph.readers(), dict(graph.values), list[Node]()
    for node in graph.nodes:
        parts = parts_of(graph, node, makers, readers) if is_pointwise(graph, node) else []
        if any(part.resize for part in parts):
            nodes += Exchange(values, node, parts).nodes()
        else:
            nodes.append(node)
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), values)


def is_pointwise(graph: StaticGraph, node: Node) -> bool:
    """Whether a node is a convolution with constant weights that reads each pixel by itself."""
    if node.key != "Conv" or not all(graph.is_constant(name) for name in node.inputs[1:] if name != NOTHING):
        return False
    dims = graph.shape(node.inputs[1])
    is_whole = graph.shape(node.inputs[0])[2:] == graph.shape(node.outputs[0])[2:]  # so nothing is padded or left out
    return is_whole and max(dims[2:]) == 1 and node.get("group", 1) == 1 and not any(node.get("pads", ()))


def parts_of(
    graph: StaticGraph, node: Node, makers: Mapping[str, Node], readers: Mapping[str, int]
) -> list[ConvolvedPart]:
    """What a convolution reads, in order of its channels."""
    x, count = node.inputs[0], graph.shape(node.outputs[0])[1]
    join, names = makers.get(x), node.inputs[:1]
    if join is not None and join.key == "Concat" and readers[x] == 1:
        if join.get("axis") not in (1, 1 - len(graph.shape(x))):
            return []
        names = join.inputs
    ends = np.cumsum([graph.shape(name)[1] for name in names]).tolist()
    found = list[ConvolvedPart]()
    for name, end in zip(names, ends, strict=True):
        resize = makers.get(name)
        gains = resize is not None and readers[name] == 1 and is_enlarging(graph, resize, count)
        found.append(ConvolvedPart(name, end - graph.shape(name)[1], end, resize if gains else None))
    return found


def is_enlarging(graph: StaticGraph, node: Node, outputs: int) -> bool:
    """Whether it pays to resize the results of a convolution instead."""
    if node.domain or node.op not in ("Resize", "Upsample"):
        return False
    (x, *_), (result,) = node.inputs, node.outputs
    before, after = graph.shape(x), graph.shape(result)
    grows = prod(after) >= LEAST_GROWTH * prod(before) > 0 and before[:2] == after[:2]
    plain = node.get("mode", "nearest") in BY_SHARES and coordinates_of(node) != CROP
    is_wide = before[1] >= LEAST_CHANNELS and outputs <= MOST_WIDENING * before[1]
    return grows and plain and is_wide and graph.values[result].dtype == np.float32


class Exchange:
    """The nodes in the place of a convolution; made: so far."""

    def __init__(self, values: dict[str, Value], conv: Node, parts: Sequence[ConvolvedPart]) -> None:
        self.values, self.conv, self.parts, self.made = values, conv, parts, list[Node]()
        (self.result,) = conv.outputs

    def nodes(self) -> list[Node]:
        plain = [part for part in self.parts if part.resize is None]
        terms = [self.convolution(self.joined(plain), plain, is_first=True)] if plain else []
        for part in self.parts:
            if part.resize is not None:
                small = self.convolution(part.resize.inputs[0], [part], is_first=not terms)
                terms.append(self.enlarged(part.resize, small))
        total, *rest = terms
        for term in rest:
            total = self.then(
                Node("Add", (total, term), (f"{total} + {term}",), attributes={}, name="", domain="", opset=OPSET)
            )
        last = self.made[-1]
        return [*self.made[:-1], with_names(last, last.inputs, (self.result,))]

    def then(self, node: Node) -> str:
        """Adds a node that makes an image of the result's size."""
        (name,) = node.outputs
        self.values[name] = self.values[self.result]
        self.made.append(node)
        return name

    def joined(self, plain: Sequence[ConvolvedPart]) -> str:
        """What is not enlarged."""
        if len(plain) == 1:
            return plain[0].name
        names = tuple(part.name for part in plain)
        name, first = f"{self.result} of {', '.join(names)}", self.values[names[0]]
        channels = sum(part.end - part.begin for part in plain)
        self.values[name] = Value((first.shape[0], channels, *first.shape[2:]), first.dtype)
        self.made.append(Node("Concat", names, (name,), attributes={"axis": 1}, name="", domain="", opset=OPSET))
        return name

    def convolution(self, x: str, parts: Sequence[ConvolvedPart], is_first: bool) -> str:
        """Of these channels alone; the first one has the bias."""
        weights, conv = self.values[self.conv.inputs[1]].data, self.conv
        assert weights is not None, "it is constant"
        result, dims = f"{self.result} of {x}, summed", self.values[x].shape
        some = np.concatenate([weights[:, part.begin : part.end] for part in parts], axis=1)
        names = [x, self.constant(f"weights of {result}", some), *conv.inputs[2:][:is_first]]
        self.values[result] = Value((dims[0], len(weights), *dims[2:]), self.values[self.result].dtype)
        self.made.append(with_names(conv, names, (result,)))
        return result

    def enlarged(self, resize: Node, x: str) -> str:
        """The same resizing of other channels; sizes that say how many are written anew."""
        _, *names = resize.inputs
        _, _, sizes = resize_inputs(resize, tuple(self.values[name].data if name else None for name in names))
        if sizes is not None and np.size(sizes) == len(dims := self.values[self.result].shape):
            names[2] = self.constant(f"sizes of {x}", np.array(dims, np.int64))
        return self.then(with_names(resize, (x, *names), (f"{x}, enlarged",)))

    def constant(self, name: str, data: Array) -> str:
        self.values[name] = Value(data.shape, data.dtype, data)
        return name
