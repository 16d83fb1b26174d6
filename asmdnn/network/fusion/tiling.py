"""Tile as a view: every axis that is repeated is two, of which the first has a stride of 0.

    (a, b) repeated (r, s) times: as (1, a, 1, b), expanded to (r, a, s, b), as (r a, s b)

Readers that take any strides read the operand where it lies; for others it is one pass.  Moves only: the same bits.
"""

import numpy as np

from asmdnn.network.fusion.replacement import Replacement, with_replaced_nodes
from asmdnn.network.static import StaticGraph


def untiled(graph: StaticGraph) -> StaticGraph:
    """The graph without Tile of values of f32."""
    return with_replaced_nodes(graph, ("Tile",), replace_node)


def replace_node(new: Replacement) -> None:
    node = new.node
    (x, repeats), result = node.inputs, node.outputs[0]
    times = new.values[repeats].data
    if times is None or new.values[x].dtype != np.float32 or 0 in new.dims(result):
        return
    apart, wide = list[int](), list[int]()
    for n, count in zip(new.dims(x), times.tolist(), strict=True):
        is_split = count > 1 and n > 1
        apart += [1, n] if is_split else [n]
        wide += [count, n] if is_split else [n * count]
    split = new.shaped("Reshape", x, tuple(apart))
    repeated = new.shaped("Expand", split, tuple(wide))
    new.shaped("Reshape", repeated, new.dims(result), is_last=True)
