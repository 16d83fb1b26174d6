"""Products with rows that have a single one become look-ups, and functions of a table's rows become another table.

    float(indices[..., None] == 0 .. n-1) W  =  W[indices], or zeros where an index is none of them
    f(T[i], constants)                       =  f(T, constants)[i]

for maps f, whose constants are numbers or rows.  A look-up moves a row where the product reads all of W; the functions
of the few rows are computed in double precision when the network is loaded, and rounded once.  After the table's
rows stands the one for all other indices.
"""

import numpy as np

from asmdnn.network.fusion.maps import is_map
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.evaluation import results_of
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import StaticGraph, needed
from asmdnn.records import dataclass

MOVES = ("Reshape", "Squeeze", "Unsqueeze", "Expand", "Identity")


@dataclass(frozen=True, eq=False)
class TableRows:
    """A value whose last axis is a row of a table: f64[n + 1, m], chosen by an input of integers."""

    indices: str
    table: Array


def looked_up(graph: StaticGraph) -> StaticGraph:
    """The graph with look-ups."""
    makers = {name: node for node in graph.nodes for name in node.outputs if name != NOTHING}
    values, nodes, known = dict(graph.values), list[Node](), dict[str, TableRows]()
    for node in graph.nodes:
        rows = rows_of_product(graph, node, makers) or rows_of_map(graph, node, known)
        if rows is None:
            nodes.append(node)
            continue
        (result,) = node.outputs
        known[result], name = rows, f"table of {result}"
        values[name] = Value(rows.table.shape, np.dtype(np.float32), rows.table.astype(np.float32))
        nodes.append(Node("OneHotRows", (rows.indices, name), (result,), {}, node.name, OWN))
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), values)


def rows_of_product(graph: StaticGraph, node: Node, makers: dict[str, Node]) -> TableRows | None:
    """If a node multiplies indices, written as rows with a single one, by constants."""
    weights = graph.values[node.inputs[1]].data if node.op == "MatMul" and not node.domain else None
    cast = makers.get(node.inputs[0]) if weights is not None and weights.ndim == 2 else None
    equal = makers.get(cast.inputs[0]) if cast is not None and cast.op == "Cast" else None
    if weights is None or equal is None or equal.op != "Equal" or not np.isfinite(weights).all():
        return None
    for name, other in (equal.inputs, equal.inputs[::-1]):
        counted, shape = graph.values[other].data, graph.shape(equal.outputs[0])
        if counted is None or counted.shape != (*[1] * (counted.ndim - 1), len(weights)) or not (
            counted.dtype.kind == "i" and (counted.ravel() == np.arange(len(weights))).all()
        ):  # fmt: skip
            continue
        indices = input_of(graph, name, makers)
        if indices and (*graph.shape(indices), len(weights)) == shape:
            return TableRows(indices, np.concatenate((weights, np.zeros_like(weights[:1]))).astype(np.float64))
    return None


def input_of(graph: StaticGraph, name: str, makers: dict[str, Node]) -> str:
    """The input of integers that a value has the elements of, in their order; nothing if there is none."""
    while name not in graph.inputs:
        node = makers.get(name)
        if node is None or node.op not in MOVES or np.prod(graph.shape(node.inputs[0])) != np.prod(graph.shape(name)):
            return NOTHING
        name = node.inputs[0]
    return name if graph.values[name].dtype.kind == "i" else NOTHING


def rows_of_map(graph: StaticGraph, node: Node, known: dict[str, TableRows]) -> TableRows | None:
    """If a node is a function of rows of one table, and of constants that are the same for each."""
    rows = [known[name] for name in node.inputs if name in known]
    if not rows or len({one.indices for one in rows}) > 1 or not is_map(graph, node):
        return None
    if any(graph.shape(name) != graph.shape(node.outputs[0]) for name in node.inputs if name in known):
        return None
    operands: list[Array | None] = []
    for name in node.inputs:
        data = None if name == NOTHING else graph.values[name].data
        if name in known:
            operands.append(known[name].table)
        elif name == NOTHING:
            operands.append(None)
        elif data is None or any(n != 1 for n in data.shape[:-1]):
            return None
        else:
            operands.append(data.reshape(data.shape[-1:]).astype(np.float64))
    (table,) = results_of(node, operands)
    return TableRows(rows[0].indices, table) if table.shape == rows[0].table.shape else None
