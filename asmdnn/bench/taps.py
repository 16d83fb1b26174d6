"""What the positions of a kernel multiply, of problems of convolutions and of deconvolutions."""

from typing import Any

import numpy.typing as npt

from asmdnn.bench.deconv_problem import DeconvAxis
from asmdnn.bench.problems import ConvProblem
from asmdnn.definitions.convolution import Positions, sliding, spreading, summed
from asmdnn.definitions.windows import SlidingWindow

Array = npt.NDArray[Any]


def window_of(problem: ConvProblem) -> SlidingWindow:
    fields = zip(*((a.k, a.s, a.d + 1, a.p, a.padding_needed) for a in problem.axes), strict=True)
    return SlidingWindow(*fields)


def positions_of(problem: ConvProblem, backward: bool = False) -> Positions:
    """Of a forward pass, or of the gradient of its data."""
    spreads = isinstance(problem.axes[0], DeconvAxis) != backward
    outputs = problem.src_dims if backward else problem.dst_dims
    return spreading(window_of(problem), outputs[2:]) if spreads else sliding(window_of(problem))


def sums_of(problem: ConvProblem, src: Array, weights: Array) -> Array:
    """The convolution, or deconvolution, of images (n, c, ...) and weights in their logical dims."""
    return summed(src, weights.reshape(problem.filter_dims), positions_of(problem), problem.groups)
