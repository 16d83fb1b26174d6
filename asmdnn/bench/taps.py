"""What every kernel tap multiplies, in convolutions and in deconvolutions."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.bench.deconv_problem import DeconvAxis
from asmdnn.bench.problems import ConvProblem

Tap = tuple[tuple[int, ...], npt.NDArray[np.float64]]  # the position, and (c, *outputs)


def taps_of(problem: ConvProblem, src: npt.NDArray[Any]) -> Iterator[Tap]:
    """Every kernel tap with the elements of an image (c, ...) that it multiplies, in the places of the outputs."""
    spreads = isinstance(problem.axes[0], DeconvAxis)
    yield from spread(problem, src) if spreads else gathered(problem, src)


def gathered(problem: ConvProblem, src: npt.NDArray[Any]) -> Iterator[Tap]:
    sides = zip(problem.padding_l, (max(0, after) for after in problem.padding_r), strict=True)
    padded = np.pad(src, ((0, 0), *sides))
    for tap in product(*(range(axis.k) for axis in problem.axes)):
        first = [at * (axis.d + 1) for at, axis in zip(tap, problem.axes, strict=True)]
        window = [slice(f, f + (axis.o - 1) * axis.s + 1, axis.s) for f, axis in zip(first, problem.axes, strict=True)]
        yield tap, padded[(slice(None), *window)]


def spread(problem: ConvProblem, src: npt.NDArray[Any]) -> Iterator[Tap]:
    """Input i's product is added to output i * s + tap * (d + 1) - p; what lies outside is cut off."""
    sizes = [max(axis.p + axis.o, (axis.i - 1) * axis.s + axis.kernel_extent) for axis in problem.axes]
    cut = tuple(slice(axis.p, axis.p + axis.o) for axis in problem.axes)
    for tap in product(*(range(axis.k) for axis in problem.axes)):
        whole = np.zeros((len(src), *sizes))
        first = [at * (axis.d + 1) for at, axis in zip(tap, problem.axes, strict=True)]
        places = [slice(f, f + (axis.i - 1) * axis.s + 1, axis.s) for f, axis in zip(first, problem.axes, strict=True)]
        whole[(slice(None), *places)] = src
        yield tap, whole[(slice(None), *cut)]
