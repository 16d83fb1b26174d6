"""Operators that read all places of a counted axis together, where numbers that change nothing may be among them.

So a sum reads zeros, and a largest element minus infinity, in the places that do not count.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import NamedTuple

from asmdnn.network.counted.reading import CountedReading
from asmdnn.network.operators.definition import AXES_MOVED, normal, number
from asmdnn.network.operators.reductions import axes_to_reduce
from asmdnn.network.passing import is_half


class FilledPlaces(NamedTuple):
    """numbers: by number of operand, what is to be in the places that do not count.  axis: of the result; None where
    all of it counts."""

    numbers: Mapping[int, float]
    axis: int | None = None


Collect = Callable[[CountedReading], FilledPlaces | None]


def is_float(r: CountedReading) -> bool:
    value = r.values[0]
    return value is not None and (value.dtype.kind == "f" or is_half(value.dtype))


def reduced_with(fill: float, of_integers: bool = False) -> Collect:
    """Of a reduction along the axis, and perhaps others."""

    def collect(r: CountedReading) -> FilledPlaces | None:
        if r.only is None or (r.has(1) and r.data(1) is None) or not (of_integers or is_float(r)):
            return None
        axes = axes_to_reduce(r.node, len(r.shape()), r.data(1))
        return FilledPlaces({0: fill}) if r.only in axes else None

    return collect


def softmax(r: CountedReading) -> FilledPlaces | None:
    """Along the axis; of versions before 13 along all axes from one on."""
    if r.only is None:
        return None
    if r.node.opset < AXES_MOVED:
        is_along = normal(r.node.get("axis", 1), len(r.shape())) <= r.only
    else:
        is_along = normal(r.node.get("axis", -1), len(r.shape())) == r.only
    return FilledPlaces({0: -inf}, r.only) if is_along else None


def summed_from_the_end(r: CountedReading) -> FilledPlaces | None:
    axis = r.data(1)
    if r.only is None or axis is None or normal(int(number(axis)), len(r.shape())) != r.only:
        return None
    return FilledPlaces({0: 0}, r.only)


def contracted(r: CountedReading) -> FilledPlaces | None:
    """Columns of the first by rows of the second, both counted."""
    if r.counted.keys() != {0, 1} or not is_float(r):
        return None
    a, b = len(r.shape(0)), len(r.shape(1))
    return FilledPlaces({0: 0, 1: 0}) if dict(r.counted) == {0: a - 1, 1: max(b - 2, 0)} else None


COLLECTS: Mapping[str, Collect] = {
    **dict.fromkeys(("ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2"), reduced_with(0, of_integers=True)),
    "ReduceMean": reduced_with(0), "ReduceMax": reduced_with(-inf), "ReduceMin": reduced_with(inf),
    "Softmax": softmax, "LogSoftmax": softmax, "CumSum": summed_from_the_end, "MatMul": contracted,
}  # fmt: skip
