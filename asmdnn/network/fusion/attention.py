"""Products, a softmax, and what stands between them become attention, whose scores never leave the cache.

    softmax((a Q) (b K)^T c + mask) V  =  attention(Q, K, V, mask) with the scale a b c

a, b, c: numbers that a graph multiplies or divides by in front of the product or after it, as its exporter writes them;
mask: a tensor that is added after them, or Where with constant places that get a number of -10,000 or less: added to
scores which are small beside it, such a number gives the same zeros.  Heads are any batch axes, up to two.  A scale is
rounded once instead of up to three times; else each value has the roundings of the product, softmax and product.
"""

from typing import NamedTuple

import numpy as np

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.moves import permutation
from asmdnn.network.operators.normalization import softmax_axes
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import StaticGraph, needed

NDIMS = 4
EXCLUDED = -1e4  # a number that hides a key from a row
VIEWS_OPSET = 13  # axes of Unsqueeze are an input


class Scores(NamedTuple):
    """What a softmax is taken of: query keys scale + mask, keys being (..., d, keys)."""

    query: str
    keys: str
    scale: float
    mask: str


def attended(graph: StaticGraph) -> StaticGraph:
    """The graph with attention as single nodes."""
    return Attended(graph).graph()


class Attended:
    """Finds the parts and writes the nodes that stand for them."""

    def __init__(self, graph: StaticGraph) -> None:
        self.source, self.values = graph, dict(graph.values)
        self.makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
        self.readers = graph.readers()

    def graph(self) -> StaticGraph:
        nodes = list[Node]()
        for node in self.source.nodes:
            nodes += self.attention(node) or [node]
        kept = needed(nodes, self.source.outputs.values())
        return StaticGraph(self.source.inputs, self.source.outputs, kept, self.values)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def attention(self, last: Node) -> list[Node]:
        """The nodes in the place of the second product; none if it is another one."""
        softmax = self.single(last.inputs[0], "Softmax") if last.op == "MatMul" and not last.domain else None
        if softmax is None or softmax_axes(softmax, ndim := len(self.shape(last.inputs[0]))) != (ndim - 1,):
            return []
        scores = self.scores(softmax.inputs[0])
        if scores is None or not self.fits(scores, last.inputs[1]):
            return []
        result, nodes = last.outputs[0], list[Node]()
        names = [scores.query, self.turned(nodes, scores.keys, f"keys of {result}"), last.inputs[1]]
        names += [scores.mask] if scores.mask else []
        names = [self.with_axes(nodes, name, f"{name} of {result}") for name in names]
        made = result if ndim == NDIMS else f"{result} of four dims"
        self.values[made] = Value((*[1] * (NDIMS - ndim), *self.shape(result)), self.values[result].dtype)
        nodes.append(Node("Attention", tuple(names), (made,), {"scale": scores.scale}, last.name, OWN))
        if made != result:
            nodes.append(
                Node(
                    "Squeeze",
                    (made, self.axes(NDIMS - ndim)),
                    (result,),
                    attributes={},
                    name="",
                    domain="",
                    opset=VIEWS_OPSET,
                )
            )
        return nodes

    def scores(self, name: str) -> Scores | None:
        """What a value is, if it is the product of queries and keys, scaled and masked."""
        scale, mask = 1.0, NOTHING
        while True:
            node = self.single(name, "Mul", "Div", "Add", "Where", "MatMul")
            if node is None:
                return None
            if node.op == "MatMul":
                (query, a), (keys, b) = map(self.unscaled, node.inputs)
                return Scores(query, keys, a * b * scale, mask)
            factor = self.factor(node)
            if factor is not None:
                name, scale = factor[0], scale * factor[1]
                continue
            masked = self.masked(node) if not mask and scale == 1.0 else None
            if masked is None:
                return None
            name, mask = masked

    def single(self, name: str, *ops: str) -> Node | None:
        """The node of one of these operators that makes an f32 value for a single reader."""
        node = self.makers.get(name)
        fits = node is not None and self.readers[name] == 1 and node.op in ops and not node.domain
        return node if fits and self.values[name].dtype == np.float32 else None

    def number(self, name: str) -> float | None:
        data = self.values[name].data
        return float(data.ravel()[0]) if data is not None and data.size == 1 else None

    def factor(self, node: Node) -> tuple[str, float] | None:
        """(x, c) if a node is c x."""
        if node.op not in ("Mul", "Div") or len(node.inputs) != 2:
            return None
        for x, other in (node.inputs, node.inputs[::-1]) if node.op == "Mul" else (node.inputs,):
            number = self.number(other)
            if number and self.shape(x) == self.shape(node.outputs[0]):
                return x, number if node.op == "Mul" else 1 / number
        return None

    def unscaled(self, name: str) -> tuple[str, float]:
        """(x, c) for an operand that is c x."""
        node = self.single(name, "Mul", "Div")
        return (node is not None and self.factor(node)) or (name, 1.0)

    def masked(self, node: Node) -> tuple[str, str] | None:
        """(scores, mask) of a sum, or of Where with constant places and a number that hides."""
        if node.op == "Add":
            for x, mask in (node.inputs, node.inputs[::-1]):
                is_mask = self.values[mask].dtype == np.float32 and len(self.shape(mask)) <= len(self.shape(x))
                if is_mask and self.shape(x) == self.shape(node.outputs[0]) and self.single(x, "Mul", "Div", "MatMul"):
                    return x, mask
        if node.op != "Where":
            return None
        places, *branches = node.inputs
        hidden, numbers = self.values[places].data, [self.number(name) for name in branches]
        for i, x in enumerate(branches):
            number = numbers[1 - i]
            if hidden is None or number is None or number > EXCLUDED or self.shape(x) != self.shape(node.outputs[0]):
                continue
            mask, is_hidden = f"mask of {node.outputs[0]}", hidden.astype(bool) != (i == 0)
            added = np.where(is_hidden, np.float32(number), np.float32(0))
            self.values[mask] = Value(added.shape, added.dtype, added)
            return x, mask
        return None

    def fits(self, scores: Scores, value: str) -> bool:
        """Whether the axes are those of attention, with the same batches and heads."""
        query, keys, values = (self.shape(name) for name in (scores.query, scores.keys, value))
        return 2 <= len(query) <= NDIMS and len(query) == len(keys) == len(values) and (
            query[:-2] == keys[:-2] == values[:-2] and 0 not in (*query, *keys, *values)
        )  # fmt: skip

    def turned(self, nodes: list[Node], name: str, made: str) -> str:
        """Keys as rows: what was transposed, or another view of them."""
        shape = self.shape(name)
        order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
        maker = self.makers.get(name)
        if maker is not None and maker.key == "Transpose" and permutation(maker, len(shape)) == order:
            return maker.inputs[0]
        self.values[made] = Value((*shape[:-2], shape[-1], shape[-2]), np.dtype(np.float32))
        nodes.append(
            Node("Transpose", (name,), (made,), attributes={"perm": order}, name="", domain="", opset=VIEWS_OPSET)
        )
        return made

    def with_axes(self, nodes: list[Node], name: str, made: str) -> str:
        """A value of four dims, the first ones 1."""
        shape = self.shape(name)
        missing = NDIMS - len(shape)
        if not missing:
            return name
        self.values[made] = Value((*[1] * missing, *shape), np.dtype(np.float32))
        nodes.append(
            Node("Unsqueeze", (name, self.axes(missing)), (made,), attributes={}, name="", domain="", opset=VIEWS_OPSET)
        )
        return made

    def axes(self, count: int) -> str:
        """A constant: the first axes."""
        name, data = f"the first {count} axes", np.arange(count)
        self.values[name] = Value(data.shape, data.dtype, data)
        return name
