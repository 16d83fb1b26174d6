"""Tile as a view: every axis that is repeated is two, of which the first has a stride of 0.

    (a, b) repeated (r, s) times: as (1, a, 1, b), expanded to (r, a, s, b), as (r a, s b)

Readers that take any strides read the operand where it lies; for others it is one pass.  Moves only: the same bits.
"""

import numpy as np

from asmdnn.network.fusion.spelling import Spelling, respelt
from asmdnn.network.static import StaticGraph


def untiled(graph: StaticGraph) -> StaticGraph:
    """The graph without Tile of values of f32."""
    return respelt(graph, spell)


def spell(spelling: Spelling) -> None:
    node = spelling.node
    if node.op != "Tile":
        return
    (x, repeats), result = node.inputs, node.outputs[0]
    times = spelling.values[repeats].data
    if times is None or spelling.values[x].dtype != np.float32 or 0 in spelling.dims(result):
        return
    apart, wide = list[int](), list[int]()
    for n, count in zip(spelling.dims(x), times.tolist(), strict=True):
        is_split = count > 1 and n > 1
        apart += [1, n] if is_split else [n]
        wide += [count, n] if is_split else [n * count]
    split = spelling.shaped("Reshape", x, tuple(apart))
    repeated = spelling.shaped("Expand", split, tuple(wide))
    spelling.shaped("Reshape", repeated, spelling.dims(result), is_last=True)
