"""Scales and shifts after a convolution become part of its weights and bias.

    s * (sum of w * x + b) + t = sum of (s * w) * x + (s * b + t)

with s and t one number, or one for each output channel.  Batch normalisation is s = scale / sqrt(variance + epsilon),
t = shift - s * mean; Mul, Div, Add and Sub with constants are the others.  Computed in double precision and rounded
once: against the separate operators each weight and bias has one rounding of 2^-24 of its value.  Only after: in
front of a convolution a shift would meet the padding, so batch normalisation there becomes a multiplication and an
addition, which maps.py puts after the kernel before.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from asmdnn.network.folding.remembered import Remembered
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.static import StaticGraph, needed

CONVOLUTIONS = {"Conv": 0, "ConvTranspose": 1}  # the dim of weights that counts output channels


class Affine(NamedTuple):
    """scale * x + shift, each f64 of one element or one a channel."""

    x: str
    scale: Array
    shift: Array


def fold_affine(graph: StaticGraph, remembered: Remembered) -> StaticGraph:
    """The graph with such nodes inside the weights, and other batch normalisations as products and sums."""
    readers, values = graph.readers(), dict(graph.values)
    makers: dict[str, Node] = {}
    nodes: dict[str, Node] = {}  # by result, in order
    for node in graph.nodes:
        affine = affine_of(graph, node)
        maker = makers.get(affine.x) if affine else None
        if affine and maker and readers[affine.x] == 1 and is_foldable(values, maker):
            del nodes[maker.outputs[0]]
            made = [absorbed(values, maker, affine, node, remembered)]
        elif affine and node.op == "BatchNormalization":
            made = written_out(values, node, affine)
        else:
            made = [node]
        for new in made:
            nodes[new.outputs[0]] = makers[new.outputs[0]] = new
    kept = needed(list(nodes.values()), graph.outputs.values())
    return StaticGraph(graph.inputs, graph.outputs, kept, values)


def is_foldable(values: Mapping[str, Value], node: Node) -> bool:
    """Whether the node is a convolution with constant weights and bias."""
    if node.op not in CONVOLUTIONS or (node.op == "ConvTranspose" and node.get("group", 1) > 1):
        return False
    return all(values[name].data is not None for name in node.inputs[1:] if name != NOTHING)


def affine_of(graph: StaticGraph, node: Node) -> Affine | None:
    """What a node does to channels, if it is only that."""
    data = [None if not name else graph.values[name].data for name in node.inputs]
    if node.op == "BatchNormalization" and all(x is not None for x in data[1:]):
        scale, shift, mean, variance = (np.asarray(x, np.float64) for x in data[1:5])
        factor = scale / np.sqrt(variance + node.get("epsilon", 1e-5))
        return Affine(node.inputs[0], factor, shift - factor * mean)
    if node.op not in ("Add", "Sub", "Mul", "Div") or graph.values[node.outputs[0]].dtype != np.float32:
        return None
    constants = [i for i, x in enumerate(data) if x is not None]
    if len(constants) != 1 or (constants == [0] and node.op in ("Sub", "Div")):
        return None
    x = node.inputs[1 - constants[0]]
    values = channel_values(np.asarray(data[constants[0]], np.float64), graph.shape(x))
    if values is None or graph.shape(x) != graph.shape(node.outputs[0]):
        return None
    if node.op in ("Add", "Sub"):
        return Affine(x, np.ones(1), values if node.op == "Add" else -values)
    if node.op == "Div" and not values.all():
        return None  # x / 0 depends on the sign of x
    return Affine(x, values if node.op == "Mul" else 1 / values, np.zeros(1))


def channel_values(array: Array, shape: tuple[int, ...]) -> Array | None:
    """A constant as one number, or one for each channel; None if it is something else."""
    if array.size == 1:
        return array.reshape(1)
    dims = (1,) * (len(shape) - array.ndim) + array.shape
    is_of_channels = len(shape) > 1 and dims == (1, shape[1], *[1] * (len(shape) - 2))
    return array.reshape(-1) if is_of_channels else None


def absorbed(values: dict[str, Value], conv: Node, affine: Affine, node: Node, remembered: Remembered) -> Node:
    """The convolution with other weights, in the place of the node after it."""
    names = (f"scaled {node.outputs[0]}", f"shifted {node.outputs[0]}")
    old = [values[name].data if name != NOTHING else None for name in (*conv.inputs[1:], NOTHING)[:2]]
    given = [values[name].data if name != NOTHING else None for name in node.inputs]
    words = ("absorbed", conv.op, node.op, node.get("epsilon"), node.inputs.index(affine.x))
    made = remembered.arrays(words, (*old, *given), lambda: scaled_weights(conv.op, old, affine))
    values |= {name: Value(array.shape, array.dtype, array) for name, array in zip(names, made, strict=True)}
    inputs = (conv.inputs[0], *names)
    return Node(
        conv.op, inputs, node.outputs, attributes=conv.attributes, name=conv.name, domain=conv.domain, opset=conv.opset
    )


def scaled_weights(op: str, old: Sequence[Array | None], affine: Affine) -> tuple[Array, Array]:
    """Weights and bias, f32, of those that a convolution has."""
    weights, bias = (np.zeros(1) if x is None else np.asarray(x) for x in old)
    axis = CONVOLUTIONS[op]
    channels = weights.shape[axis]
    scale, shift = (np.broadcast_to(x, channels) for x in (affine.scale, affine.shift))
    along = scale.reshape([-1 if i == axis else 1 for i in range(weights.ndim)])
    scaled = np.empty(weights.shape, np.float32)  # rounded once: numpy computes a piece at a time in float64
    np.multiply(weights, along, out=scaled, dtype=np.float64, casting="same_kind")
    return scaled, np.asarray(np.asarray(bias, np.float64) * scale + shift, np.float32)


def written_out(values: dict[str, Value], node: Node, affine: Affine) -> list[Node]:
    """Mul and Add with constants of channels."""
    shape = values[affine.x].shape
    result, between = node.outputs[0], f"scaled {node.outputs[0]}"
    values[between] = values[affine.x]
    for name, array in (("scale", affine.scale), ("shift", affine.shift)):
        values[f"{name} of {result}"] = constant(array.reshape(-1, *[1] * (len(shape) - 2)))
    return [
        Node(
            "Mul",
            (affine.x, f"scale of {result}"),
            (between,),
            attributes={},
            name=node.name,
            domain="",
            opset=node.opset,
        ),
        Node(
            "Add",
            (between, f"shift of {result}"),
            (result,),
            attributes={},
            name=node.name,
            domain="",
            opset=node.opset,
        ),
    ]


def constant(array: Array) -> Value:
    data = np.asarray(array, np.float32)
    return Value(data.shape, data.dtype, data)
