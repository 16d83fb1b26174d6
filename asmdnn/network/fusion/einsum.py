"""Einstein sums of one and two operands, written as the moves and the product that they are.

With two operands, each of their labels is of one of four kinds: in both and in the result (a batch of products), in
both alone (what is summed), in one of them and the result (rows, or columns).  So

    a to (batch.., rows, summed), b to (batch.., summed, columns), their product to (batch.., rows.., columns..), turned

Labels of one operand that the result lacks are summed before.  Repeated labels, sizes that broadcast, three operands
and other types than f32 stay as they are.  The product's order of sums, so its rounding, is that of MatMul.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.static import StaticGraph
from asmdnn.records import replace

OPSET = 13
SPARE = "ΑΒΓΔΕΖΗΘΙΚΛΜ"  # labels of the dims that an ellipsis stands for; no equation has Greek ones


def products(graph: StaticGraph) -> StaticGraph:
    """The graph without such Einsums."""
    values, nodes = dict(graph.values), list[Node]()
    for node in graph.nodes:
        nodes += decomposed(values, node) if node.op == "Einsum" and not node.domain else [node]
    return StaticGraph(graph.inputs, graph.outputs, tuple(nodes), values)


def decomposed(values: dict[str, Value], node: Node) -> list[Node]:
    """The nodes in the place of one; itself if it is of another form."""
    parsed = labels_of(node.get("equation"), [len(values[name].shape) for name in node.inputs])
    if parsed is None or any(values[name].dtype != np.float32 for name in node.inputs):
        return [node]
    terms, result = parsed
    sizes: dict[str, int] = {}
    for name, term in zip(node.inputs, terms, strict=True):
        for label, size in zip(term, values[name].shape, strict=True):
            if sizes.setdefault(label, size) != size:
                return [node]
    decomposition = EinsumDecomposition(values, node, sizes)
    inside = set(result)
    operands = [
        decomposition.summed(name, term, "".join(x for x in term if x in inside.union(*terms[:i], *terms[i + 1 :])))
        for i, (name, term) in enumerate(zip(node.inputs, terms, strict=True))
    ]
    name, term = operands[0] if len(operands) == 1 else decomposition.product(*operands[0], *operands[1], result)
    decomposition.finish(name, term, result)
    return decomposition.nodes


def labels_of(equation: str, ndims: Sequence[int]) -> tuple[list[str], str] | None:
    """The labels of each operand's dims, and of the result's; None for a form that is not written out."""
    left, _, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if "->" not in equation or len(terms) not in (1, 2) or len(terms) != len(ndims):
        return None
    found = []
    for term, ndim in zip(terms, ndims, strict=True):
        count = ndim - len(term.replace("...", ""))
        if not 0 <= count <= len(SPARE) or (count and "..." not in term):
            return None
        found.append(term.replace("...", SPARE[len(SPARE) - count :]))
    dots = max((term for term in found), key=lambda term: sum(x in SPARE for x in term))
    result = right.replace("...", "".join(x for x in dots if x in SPARE))
    is_plain = all(len(set(term)) == len(term) for term in (*found, result)) and set(result) <= set("".join(found))
    return (found, result) if is_plain else None


class EinsumDecomposition:
    """The nodes of one sum, as they are written down; what is computed of constants is constant."""

    def __init__(self, values: dict[str, Value], node: Node, sizes: dict[str, int]) -> None:
        self.values, self.node, self.sizes, self.nodes = values, node, sizes, list[Node]()

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
        dims = (*self.dims(batch), *map(self.size, parts))
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
        """A node's result; of a constant that is turned or shaped, the constant."""
        data = self.values[inputs[0]].data
        if data is not None and op == "Transpose":
            return self.constant(np.ascontiguousarray(data.transpose(attributes["perm"])))
        if data is not None and op == "Reshape":
            return self.constant(np.reshape(data, shape))
        name = self.value(shape)
        self.nodes.append(Node(op, inputs, (name,), attributes=attributes, name=self.node.name, domain="", opset=OPSET))
        return name
