"""A body with constants computed and per-channel arithmetic in its convolutions, as a quantiser wants to see it.

    BatchNorm(conv(x, w, b)) = conv(x, f w, f b + d),    f = gamma / sqrt(var + epsilon),  d = beta - f mean

and so are Add, Sub, Mul and Div by constants of channels.  A file's integers are those of the folded weights.
"""

from collections.abc import Collection, Mapping

import numpy as np

from asmdnn.errors import AsmdnnError
from asmdnn.network.graph import NOTHING, Array, Body, Node, captured
from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.operators.table import operator_of
from asmdnn.network.quantized.writing import BodyWriter
from asmdnn.records import replace

NORM = "BatchNormalization"
ARITHMETIC = ("Add", "Sub", "Mul", "Div")
GROWS = ("ConstantOfShape", "Expand", "Tile", "Range")  # and so stay nodes
EPSILON = 1e-5  # ONNX's default
Affine = tuple[Array, Array]  # factor and shift by channel, f64


def folded(body: Body, opset: int, kept: Collection[str] = ()) -> Body:
    """The same function, with fewer nodes.  kept: names of nodes or results that stay as they are."""
    return Folder(with_constants(body, opset), opset, kept).folded()


def with_constants(body: Body, opset: int) -> Body:
    """The body with constants for nodes that read nothing else."""
    writer = BodyWriter(body, opset)
    held = {name for node in body.nodes for name in captured(node)} | {*body.outputs}
    for node in body.nodes:
        found = computed(node, writer.constants)
        if found is None or held & {*node.outputs}:
            writer.nodes.append(node)
        else:
            writer.constants.update({name: x for name, x in zip(node.outputs, found, strict=False) if name != NOTHING})
    return writer.body()


def computed(node: Node, known: Mapping[str, Array]) -> tuple[Array, ...] | None:
    """The results of a node whose operands are all known; None for others, and for what makes much of little."""
    names = [name for name in node.inputs if name != NOTHING]
    is_constant = node.key == "Constant" or (names and known.keys() >= {*names})
    if not is_constant or captured(node) or node.op in GROWS or operator_of(node) is None:
        return None
    try:
        return results_of(node, [None if name == NOTHING else known[name] for name in node.inputs])
    except AsmdnnError:  # which the network's plan will say
        return None


class Folder(BodyWriter):
    """convolutions: the place of each among the nodes, by its result, if only one node reads that."""

    def __init__(self, body: Body, opset: int, kept: Collection[str]) -> None:
        super().__init__(body, opset)
        self.kept = {*kept}
        reads = [name for node in body.nodes for name in (*node.inputs, *captured(node))] + [*body.outputs]
        self.single = {name for name in {*reads} if reads.count(name) == 1}
        self.convolutions: dict[str, int] = {}

    def folded(self) -> Body:
        for node in self.given.nodes:
            is_kept = self.kept & {node.name, *node.outputs}
            if is_kept or not self.absorb(node):
                if not is_kept and node.key == "Conv" and self.is_constant(node):
                    self.convolutions[node.outputs[0]] = len(self.nodes)
                self.nodes.append(node)
        return self.body()

    def is_constant(self, conv: Node) -> bool:
        given = [name for name in conv.inputs[1:] if name != NOTHING]
        return all(name in self.constants and self.constants[name].dtype == np.float32 for name in given)

    def absorb(self, node: Node) -> bool:
        """Whether a node has become part of the convolution in front."""
        x = next((name for name in node.inputs if name in self.convolutions and name in self.single), None)
        if x is None or node.domain or node.outputs[0] == NOTHING:
            return False
        at = self.convolutions[x]
        conv = self.nodes[at]
        weights = self.constants[conv.inputs[1]]
        found = self.affine(node, x, weights)
        if found is None:
            return False
        factor, shift = found
        bias = self.constants[conv.inputs[2]] if len(conv.inputs) > 2 and conv.inputs[2] else np.zeros(len(weights))
        spread = factor.reshape(-1, *[1] * (weights.ndim - 1))
        ends = (
            self.constant(f"{conv.inputs[1]} folded", (weights * spread).astype(np.float32)),
            self.constant(f"{conv.outputs[0]} bias", (bias * factor + shift).astype(np.float32)),
        )
        self.nodes[at] = replace(conv, inputs=(conv.inputs[0], *ends), outputs=node.outputs[:1])
        del self.convolutions[x]
        self.convolutions[node.outputs[0]] = at
        return True

    def affine(self, node: Node, x: str, weights: Array) -> Affine | None:
        """What a node does to each channel of x; None if that is not known, or something else."""
        channels, others = len(weights), [name for name in node.inputs if name != x]
        if not all(name in self.constants for name in others) or x in others:
            return None
        arrays = [self.constants[name].astype(np.float64) for name in others]
        if node.op == NORM:
            if node.inputs[0] != x or node.get("training_mode", 0) or any(name for name in node.outputs[1:]):
                return None
            gamma, beta, mean, variance = arrays
            factor = gamma / np.sqrt(variance + node.get("epsilon", EPSILON))
            return factor, beta - factor * mean
        if node.op not in ARITHMETIC or len(arrays) != 1:
            return None
        number = by_channel(arrays[0], channels, weights.ndim - 2)
        if number is None or (node.op in ("Sub", "Div") and node.inputs[0] != x):
            return None
        ones, zeros = np.ones(channels), np.zeros(channels)
        if node.op == "Div" and not number.all():
            return None
        return {"Add": (ones, number), "Sub": (ones, -number), "Mul": (number, zeros)}.get(
            node.op, (1 / np.where(number == 0, 1, number), zeros)
        )


def by_channel(array: Array, channels: int, spatial: int) -> Array | None:
    """An operand that broadcasts along batch and positions, as one number for each channel."""
    if array.ndim > spatial + 2:
        return None
    if array.size == 1:
        return np.full(channels, array.ravel()[0])
    dims = (1,) * (spatial + 2 - array.ndim) + array.shape
    return array.ravel() if dims == (1, channels, *[1] * spatial) else None
