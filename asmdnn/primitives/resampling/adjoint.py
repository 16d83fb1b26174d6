"""The adjoint of resampling along an axis: which results each element of src has a share in, and what share.

These are neighbours, so that every element has the same number of them in one pattern; some weigh nothing.
"""

import numpy as np

from asmdnn.primitives.resampling.description import ResamplingForward
from asmdnn.primitives.resampling.taps import ResampleTaps
from asmdnn.records import dataclass


def adjoint(taps: ResampleTaps, size: int) -> ResampleTaps:
    """The taps of each of `size` elements in the results that `taps` make of them."""
    results, each = taps.indices.shape
    weights = np.zeros((size, results))
    np.add.at(weights, (taps.indices.ravel(), np.repeat(np.arange(results), each)), taps.weights.ravel())
    found = weights != 0
    first, last = found.argmax(axis=1), results - 1 - found[:, ::-1].argmax(axis=1)
    has_any = found.any(axis=1)
    first, last = np.where(has_any, first, 0), np.where(has_any, last, 0)
    count = int((last - first).max(initial=0)) + 1
    if count == 1 and not (weights[np.arange(size), first] == 1).all():
        count = 2  # a single tap has no weight
    start = np.minimum(first, max(0, results - count))
    indices = np.minimum(start[:, None] + np.arange(count), results - 1)
    shares = np.take_along_axis(weights, indices, axis=1)
    shares[:, results:] = 0  # of the only result, whose second tap is the first one again
    return ResampleTaps(indices.astype(np.int64), shares)


@dataclass(frozen=True, slots=True, eq=False)
class AdjointResampling(ResamplingForward):
    """src, a gradient by results, to dst, that by elements; `axis_taps`: of each axis, or None where it stays."""

    axis_taps: tuple[ResampleTaps, ...] = ()

    def __post_init__(self) -> None:
        """The forward pass has been checked."""

    def taps(self, axis: int) -> ResampleTaps:
        """What each result along an axis is made of."""
        return self.axis_taps[axis]
