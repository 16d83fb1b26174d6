"""Operators that choose by data, so that nobody knows the dims of their results before: of boxes, of elements."""

from math import inf
from typing import Any, NamedTuple

import numpy as np

from asmdnn.definitions.suppression import best_boxes
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, axis_of, number


def non_zero(node: Node, x: Array) -> Array:
    """As np.nonzero of x, which takes several times as long where x has more than one axis."""
    dims = x.shape or (1,)
    left = np.flatnonzero(x)
    found = np.empty((len(dims), left.size), np.int64)
    for axis in range(len(dims) - 1, 0, -1):
        rows = left // dims[axis]
        found[axis], left = left - rows * dims[axis], rows
    found[0] = left
    return found


def compress(node: Node, x: Array, condition: Array) -> Array:
    return np.asarray(np.compress(condition.ravel(), x, node.get("axis")))


def unique(node: Node, x: Array) -> tuple[Array, ...]:
    """(different elements or slices, where each comes first, which one each is, how many there are of each)."""
    axis = axis_of(node, x.ndim, 0) if "axis" in node.attributes else None
    found, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)  # numpy 2.0 kept the dims
    if not node.get("sorted", 1):
        order = np.argsort(first)
        found, first, counts = np.take(found, order, 0 if axis is None else axis), first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    return found, *(part.astype(np.int64) for part in (first, inverse, counts))


class BoxRequest(NamedTuple):
    """What a suppression is asked for.  corners: [images, boxes, 4]; scores: [images, classes, boxes]; limit: how many
    boxes of a class; overlap: the intersection over the union beyond which a box is left out; least: which the scores
    of all that are kept exceed."""

    corners: Array
    scores: Array
    limit: int
    overlap: Any
    least: Any


def box_request(
    node: Node,
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    least_score: Array | None = None,
) -> BoxRequest:
    """Raises ValueError for operands that do not fit together."""
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[2] != 4 or boxes.shape[:2] != scores.shape[::2]:
        raise ValueError("boxes must be [images, boxes, 4] and scores [images, classes, boxes]")
    limit = 0 if most is None else int(number(most))
    share, least = (default if x is None else number(x) for x, default in ((overlap, 0.0), (least_score, -inf)))
    if not 0 <= share <= 1:
        raise ValueError(f"iou_threshold is {share}, it must be from 0 to 1")
    corners = corners_of(boxes, is_centred=bool(node.get("center_point_box", 0)))
    return BoxRequest(corners, scores, limit, share, least)


def non_max_suppression(node: Node, boxes: Array, scores: Array, *numbers: Array | None) -> Array:
    return kept_boxes(box_request(node, boxes, scores, *numbers))


def kept_boxes(request: BoxRequest) -> Array:
    """s64[selected, 3] of (image, class, box): of each class the boxes that overlap none of a better score too much."""
    found = [
        (image, kind, box)
        for image, classes in enumerate(request.scores)
        for kind, each in enumerate(classes)
        for box in best_boxes(request.corners[image], each, request.limit, request.overlap, request.least)
    ]
    return np.array(found, np.int64).reshape(-1, 3)


def corners_of(boxes: Array, is_centred: bool) -> Array:
    """[..., 4]: the lower corner, then the upper one."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if is_centred:
        return np.concatenate((first - second / 2, first + second / 2), -1)
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), -1)


OPERATORS = {
    "Compress": Operator(compress, None, (1,)),
    "NonMaxSuppression": Operator(non_max_suppression, None, (0, 1, 2, 3, 4)),
    "NonZero": Operator(non_zero, None, (0,)),
    "Unique": Operator(unique, None, (0,)),
}
