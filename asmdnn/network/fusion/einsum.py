"""Einstein sums, written as the moves and the products that they are.

Of two operands, each of their labels is of one of four kinds: in both and in what follows (a batch of products), in
both alone (what is summed), in one of them and what follows (rows, or columns).  So

    a to (batch.., rows, summed), b to (batch.., summed, columns), their product to (batch.., rows.., columns..), turned

What follows is the result, and other operands: of several, two are multiplied that make the smallest product, then two
of what is left.  Labels that only one operand has and the result lacks are summed before, and a label that comes twice
in one is its diagonal.  Dims of 1 that meet others are left out.  Other types than f32 stay as they are.  The order of
sums, so the rounding, is that of MatMul.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.einsum import labels_of as labels_of_equation
from asmdnn.network.static import StaticGraph
from asmdnn.records import replace

OPSET = 13
COMPUTED: dict[str, Callable[..., Array]] = {
    "Transpose": lambda how, x: x.transpose(how["perm"]), "Reshape": lambda how, x, dims: x.reshape(dims),
    "Gather": lambda how, x, places: x.take(places, how["axis"]), "MatMul": lambda how, a, b: a @ b,
    "ReduceSum": lambda how, x, axes: x.sum(tuple(axes.tolist())),
}  # fmt: skip
SPARE = "ΑΒΓΔΕΖΗΘΙΚΛΜ"  # labels of the dims that an ellipsis stands for; no equation has Greek ones


def products(graph: StaticGraph) -> StaticGraph:
    """The graph without such Einsums."""
    values, nodes = dict(graph.values), list[Node]()
    for node in graph.nodes:
        nodes += decomposed(values, node) if node.op == "Einsum" and not node.domain else [node]
    return StaticGraph(graph.inputs, graph.outputs, tuple(nodes), values)


def decomposed(values: dict[str, Value], node: Node) -> list[Node]:
    """The nodes in the place of one; itself if it is of another form."""
    shapes = [values[name].shape for name in node.inputs]
    terms, result = labels_of(node.get("equation"), shapes)
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            known = sizes.get(label, 1)
            sizes[label] = size if known == 1 else known
    if any(values[name].dtype != np.float32 for name in node.inputs):
        return [node]
    decomposition = EinsumDecomposition(values, node, sizes)
    operands = [decomposition.own_dims(name, term) for name, term in zip(node.inputs, terms, strict=True)]
    operands = [decomposition.diagonal(*operand) for operand in operands]
    for i, (name, term) in enumerate(operands):
        operands[i] = decomposition.summed(name, term, kept(operands, (i,), result))
    while len(operands) > 1:
        i, j = cheapest_pair(operands, result, sizes)
        made = decomposition.product(*operands[i], *operands[j], kept(operands, (i, j), result))
        operands = [each for at, each in enumerate(operands) if at not in (i, j)] + [made]
    decomposition.finish(*operands[0], result)
    return decomposition.nodes


def labels_of(equation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[str], str]:
    """The labels of each operand's dims, and of the result's, a character each; types have checked the equation."""
    terms, result = labels_of_equation(equation, [len(shape) for shape in shapes])
    one = {str(-1 - i): label for i, label in enumerate(SPARE)}  # of the dims that an ellipsis stands for
    *found, made = ("".join(one.get(label, label) for label in labels) for labels in (*terms, result))
    return found, made


def kept(operands: Sequence[tuple[str, str]], of: tuple[int, ...], result: str) -> str:
    """The labels that some operands and what follows have."""
    after = set(result).union(*(term for i, (_, term) in enumerate(operands) if i not in of))
    return "".join(dict.fromkeys(label for i in of for label in operands[i][1] if label in after))


def cheapest_pair(operands: Sequence[tuple[str, str]], result: str, sizes: dict[str, int]) -> tuple[int, int]:
    """Whose product has the fewest elements, then the fewest multiplications."""

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        every = {*operands[pair[0]][1], *operands[pair[1]][1]}
        return prod(sizes[label] for label in kept(operands, pair, result)), prod(sizes[label] for label in every)

    return min(combinations(range(len(operands)), 2), key=cost)


class EinsumDecomposition:
    """The nodes of one sum, as they are written down; what is computed of constants is constant."""

    def __init__(self, values: dict[str, Value], node: Node, sizes: dict[str, int]) -> None:
        self.values, self.node, self.sizes, self.nodes = values, node, sizes, list[Node]()

    def own_dims(self, name: str, term: str) -> tuple[str, str]:
        """Without dims of 1 whose labels are larger in others: each element there meets the one here."""
        dims = self.values[name].shape
        own = [i for i, label in enumerate(term) if dims[i] == self.sizes[label]]
        return self.reshaped(name, tuple(dims[i] for i in own)), "".join(term[i] for i in own)

    def diagonal(self, name: str, term: str) -> tuple[str, str]:
        """Of labels that come twice and more, once: rows of a matrix, of which every so many are taken."""
        for label in dict.fromkeys(term):
            axes = [i for i, each in enumerate(term) if each == label]
            if len(axes) > 1:
                others = term.replace(label, "")
                name, size = self.turned_by(name, axes), self.sizes[label]
                dims = self.dims(others)
                step = sum(size**power for power in range(len(axes)))
                flat = self.reshaped(name, (*dims, size ** len(axes)))
                places = self.constant(np.arange(size, dtype=np.int64) * step)
                name = self.apply("Gather", (flat, places), (*dims, size), {"axis": len(dims)})
                term = others + label
        return name, term

    def turned_by(self, name: str, axes: Sequence[int]) -> str:
        """With these axes last."""
        shape = self.values[name].shape
        perm = (*(i for i in range(len(shape)) if i not in axes), *axes)
        dims = tuple(shape[i] for i in perm)
        return name if perm == tuple(range(len(shape))) else self.apply("Transpose", (name,), dims, {"perm": perm})

    def summed(self, name: str, term: str, kept: str) -> tuple[str, str]:
        """Without the labels that nobody else has."""
        axes = np.array([i for i, label in enumerate(term) if label not in kept], np.int64)
        if not axes.size:
            return name, term
        return self.apply("ReduceSum", (name, self.constant(axes)), self.dims(kept), {"keepdims": 0}), kept

    def product(self, a: str, first: str, b: str, second: str, result: str) -> tuple[str, str]:
        """The product's name and labels."""
        both = [label for label in first if label in second]
        batch = "".join(label for label in both if label in result)
        summed = "".join(label for label in both if label not in result)
        rows, columns = ("".join(x for x in term if x not in both) for term in (first, second))
        x = self.shaped(self.turned(a, first, batch + rows + summed), batch, (rows, summed))
        y = self.shaped(self.turned(b, second, batch + summed + columns), batch, (summed, columns))
        dims = (*self.dims(batch), self.size(rows), self.size(columns))
        made = self.apply("MatMul", (x, y), dims, {})
        return self.shaped(made, batch + rows + columns, ()), batch + rows + columns

    def finish(self, name: str, term: str, result: str) -> None:
        """The last node makes the result under its name."""
        perm = tuple(term.index(label) for label in result)
        if term == result and self.nodes and self.nodes[-1].outputs == (name,):
            self.nodes[-1] = replace(self.nodes[-1], outputs=self.node.outputs)
            return
        self.nodes.append(
            Node(
                "Transpose",
                (name,),
                self.node.outputs,
                attributes={"perm": perm},
                name=self.node.name,
                domain="",
                opset=OPSET,
            )
        )

    def turned(self, name: str, term: str, wanted: str) -> str:
        perm = tuple(term.index(label) for label in wanted)
        return name if wanted == term else self.apply("Transpose", (name,), self.dims(wanted), {"perm": perm})

    def shaped(self, name: str, batch: str, parts: Sequence[str]) -> str:
        """With a dim for each label of the batch, and one for each part."""
        return self.reshaped(name, (*self.dims(batch), *map(self.size, parts)))

    def reshaped(self, name: str, dims: tuple[int, ...]) -> str:
        if self.values[name].shape == dims:
            return name
        return self.apply("Reshape", (name, self.constant(np.array(dims, np.int64))), dims, {})

    def dims(self, term: str) -> tuple[int, ...]:
        return tuple(self.sizes[label] for label in term)

    def size(self, term: str) -> int:
        return prod(self.dims(term))

    def constant(self, array: Array) -> str:
        return self.value(array.shape, array)

    def value(self, shape: tuple[int, ...], data: Array | None = None) -> str:
        name = f"{self.node.outputs[0]} part {len(self.values)}"
        self.values[name] = Value(shape, np.dtype(np.float32) if data is None else data.dtype, data)
        return name

    def apply(self, op: str, inputs: tuple[str, ...], shape: tuple[int, ...], attributes: dict[str, Any]) -> str:
        """A node's result; of constants, a constant."""
        every = [self.values[name].data for name in inputs]
        if all(data is not None for data in every):
            return self.constant(np.ascontiguousarray(COMPUTED[op](attributes, *every)))
        name = self.value(shape)
        self.nodes.append(Node(op, inputs, (name,), attributes=attributes, name=self.node.name, domain="", opset=OPSET))
        return name
