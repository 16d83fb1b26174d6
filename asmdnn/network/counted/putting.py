"""ScatterND and ScatterElements of places that count: those behind them write what the last one has written, once more.

Where none counts, the first row of x is written to itself; so it is along an axis where places stay where they are.
Sums and products take a number that changes nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.counted.choosing import Chooser, CountedChoice
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Shape, normal
from asmdnn.network.operators.indexing import scatter_types
from asmdnn.records import replace

NEUTRAL: Final[Mapping[str, float]] = {"add": -0.0, "mul": 1.0}  # -0.0 + 0.0 is 0.0, and a zero stays what it is
AGAIN: Final = ("none", "max", "min")  # of which doing it twice is doing it once, whatever the elements are
OF_ELEMENTS: Final = ("ScatterElements", "Scatter")
SCATTERS: Final = ("ScatterND", *OF_ELEMENTS)


def scattered(w: Chooser, node: Node, counted: Mapping[int, tuple[int, CountedChoice]]) -> Node | None:
    """The node with places and updates for all that the bound has room for; None where others are counted."""
    x, indices, updates = node.inputs
    if counted.keys() != {1, 2} or counted[1] != counted[2] or indices == updates:
        return None
    axis, choice = counted[1]
    reduction, shape, of_elements = node.get("reduction", "none"), w.shape(indices), node.op in OF_ELEMENTS
    if (axis >= len(shape) - 1 and not of_elements) or 0 in (*w.shape(x), *shape):
        return None
    along = axis_of_elements(w, node, *counted[1]) if of_elements else 0
    if reduction in NEUTRAL:
        filled = w.filled(updates, axis, choice, NEUTRAL[reduction])
        return replace(node, inputs=(x, w.filled(indices, axis, choice), filled))
    if reduction not in AGAIN:
        return None
    if not of_elements:
        return written_again(w, node, counted[1], first_row(w, x, shape[-1], len(shape) - 1))
    first = first_elements(w, x, shape, along)
    if axis == along:
        return written_again(w, node, counted[1], first)
    places = np.arange(choice.most).reshape(-1, *[1] * (len(shape) - 1 - axis))
    counts = w("Less", w.integers(places), choice.total)
    return replace(node, inputs=(x, w.filled(indices, axis, choice), chosen_of(w, counts, updates, first)))


def axis_of_elements(w: Chooser, node: Node, axis: int, choice: CountedChoice) -> int:
    """The axis that indices are of.  Raises InvalidArguments for more places along another one than x has."""
    x, indices, updates = map(w.value, node.inputs)
    along = normal(node.get("axis", 0), len(x.shape))
    if axis < len(x.shape) and axis != along and choice.most > x.shape[axis]:
        most = f"{choice.most} places along axis {axis}, where it has {x.shape[axis]}"
        raise InvalidArguments(f"{node} puts elements at {most}: give {choice.of!r} a bound of {x.shape[axis]}")
    scatter_types(node, x, indices, updates)
    return along


def written_again(w: Chooser, node: Node, counted: tuple[int, CountedChoice], first: str) -> Node:
    """The node with what the last place that counts writes in those behind it.  first: what is at place 0."""
    (x, indices, updates), (axis, choice) = node.inputs, counted
    last = w("Max", w("Sub", choice.total, w.integers(1)), w.integers(0))
    places, some = w("Min", w.integers(np.arange(choice.most)), last), w("Greater", choice.total, w.integers(0))
    found = w.named(indices, "Where", some, w("Gather", indices, places, axis=axis), w.like(indices, 0))
    return replace(node, inputs=(x, found, chosen_of(w, some, w("Gather", updates, places, axis=axis), first)))


def chosen_of(w: Chooser, some: str, written: str, first: str) -> str:
    if w.value(written).dtype != np.bool_:
        return w("Where", some, written, first)
    return w("Or", w("And", some, written), w("And", w("Not", some), first))


def first_row(w: Chooser, x: str, depth: int, lead: int) -> str:
    """That at place 0, behind as many axes of 1 as places have."""
    dims = w.shape(x)
    for axis in range(depth):
        x = w.part(x, axis, 0, 1)
    return w.reshaped(x, *[1] * lead, *dims[depth:])


def first_elements(w: Chooser, x: str, shape: Shape, along: int) -> str:
    """Those at place 0 of an axis, beside as many others as there are indices along each."""
    for axis, size in enumerate(shape):
        x = w.part(x, axis, 0, 1 if axis == along else size)
    return x


def counted_by(inputs: Mapping[int, Any]) -> dict[int, tuple[int, CountedChoice]]:
    """Axis and choice by number of operand."""
    return {i: (one.axis, one.choice) for i, one in inputs.items()}
