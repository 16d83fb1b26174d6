"""Greedy non-maximum suppression: of boxes that overlap too much the one of the best score."""

import numpy as np

from asmdnn.definitions.rounding import Array


def suppressed(corners: Array, scores: Array, most: int, overlap: float, least: float) -> Array:
    """s32[images, classes, most]: numbers of boxes, the best first, -1 after the last.

    corners: [images, 4, boxes], both lower coordinates, then both upper ones; scores: [images, classes, boxes].
    """
    found = np.full((*scores.shape[:2], most), -1, np.int32)
    for image, classes in enumerate(scores):
        for kind, each in enumerate(classes):
            boxes = best_boxes(corners[image].T, each, most, overlap, least)
            found[image, kind, : len(boxes)] = boxes
    return found


def best_boxes(corners: Array, scores: Array, most: int, overlap: float, least: float) -> list[int]:
    """Numbers of boxes, those of the best score first; of equal ones the first one wins.  corners: [boxes, 4]."""
    wanted = np.flatnonzero(scores > least)
    left, chosen = wanted[np.argsort(-scores[wanted], kind="stable")], list[int]()
    while len(left) and len(chosen) < most:
        best, left = int(left[0]), left[1:]
        chosen.append(best)
        left = left[~(shared_area(corners[best], corners[left]) > overlap)]
    return chosen


def shared_area(box: Array, others: Array) -> Array:
    """The intersection of a box and each of the others over their union; 0 where either is empty."""
    with np.errstate(all="ignore"):  # of boxes that are infinite, or no numbers
        sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
        both, own = np.maximum(sides, 0).prod(1), (box[2:] - box[:2]).prod()
        other = (others[:, 2:] - others[:, :2]).prod(1)
        return np.where((own > 0) & (other > 0) & (both > 0), both / (own + other - both), 0)
