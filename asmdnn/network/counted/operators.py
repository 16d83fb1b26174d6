"""NonZero, Compress, Unique and NonMaxSuppression with a bound: places that are chosen, and what lies there.

Operands may be counted themselves: what lies behind their own count is not chosen.
"""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.counted.boxes import non_max_suppression
from asmdnn.network.counted.choosing import INT64, Chooser, Chosen, ChosenResult, CountedChoice
from asmdnn.network.decompositions.indexing import in_type_of, numbers_of
from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import normal

BOOL = 9  # ONNX's number
Counted = Mapping[int, tuple[int, CountedChoice]]  # axis and choice by number of operand
Write = Callable[[Chooser, Node, Counted], Chosen | None]  # None where places are mixed


def chooses_by(node: Node) -> str:
    """The value whose data choose."""
    return node.inputs[1 if node.op in ("Compress", "NonMaxSuppression") else 0]


def non_zero(w: Chooser, node: Node, counted: Counted) -> Chosen:
    """The places' coordinates, i64[ndim, most]."""
    (x,) = node.inputs
    dims = w.shape(x) or (1,)
    if 0 in dims:
        return Chosen(None, [ChosenResult(w.integers(np.zeros((len(dims), 0))))])
    is_chosen = x if w.value(x).dtype == np.bool_ else w("Not", w("Equal", x, w.like(x, 0)))
    if counted:
        is_chosen = w.filled(is_chosen, *counted[0])
    choice = w.choice(x, w.reshaped(is_chosen, prod(dims)))
    rows = [w.coordinate(choice.at, dims, i) for i in range(len(dims))]
    return Chosen(choice, [ChosenResult(w.joined(0, *(w.lifted(row, 0) for row in rows)), 1, is_zero=True)])


def compress(w: Chooser, node: Node, counted: Counted) -> Chosen | None:
    """Rows along an axis, or elements."""
    x, condition = node.inputs
    dims, (size,) = w.shape(x), w.shape(condition)
    if "axis" not in node.attributes:
        if counted and len(dims) != 1:
            return None
        x, dims = w.reshaped(x, prod(dims)), (prod(dims),)
    axis = normal(node.get("axis", 0), len(dims))
    if 0 in counted and (counted[0][0] != axis or 1 not in counted):
        return None
    if size > dims[axis]:
        raise ValueError(f"{size} truths for {dims[axis]} places along axis {axis}")
    if size == 0 or 0 in dims:
        return Chosen(None, [ChosenResult(w.like(x, np.zeros((*dims[:axis], 0, *dims[axis + 1 :]))))])
    is_chosen = w.filled(condition, *counted[1]) if 1 in counted else condition
    choice = w.choice(condition, is_chosen)
    rows = w("Gather", numbers_of(w, x), choice.at, axis=axis)
    return Chosen(choice, [ChosenResult(in_type_of(w, rows, x), axis)])


def unique(w: Chooser, node: Node, counted: Counted) -> Chosen | None:
    """Different elements in order, or as they come; where each is first, which one each is, how many are equal."""
    (x,) = node.inputs
    dims, size = w.shape(x), prod(w.shape(x))
    if "axis" in node.attributes and len(dims) != 1:
        what = f"{node} compares slices, and a bound is for elements"
        raise Unimplemented(f"{what}: leave it out of bounds, and load the model with fallback='numpy'")
    if counted:
        return None
    if size == 0:
        return Chosen(None, [ChosenResult(w.like(x, np.zeros(0))), *[ChosenResult(w.integers(np.zeros(0)))] * 3])
    flat = w.reshaped(x, size)
    ordered, places = w.results("TopK", (flat, w.ints(size)), 2, axis=0, largest=0)
    is_new = differs_from_last(w, ordered)
    ones, by = w("Cast", is_new, to=INT64), f"different elements of {x}"
    group = w.numbered(ones)
    if node.get("sorted", 1):
        choice = w.choice(by, is_new)
        found, first = w("Gather", ordered, choice.at), w("Gather", places, choice.at)
    else:
        firsts = w.put(places, ones, size)
        choice = w.choice(f"{by}, as they come", w("Cast", firsts, to=BOOL))
        found, first = w("Gather", flat, choice.at), choice.at
        starts = w.new_choice(is_new, size, choice.of).at
        group = w("Gather", w.numbered(firsts), w("Gather", w("Gather", places, starts), group))
    most = w("Min", group, w.integers(choice.most))
    counts = w.part(w.put(most, w.integers(np.ones(size)), choice.most + 1, "add"), 0, 0, choice.most)
    each = w.put(places, group, size)
    return Chosen(choice, [ChosenResult(found, 0), ChosenResult(first, 0), ChosenResult(each), ChosenResult(counts, 0)])


def differs_from_last(w: Chooser, ordered: str) -> str:
    """Truths: the first one does; what is no number does not differ from what is none either."""
    (size,) = w.shape(ordered)
    first = w.constant([True], np.bool_)
    if size == 1:
        return first
    before, after = w.part(ordered, 0, 0, size - 1), w.part(ordered, 0, 1, size)
    equal = w("Equal", before, after)
    if w.value(ordered).dtype.kind == "f":
        equal = w("Or", equal, w("And", w("IsNaN", before), w("IsNaN", after)))
    return w.joined(0, first, w("Not", equal))


WRITERS: Mapping[str, Write] = {
    "NonZero": non_zero, "Compress": compress, "Unique": unique, "NonMaxSuppression": non_max_suppression,
}  # fmt: skip
