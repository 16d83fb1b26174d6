"""A Gemm of rows between two reshapes becomes the product of a tensor with batch axes, which maps after it can join.

    reshape(gemm(reshape(x, (rows, k)), w, c), (..., n))  =  x w + c        x being (..., k)

onnxruntime's optimiser writes products with a bias so, and its quantiser makes products of integers of them, with
scales and a bias after.  The same products and sums, in the same order.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from asmdnn.network.fusion.integers import with_names
from asmdnn.network.fusion.maps import is_map
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import StaticGraph, needed

OPSET = 13
OF_ROWS = {"MatMul", f"{OWN}.MatMulInteger"}


def with_batches(graph: StaticGraph) -> StaticGraph:
    """The graph with such products."""
    makers = {node.outputs[0]: node for node in graph.nodes}
    readers, values, nodes = graph.readers(), dict(graph.values), list[Node]()
    for node in graph.nodes:
        gemm = makers.get(node.inputs[0]) if node.op == "Reshape" and not node.domain else None
        (result, *_) = node.outputs
        chain = chain_to(graph, makers, readers, node) if gemm is not None and changes_rows(graph, node) else []
        if chain:
            nodes += with_axes(values, chain, node)
            continue
        if gemm is None or not is_plain(graph, gemm) or readers[gemm.outputs[0]] > 1 or not changes_rows(graph, node):
            nodes.append(node)
            continue
        x, front = gemm.inputs[0], makers.get(gemm.inputs[0])
        if front is not None and front.op == "Reshape" and not front.domain:
            x = front.inputs[0]
        wanted = (*graph.shape(result)[:-1], graph.shape(gemm.inputs[0])[1])
        if graph.shape(x) != wanted:
            nodes.append(reshaped(values, x, f"rows of {result}", wanted))
            x = f"rows of {result}"
        nodes += product(values, gemm, x, result)
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), values)


def chain_to(graph: StaticGraph, makers: Mapping[str, Node], readers: Mapping[str, int], reshape: Node) -> list[Node]:
    """A product of rows and the maps between it and a reshape, which read nothing else that has rows; else nothing."""
    found, name = list[Node](), reshape.inputs[0]
    while readers[name] == 1 and (node := makers.get(name)) is not None:
        found.insert(0, node)
        if node.key in OF_ROWS:
            is_matrix = len(graph.shape(node.inputs[0])) == len(graph.shape(node.inputs[1])) == len("kn")
            return found if is_matrix and graph.is_constant(node.inputs[1]) and len(found) > 1 else []
        whole = [x for x in node.inputs if x != NOTHING and prod(graph.shape(x)[:-1]) != 1]
        if not is_map(graph, node) or len(whole) != 1 or graph.shape(whole[0]) != graph.shape(name):
            return []
        (name,) = whole
    return []


def with_axes(values: dict[str, Value], chain: Sequence[Node], reshape: Node) -> list[Node]:
    """The chain on a tensor with the axes that the reshape would make."""
    (result, *_), (product, *_) = reshape.outputs, chain
    lead, x = values[result].shape[:-1], product.inputs[0]
    seen = {x: f"{x} of {result}"}
    nodes = [reshaped(values, x, seen[x], (*lead, values[x].shape[-1]))]
    for node in chain:
        (before,) = node.outputs
        seen[before] = result if node is chain[-1] else f"{before} of {result}"
        values[seen[before]] = Value((*lead, values[before].shape[-1]), values[before].dtype)
        inputs = [seen.get(name, name) for name in node.inputs]
        nodes.append(with_names(node, inputs, (seen[before],)))
    return nodes


def changes_rows(graph: StaticGraph, node: Node) -> bool:
    """Whether a reshape makes several axes of the first one of a matrix."""
    rows, made = graph.shape(node.inputs[0]), graph.shape(node.outputs[0])
    return len(made) > 2 and made[-1:] == rows[-1:] and 0 not in made


def reshaped(values: dict[str, Value], x: str, result: str, dims: tuple[int, ...]) -> Node:
    given = np.array(dims, np.int64)
    values[f"dims of {result}"] = Value(given.shape, given.dtype, given)
    values[result] = Value(dims, values[x].dtype)
    return Node("Reshape", (x, f"dims of {result}"), (result,), attributes={}, name="", domain="", opset=OPSET)


def is_plain(graph: StaticGraph, node: Node) -> bool:
    """Whether it is a product with constant weights, and perhaps a row."""
    if node.op != "Gemm" or node.domain or node.get("transA", 0):
        return False
    if any(not graph.is_constant(name) for name in node.inputs[1:]):
        return False
    row = graph.shape(node.inputs[2]) if len(node.inputs) > 2 else ()
    return node.get("alpha", 1.0) == node.get("beta", 1.0) == 1.0 and all(n == 1 for n in row[:-1])


def product(values: dict[str, Value], gemm: Node, x: str, result: str) -> list[Node]:
    """x w + c under the name of the result."""
    weights = values[gemm.inputs[1]].data
    assert weights is not None, "a plain product has constant weights"
    matrix = gemm.inputs[1]
    if gemm.get("transB", 0):
        matrix = f"{matrix}, turned"
        values[matrix] = Value(weights.T.shape, weights.dtype, np.ascontiguousarray(weights.T))
    if len(gemm.inputs) < 3:
        return [Node("MatMul", (x, matrix), (result,), attributes={}, name=gemm.name, domain="", opset=OPSET)]
    made = f"{result}, without its row"
    values[made] = Value(values[result].shape, values[result].dtype)
    row = np.ravel(values[gemm.inputs[2]].data)  # type: ignore[arg-type]
    flat = f"{gemm.inputs[2]}, flat"
    values[flat] = Value(row.shape, row.dtype, row)
    return [
        Node("MatMul", (x, matrix), (made,), attributes={}, name=gemm.name, domain="", opset=OPSET),
        Node("Add", (made, flat), (result,), attributes={}, name=gemm.name, domain="", opset=OPSET),
    ]
