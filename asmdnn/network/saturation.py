"""What share of numbers their type cuts off: where QuantizeLinear makes integers, and at ends of 16 bits."""

from collections.abc import Iterable, Mapping

import numpy as np

from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.conversion import SMALL_INTEGERS
from asmdnn.network.operators.quantization import is_integer, spread
from asmdnn.network.passing import is_half
from asmdnn.network.quantized.weights import QUANTIZE
from asmdnn.network.static import StaticGraph


def cut_off(graph: StaticGraph, nodes: Iterable[Node], known: Mapping[str, Array]) -> float:
    """The largest share of new integers that their type cuts off; those below 0 are no loss where 0 is the least
    integer.  known: all values by their definitions."""
    return max((share_of(graph, node, known) for node in nodes), default=0.0)


def share_of(graph: StaticGraph, node: Node, known: Mapping[str, Array]) -> float:
    """Of a node's result; 0 for nodes that make no integers of floats."""
    if node.op == QUANTIZE and not node.domain:
        return quantized_share(graph, node, known)
    if node.op == "Clip" and not node.domain:
        return held_share(graph, node, known)
    return 0.0


def quantized_share(graph: StaticGraph, node: Node, known: Mapping[str, Array]) -> float:
    dtype = graph.values[node.outputs[0]].dtype
    x, scale, zero = (known.get(name) if name != NOTHING else None for name in (*node.inputs, NOTHING)[:3])
    if x is None or scale is None or not x.size or not is_integer(dtype):
        return 0.0
    least, most = SMALL_INTEGERS.get(dtype.name) or (np.iinfo(dtype).min, np.iinfo(dtype).max)
    points = np.zeros(1) if zero is None else zero.astype(np.float64)
    numbers = x / spread(node, scale.astype(np.float64), x.shape) + spread(node, points, x.shape)
    return outside(numbers, least, most, has_below=bool(points.min() > least))


def held_share(graph: StaticGraph, clip: Node, known: Mapping[str, Array]) -> float:
    """Of words, as network/fusion/several_scales.py makes them: steps that a Clip holds, and what is no number."""
    steps, *ends = clip.inputs
    makers = {name: node for node in graph.nodes for name in node.outputs}
    choices = [node for node in graph.nodes if node.op == "Where" and node.inputs[1:] == (ends[0], clip.outputs[0])]
    tests = [makers.get(node.inputs[0]) for node in choices]
    if steps not in known or not any(test and test.op == "IsNaN" and test.inputs == (steps,) for test in tests):
        return 0.0
    least, most = (float(known[name]) for name in ends)
    points = known[makers[steps].inputs[1]] if makers[steps].op == "Add" else np.zeros(1)
    return outside(known[steps], least, most, has_below=bool(points.min() > least))


def outside(numbers: Array, least: float, most: float, has_below: bool) -> float:
    with np.errstate(invalid="ignore"):
        cut = numbers > most + 0.5
        return float((cut | (numbers < least - 0.5) if has_below else cut).mean())


def overflown(graph: StaticGraph, name: str, known: Mapping[str, Array]) -> float:
    """The share of an output of 16 bits that is infinite, and finite before it was rounded to them."""
    value = graph.outputs[name]
    maker = next((node for node in graph.nodes if value in node.outputs), None)
    if maker is None or maker.op != "Cast" or not is_half(graph.values[value].dtype) or not known[value].size:
        return 0.0
    return float((np.isinf(known[value].astype(np.float32)) & np.isfinite(known[maker.inputs[0]])).mean())
