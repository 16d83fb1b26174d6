"""The independent answer to a convolution or deconvolution: numpy in float64, one matrix product per kernel tap.

Two kinds of data are checked.  Integers, small enough that every partial sum is below 2^24 and so exact in f32 in any
order, but with as many bits as that allows: the result must be equal, which finds a single lost or doubled product and
arithmetic of less precision.  Real numbers in [-1, 1): the result may differ by rounding, bounded per element by

    gamma(K + 2) * (|patch| * |filter| + |bias|),  gamma(n) = n u / (1 - n u),  u = 2^-24

with K products a sum, |.| the Euclidean norm for patch and filter: the bound of Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., eq. (3.5), holds for any order of summation, and Cauchy-Schwarz bounds its sum of
absolute products.  Winograd's convolution rounds on integers too, and has a bound of its own: see winograd.py.
Post-ops: see chains.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench import chains, winograd
from asmdnn.bench.attributes import UNSCALED, ScaleWords
from asmdnn.bench.judge import Answer
from asmdnn.bench.numbers import ALL_F32, EXACT_SUM, INTEGERS, LARGEST_INTEGER, TypedNumbers
from asmdnn.bench.post_ops import dims_behind
from asmdnn.bench.problems import ConvProblem
from asmdnn.bench.taps import sums_of, taps_of
from asmdnn.bench.typed import narrowed
from asmdnn.definitions.rounding import UNIT_ROUNDOFF

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

SEED = 1
LARGEST_SRC_INTEGER = 4


@dataclass(frozen=True, slots=True)
class ConvData:
    """Arguments in plain layouts: src (n, c, ...), weights (o, i, ...), bias (o) or None, dst before the call; as f32,
    numbers that their types have.

    operands: the tensors of post-ops, and scales, by name.
    """

    src: Floats
    weights: Floats
    bias: Floats | None
    dst: Floats
    exact: bool
    winograd: bool = False  # whether results may be those of Winograd's convolution
    operands: Mapping[str, Floats] = field(default_factory=dict)
    numbers: TypedNumbers = ALL_F32

    @property
    def values(self) -> dict[str, Floats]:
        """Numbers by the name of the argument."""
        found = {"src": self.src, "weights": self.weights, "bias": self.bias, "dst": self.dst}
        return {name: array for name, array in found.items() if array is not None} | dict(self.operands)

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The same as they are stored, and zero points."""
        return self.numbers.stored(self.values)


def make_data(
    problem: ConvProblem,
    has_bias: bool,
    attr: dnn.Attr,
    exact: bool,
    scales: ScaleWords = UNSCALED,
    numbers: TypedNumbers = ALL_F32,
) -> ConvData:
    """Arguments filled with data.  Without a sum, dst starts as NaN, or 0: an element that is not written shows."""
    random = np.random.default_rng(SEED)
    dst_dims = dims_behind(attr.post_ops, problem.dst_dims)
    src_bound = max(1, min(LARGEST_SRC_INTEGER, EXACT_SUM // 2 // problem.reduction))
    bound = max(1, min(LARGEST_INTEGER, EXACT_SUM // 2 // (problem.reduction * src_bound)))

    def fill(name: str, dims: tuple[int, ...], largest: int = bound) -> Floats:
        return numbers.fill(random, name, dims, largest, exact)

    unwritten = np.float32(0 if numbers.of("dst") in INTEGERS else np.nan)
    return ConvData(
        fill("src", problem.src_dims, src_bound),
        fill("weights", problem.weights_dims),
        fill("bias", (problem.oc,)) if has_bias else None,
        fill("dst", dst_dims) if attr.reads_dst() else np.full(dst_dims, unwritten),
        exact,
        operands=chains.operands(attr, exact) | dict(scales.arrays),
        numbers=numbers,
    )


def numpy_answer(problem: ConvProblem, data: ConvData, attr: dnn.Attr, scales: ScaleWords = UNSCALED) -> Answer:
    """The convolution of `data`, and its tolerance as the module says."""
    values, numbers = np.empty(problem.dst_dims), data.numbers
    weights = np.asarray(data.weights, np.float64)
    for image, src in zip(values, data.src, strict=True):
        image[...] = sums_of(problem, src[None].astype(np.float64) - numbers.zero_point("src"), weights)[0]
    values *= scales.factor
    if data.bias is not None:
        values += by_channel(problem, data.bias)
    exact = data.exact and chains.is_exact(attr)
    error: Doubles | float = 0.0 if exact else rounding_of_sums(problem, data, scales)
    if attr.post_ops or attr.scales:
        values, error = chains.apply(attr, values, error, data.values, scales.divisor)
    if not numbers.are_f32:
        values, error = narrowed(values + numbers.zero_point("dst"), np.asarray(error), numbers.of("dst"))
    return Answer(values, 0.0 if exact else error, "numpy")


def by_channel(problem: ConvProblem, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A vector over channels, to be broadcast to images."""
    return values.reshape(-1, *[1] * len(problem.axes))


def rounding_tolerance(problem: ConvProblem, data: ConvData, attr: dnn.Attr) -> Doubles | None:
    """The tolerance without the values, for large problems: of chains of Sum and relu without scales, else None.

    Sums only add terms to the bound, each with two roundings, and relu does not increase a difference.
    """
    if attr.scales:
        return None
    added: Doubles | float = 0.0
    for op in attr.post_ops:
        if isinstance(op, dnn.Sum):
            added = added + abs(op.scale) * (np.abs(data.dst.astype(np.float64)) + abs(op.zero_point))
        elif not (isinstance(op, dnn.Eltwise) and op.alg == "relu" and abs(op.alpha) <= 1 and op.scale == 1):
            return None
    return rounding_of_sums(problem, data, UNSCALED, added, 2 * len(attr.post_ops))


def rounding_of_sums(
    problem: ConvProblem,
    data: ConvData,
    scales: ScaleWords = UNSCALED,
    added: Doubles | float = 0.0,
    more_roundings: int = 0,
) -> Doubles:
    """How far rounding can move each sum: the bound of the module's text, with the size of what else is added."""
    filters = np.sqrt(np.square(data.weights.reshape(problem.oc, -1), dtype=np.float64).sum(axis=1))
    if data.winograd:
        size = winograd.size_of_sums(problem, data.src, filters) * np.abs(scales.factor)
        terms = problem.ic // problem.groups + winograd.ROUNDINGS
    else:
        size = size_of_patches(problem, data) * by_channel(problem, filters) * np.abs(scales.factor)
        terms = problem.reduction
    if data.bias is not None:
        size += by_channel(problem, np.abs(data.bias))
    size = size + added
    rounding = (terms + (4 if scales.masks else 2) + more_roundings) * UNIT_ROUNDOFF
    return np.asarray(size * (rounding / (1 - rounding)))


def size_of_patches(problem: ConvProblem, data: ConvData) -> Doubles:
    """The norm of what each result's window reads."""
    mb, _, *pixels = problem.src_dims
    squares = np.square(data.src - data.numbers.zero_point("src"), dtype=np.float64)
    squares = squares.reshape(mb, problem.groups, -1, *pixels).sum(axis=2)
    patches = np.stack([sum(view for _, view in taps_of(problem, image)) for image in squares])
    return np.asarray(np.sqrt(np.repeat(patches, problem.oc // problem.groups, axis=1)))
