"""NonMaxSuppression with a bound: a primitive says which boxes each class keeps, and those are the places."""

from collections.abc import Mapping
from math import inf
from typing import Any

from asmdnn.errors import Unimplemented
from asmdnn.network.counted.choosing import Chooser, Chosen, ChosenResult
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import number
from asmdnn.network.operators.own import OWN

LOWER, UPPER = (0, 2), (2, 4)  # corners among the numbers of a box; or its centre and its sides

# Axes by operand: of images, of classes, of boxes.
COUNTED_TOGETHER = ({0: 0, 1: 0}, {1: 1}, {0: 1, 1: 2})


def non_max_suppression(w: Chooser, node: Node, counted: Mapping[int, Any]) -> Chosen | None:
    """Image, class and box of every place, i64[most, 3].  Raises ValueError for operands that do not fit."""
    boxes, scores = node.inputs[:2]
    if counted and {i: axis for i, (axis, _) in counted.items()} not in COUNTED_TOGETHER:
        return None
    (images, classes, count), given = w.shape(scores), w.shape(boxes)
    if given != (images, count, 4):
        raise ValueError("boxes must be [images, boxes, 4] and scores [images, classes, boxes]")
    limit, overlap, least = numbers_of(w, node)
    if not 0 <= overlap <= 1:
        raise ValueError(f"iou_threshold is {overlap}, it must be from 0 to 1")
    most = min(int(limit), count)
    dims = (images, classes, most)
    if 0 in dims or most < 0:
        return Chosen(None, [ChosenResult(w.reshaped(w.integers([]), 0, 3))])
    if counted:
        axis, places = counted[1]
        scores = w.filled(scores, axis, places, -inf)  # a box that does not count is no candidate
    corners = corners_of(w, w.number(boxes), is_centred=bool(node.get("center_point_box", 0)))
    kept = w("Suppressed", corners, w.number(scores), domain=OWN, most=most, overlap=overlap, least=least)
    flat = w.reshaped(kept, images * classes * most)
    choice = w.choice(w.result, w("GreaterOrEqual", flat, w.integers(0)))
    columns = [w.coordinate(choice.at, dims, axis) for axis in (0, 1)]
    columns.append(w("Max", w("Gather", flat, choice.at, axis=0), w.integers(0)))  # where none is kept it is -1
    numbers = counted[1][0] if counted else None  # a column of the result for each axis of scores
    return Chosen(choice, [ChosenResult(w.joined(1, *(w.lifted(column, 1) for column in columns)), 0, numbers=numbers)])


def numbers_of(w: Chooser, node: Node) -> tuple[float, float, float]:
    """Of a class at most so many, the overlap, and the score that all are above.  Raises Unimplemented for data."""
    known = [0.0, 0.0, -inf]
    for i, name in enumerate(node.inputs[2:]):
        if name == NOTHING:
            continue
        data = w.data(name)
        if data is None:
            what = f"{node} reads {name!r}, which is no constant, and a bound is for known numbers"
            raise Unimplemented(f"{what}: leave it out of bounds, and load the model with fallback='numpy'")
        known[i] = float(number(data))
    most, overlap, least = known
    return most, overlap, least


def corners_of(w: Chooser, boxes: str, is_centred: bool) -> str:
    """[images, 4, boxes]: both lower coordinates, then both upper ones."""
    planes = w.turned(boxes, 0, 2, 1)
    first, second = w.part(planes, 1, *LOWER), w.part(planes, 1, *UPPER)
    if is_centred:
        half = w.mul(second, 0.5)
        return w.joined(1, w.sub(first, half), w.add(first, half))
    return w.joined(1, w("Min", first, second), w("Max", first, second))
