"""What every kernel tap multiplies, in convolutions and in deconvolutions."""

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from asmdnn.bench.deconv_problem import DeconvAxis
from asmdnn.bench.problems import ConvProblem
from asmdnn.definitions.convolution import convolution, deconvolution, spread
from asmdnn.definitions.windows import Sizes, SlidingWindow, taps

Array = npt.NDArray[Any]


def window_of(problem: ConvProblem) -> SlidingWindow:
    fields = zip(*((a.k, a.s, a.d + 1, a.p, a.padding_needed) for a in problem.axes), strict=True)
    return SlidingWindow(*fields)


def taps_of(problem: ConvProblem, src: Array) -> Iterator[tuple[Sizes, Array]]:
    """Every kernel tap with the elements of an image (c, ...) that it multiplies, in the places of the outputs."""
    window, images = window_of(problem), src[None]
    spreads = isinstance(problem.axes[0], DeconvAxis)
    found = spread(images, window, problem.dst_dims[2:]) if spreads else taps(images, window)
    return ((at, part[0]) for at, part in found)


def sums_of(problem: ConvProblem, src: Array, weights: Array) -> Array:
    """The convolution, or deconvolution, of images (n, c, ...) and weights in their logical dims."""
    window, filters, groups = window_of(problem), weights.reshape(problem.filter_dims), problem.groups
    if isinstance(problem.axes[0], DeconvAxis):
        return deconvolution(src, filters, window, problem.dst_dims[2:], groups)
    return convolution(src, filters, window, groups)
