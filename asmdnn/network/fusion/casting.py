"""Integer inputs become f32 before they are moved: Cast(Unsqueeze(mask)) is Unsqueeze(Cast(mask)).

Text encoders turn a mask of int64 into numbers so.  A kernel converts inputs, whose integers are checked before every
call, and moves of f32 are views.  The same bits.
"""

import numpy as np

from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.table import operator_of
from asmdnn.network.static import StaticGraph, needed

MOVES = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Transpose", "Slice", "Identity"}
F32 = np.dtype(np.float32)
WIDE = (np.int64, np.int32, np.uint32, np.uint64, np.float64)  # what kernels read, or calls convert


def casts_first(graph: StaticGraph) -> StaticGraph:
    """The graph with such casts in front of the moves."""
    makers = {node.outputs[0]: node for node in graph.nodes if is_move(node)}
    values, nodes, cast = dict(graph.values), list[Node](), dict[str, str]()
    for node in graph.nodes:
        moves = moves_after(graph, makers, node)
        if not moves:
            nodes.append(node)
            continue
        source = moves[0].inputs[0]
        if source not in cast:
            cast[source] = f"{source} as f32"
            values[cast[source]] = Value(graph.shape(source), F32)
            nodes.append(
                Node(
                    "Cast",
                    (source,),
                    (cast[source],),
                    attributes={"to": 1},
                    name=node.name,
                    domain="",
                    opset=node.opset,
                )
            )
        for move in moves:
            moved = node.outputs[0] if move is moves[-1] else f"{move.outputs[0]} as f32"
            if move is moves[-1] or moved not in values:
                inputs = (cast[move.inputs[0]], *move.inputs[1:])
                nodes.append(
                    Node(
                        move.op,
                        inputs,
                        (moved,),
                        attributes=move.attributes,
                        name=move.name,
                        domain=move.domain,
                        opset=move.opset,
                    )
                )
                values.setdefault(moved, Value(graph.shape(move.outputs[0]), F32))
            cast[move.outputs[0]] = moved
    return StaticGraph(graph.inputs, graph.outputs, needed(nodes, graph.outputs.values()), values)


def is_move(node: Node) -> bool:
    return node.op in MOVES and not node.domain and len(node.outputs) == 1 and operator_of(node) is not None


def moves_after(graph: StaticGraph, makers: dict[str, Node], node: Node) -> list[Node]:
    """The moves that lead from an integer input to a cast to f32, in order; none for other nodes."""
    if node.op != "Cast" or node.domain or graph.values[node.outputs[0]].dtype != F32:
        return []
    moves, name = list[Node](), node.inputs[0]
    while name in makers:
        moves.insert(0, makers[name])
        name = makers[name].inputs[0]
    return moves if name in graph.inputs and graph.values[name].dtype in WIDE else []
