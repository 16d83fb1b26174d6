"""Chains of post-ops in float64, and how far f32 arithmetic may be from them: for the answers of bench.

A chain is followed with a bound of the error: what an operation f makes of a value x that is off by e is

    max(|f(x + e) - f(x)|, |f(x - e) - f(x)|) + ULPS * 2^-23 * |f(x)|

whose second part is f's own error: docs/eltwise.md states at most 6 ulp for every function, and a scale after it adds
a rounding.  The first part bounds the error for functions that are monotone on [x - e, x + e], and for those that are
convex there, around their minimum.  Where the interval leaves f's domain, or what f32 holds, nothing can be said of
the result, and its tolerance is infinite.

Chains that round no small integer are exact, so that equality can be demanded.
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench import depthwise
from asmdnn.bench.values import Array, decoded, encoded
from asmdnn.definitions.elementwise import BINARY, forward, prelu
from asmdnn.definitions.rounding import SMALLEST, UNIT, as_f32
from asmdnn.primitives.attributes.numbers import FLOAT32_MAX
from asmdnn.primitives.attributes.post_ops import AnyPostOp

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Function = Callable[[Doubles], Doubles]

ULPS = 8
LARGEST_INTEGER = 8
EXACT_ELTWISE = ("abs", "round", "floor", "ceil", "trunc", "not")
POLES = ("reciprocal", "rsqrt")  # of these at 0
ABOUT_ZERO = ("and", "or", "xor", "not")  # ask whether a number is 0
EXACT_BINARY = ("add", "sub", "max", "min", "ge", "gt", "le", "lt", "eq", "ne", "and", "or", "xor")
SEED = 4
# How many times the tolerance oneDNN may be off where it approximates a function, such as log around 1; not for these:
PEER_SLACK = 10_000.0
ARITHMETIC = frozenset(
    ("relu", "abs", "square", "linear", "clip", "clip_v2", "round", "hardswish", "hardsigmoid", "sqrt")
)


def is_exact(attr: dnn.Attr) -> bool:
    """Whether the chain maps small integers to integers, without rounding."""
    return not attr.scales and all(map(_is_exact, attr.post_ops))


def _is_exact(op: AnyPostOp) -> bool:
    if isinstance(op, dnn.Sum):
        return abs(op.scale) in (0.0, 1.0) and not op.zero_point
    if isinstance(op, dnn.Eltwise):
        return op.scale == 1 and (op.alg in EXACT_ELTWISE or (op.alg == "relu" and abs(op.alpha) in (0.0, 1.0)))
    return isinstance(op, dnn.Binary) and op.alg in EXACT_BINARY


def exactness(attr: dnn.Attr) -> tuple[bool, ...]:
    """The kinds of data to check a chain on: integers too, if it is exact."""
    return (True, False) if is_exact(attr) else (False,)


def peer_slack(attr: dnn.Attr) -> float:
    """How many times the tolerance the peer may be off."""
    approximated = (isinstance(op, dnn.Eltwise) and op.alg not in ARITHMETIC for op in attr.post_ops)
    return PEER_SLACK if any(approximated) else 1.0


def operands(attr: dnn.Attr, exact: bool) -> dict[str, Array]:
    """Data for the tensors of the chain, by argument name: integers, or numbers of 1/2 to 2; no zeros to divide by.
    They are stored as their types are."""
    random = np.random.default_rng(SEED)
    found: dict[str, Array] = {}
    for i, op in enumerate(attr.post_ops):
        if isinstance(op, dnn.Depthwise):
            found |= {f"{name}_{i}": values for name, values in depthwise.filters(op).items()}
    for name, desc in attr.tensors().items():
        if name in found:
            continue
        whole = exact or desc.dtype in (dnn.s32, dnn.s8, dnn.u8)
        size = random.integers(1, LARGEST_INTEGER, desc.dims) if whole else random.uniform(0.5, 2, desc.dims)
        signs = (1,) if desc.dtype == dnn.u8 else (-1, 1)
        found[name] = encoded((size * random.choice(signs, desc.dims)).astype(np.float32), desc.dtype)
    return found


def apply(
    attr: dnn.Attr,
    values: Doubles,
    error: Doubles | float,
    arrays: Mapping[str, Floats],
    divisor: Doubles | float = 1.0,
) -> tuple[Doubles, Doubles]:
    """The chain on `values` that are off by `error`, and the scales of dst after it; `arrays` has its tensors, and dst
    as it was, if it is read."""
    x, e = np.array(values, np.float64), np.array(np.broadcast_to(error, values.shape), np.float64)
    unknown = np.zeros(x.shape, bool)
    for i, op in enumerate(attr.post_ops):
        if isinstance(op, dnn.Depthwise):
            weights, bias = arrays[f"dw_weights_{i}"], arrays.get(f"dw_bias_{i}")
            unknown = depthwise.sums(op, unknown.astype(np.float64), np.ones(weights.shape)) > 0
            x, e = depthwise.apply(op, x, e, weights, bias)
            continue
        with np.errstate(all="ignore"):
            function, size = _function(op, i, arrays)
            y = function(x)
            moved = np.maximum(np.abs(function(x + e) - y), np.abs(function(x - e) - y))
            if isinstance(op, dnn.Binary) and op.alg in ("eq", "ne"):
                moved = np.where(np.abs(x - decoded(arrays[f"binary_{i}"], op.src1.dtype)) <= e, 1.0, 0.0)
            if isinstance(op, dnn.Binary | dnn.Eltwise) and op.alg in ABOUT_ZERO:
                moved = np.where(np.abs(x) <= e, 1.0, 0.0)
            if isinstance(op, dnn.Eltwise) and (op.alg in POLES or (op.alg == "pow" and op.beta < 0)):
                moved = np.where(np.abs(x) <= e, np.inf, moved)  # a pole, which neither end of the interval shows
            e = moved + ULPS * UNIT * (np.abs(y) + moved + size(x)) + SMALLEST
        unknown |= ~(np.abs(y) + e < FLOAT32_MAX)
        x, e = np.where(unknown, 0.0, y), np.where(unknown, 0.0, e)
    if "dst" in dict(attr.scales):
        x = x / divisor
        e = e / np.abs(divisor) + UNIT * np.abs(x) + SMALLEST
    return np.where(unknown, np.nan, x), np.where(unknown, np.inf, e)


def _function(op: AnyPostOp, i: int, arrays: Mapping[str, Floats]) -> tuple[Function, Function]:
    """A post-op as a function, and the size of terms that may cancel in it."""
    if isinstance(op, dnn.Sum):
        scale, zero_point = as_f32(op.scale), as_f32(op.zero_point)
        old = arrays["dst"].astype(np.float64)
        added, terms = scale * (old - zero_point), abs(scale) * (np.abs(old) + abs(zero_point))
        return lambda x: x + added, lambda x: np.abs(x) + terms
    if isinstance(op, dnn.Eltwise):
        return _eltwise(op)
    name = f"{op.kind}_{i}"
    tensor = decoded(arrays[name], op.tensors[op.kind].dtype).astype(np.float64)
    if isinstance(op, dnn.PReLU):
        return lambda x: prelu(x, tensor), np.zeros_like
    assert isinstance(op, dnn.Binary)
    binary = BINARY[op.alg]
    return lambda x: binary(x, tensor).astype(np.float64), np.zeros_like


def _eltwise(op: dnn.Eltwise) -> tuple[Function, Function]:
    def function(x: Doubles) -> Doubles:
        return as_f32(op.scale) * forward(op.alg, x, as_f32(op.alpha), as_f32(op.beta))

    def terms(x: Doubles) -> Doubles:
        size = abs(op.scale) * (np.abs(op.alpha * x) + abs(op.beta))
        return {"linear": size, "hardsigmoid": size, "hardswish": np.abs(x) * size}.get(op.alg, np.zeros_like(x))

    return function, terms
