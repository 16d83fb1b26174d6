"""ScatterND of places that count: those behind them write what the last one has written, once more.

Where none counts, the first row of x is written to itself.  Sums and products take a number that changes nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from asmdnn.network.counted.choosing import Chooser, CountedChoice
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Shape
from asmdnn.records import replace

NEUTRAL: Final[Mapping[str, float]] = {"add": -0.0, "mul": 1.0}  # -0.0 + 0.0 is 0.0, and a zero stays what it is
AGAIN: Final = ("none", "max", "min")  # of which doing it twice is doing it once, whatever the elements are


def scattered(w: Chooser, node: Node, counted: Mapping[int, tuple[int, CountedChoice]]) -> Node | None:
    """The node with places and updates for all that the bound has room for; None where others are counted."""
    x, indices, updates = node.inputs
    if counted.keys() != {1, 2} or counted[1] != counted[2] or indices == updates:
        return None
    axis, choice = counted[1]
    reduction, shape = node.get("reduction", "none"), w.shape(indices)
    if axis >= len(shape) - 1 or 0 in (*w.shape(x), *shape):
        return None
    if reduction in NEUTRAL:
        filled = w.filled(updates, axis, choice, NEUTRAL[reduction])
        return replace(node, inputs=(x, w.filled(indices, axis, choice), filled))
    if reduction not in AGAIN:
        return None
    last = w("Max", w("Sub", choice.total, w.integers(1)), w.integers(0))
    places, some = w("Min", w.integers(np.arange(choice.most)), last), w("Greater", choice.total, w.integers(0))
    written = w("Gather", updates, places, axis=axis)
    depth = shape[-1]
    first = first_row(w, x, w.shape(x), depth, len(shape) - 1)
    return replace(
        node,
        inputs=(
            x,
            w.named(indices, "Where", some, w("Gather", indices, places, axis=axis), w.like(indices, 0)),
            chosen_of(w, some, written, first),
        ),
    )


def chosen_of(w: Chooser, some: str, written: str, first: str) -> str:
    if w.value(written).dtype != np.bool_:
        return w("Where", some, written, first)
    return w("Or", w("And", some, written), w("And", w("Not", some), first))


def first_row(w: Chooser, x: str, dims: Shape, depth: int, lead: int) -> str:
    """That at place 0, behind as many axes of 1 as places have."""
    for axis in range(depth):
        x = w.part(x, axis, 0, 1)
    return w.reshaped(x, *[1] * lead, *dims[depth:])


def counted_by(inputs: Mapping[int, Any]) -> dict[int, tuple[int, CountedChoice]]:
    """Axis and choice by number of operand."""
    return {i: (one.axis, one.choice) for i, one in inputs.items()}
