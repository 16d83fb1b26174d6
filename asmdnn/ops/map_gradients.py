"""Gradients of functions of one, two and three arrays, element by element."""

from typing import Any, NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.ops.applied import widened
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.elementwise import binary, numbers, select
from asmdnn.ops.gradients import Descs, floats, gradient, gradients
from asmdnn.ops.shares import of_product, summed_to, zeros_of
from asmdnn.ops.typed import kind_of
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.channel_gradients.description import PReLUBackward
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.eltwise import USE_DST, EltwiseBackward
from asmdnn.types import EltwiseBackwardAlgorithm, f32

DIFFERENTIABLE = ("add", "sub", "mul", "div", "max", "min")  # of two arrays


def eltwise_gradient(
    dy: Any,
    x: Any,
    alg: EltwiseBackwardAlgorithm,
    alpha: float = 0.0,
    beta: float = 0.0,
    *,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of eltwise(x, alg, alpha, beta), for the gradient dy of its result: dy times the slope at x.

    For an alg that ends in _use_dst_for_bwd, x is the result of the forward pass instead.  Of arrays with the same
    dims, of f32, bf16 or f16; the result has dy's type.  Raises InvalidArguments, also for functions without a slope,
    such as "round"; Unimplemented.
    """
    data, name = floats("x", x), "dst" if isinstance(alg, str) and alg.endswith(USE_DST) else "src"

    def describe(descs: Descs) -> EltwiseBackward:
        return EltwiseBackward(alg, descs[name], descs["diff_dst"], descs["diff_src"], alpha, beta)

    inputs = {name: ("x", data), "diff_dst": ("dy", dy)}
    return gradient(("eltwise", alg, alpha, beta), inputs, ("diff_src", data.shape), describe, out, engine)


def prelu_gradient(dy: Any, x: Any, weights: Any, *, engine: Engine | None = None) -> tuple[AnyArray, AnyArray]:
    """(dx, dweights): the gradients of prelu(x, weights), for the gradient dy of its result.

    weights: as of `prelu`; dweights has their dims, and is summed over what they were broadcast to.  Of f32, bf16 or
    f16; results have dy's type.  Raises InvalidArguments, Unimplemented.
    """
    src, own = floats("x", x), floats("weights", weights)
    wide = widened(own, "weights", src.ndim, axis=min(1, src.ndim - 1))

    def describe(descs: Descs) -> PReLUBackward:
        return PReLUBackward(*(descs[name] for name in ("src", "weights", "diff_dst", "diff_src", "diff_weights")))

    inputs = {"src": ("x", src), "weights": ("weights", wide), "diff_dst": ("dy", dy)}
    results = {"diff_weights": wide.shape, "diff_src": src.shape}
    of_weights, dx = gradients(("prelu",), inputs, results, describe, None, engine)
    return dx, of_weights.reshape(own.shape)


def binary_gradient(alg: str, dy: Any, a: Any, b: Any, *, engine: Engine | None = None) -> tuple[AnyArray, AnyArray]:
    """(da, db): the gradients of binary(alg, a, b), for the gradient dy of its result, summed over what was broadcast.

    alg: "add", "sub", "mul", "div", "max" or "min"; where a and b are equal, the gradient of the latter two is a's.
    a, b: of f32, bf16 or f16, or numbers.  Results are new arrays of dy's type, with the dims of a and of b.
    Raises InvalidArguments for other algs, and for dims that do not fit; Unimplemented.
    """
    check_alg("alg", alg, DIFFERENTIABLE)
    t = of_result(dy, {"a": a, "b": b}, engine)
    x, y = t.operands
    if alg in ("max", "min"):
        of_a = binary("ge" if alg == "max" else "le", x, y, dtype=f32, engine=engine)
        return t.where(of_a, True, x), t.where(of_a, False, y)
    if alg in ("add", "sub"):
        return t.share(x), t.share(y, -1.0 if alg == "sub" else 1.0)
    if alg == "mul":
        return t.product(y, x), t.product(x, y)
    part = binary("div", t.dy, y, dtype=f32, engine=engine)
    quotient = binary("div", x, y, dtype=f32, engine=engine)
    return t.share(x, 1.0, part), of_product(part, quotient, y.shape, t.dy, engine, -1.0)


def select_gradient(
    dy: Any, condition: Any, a: Any, b: Any, *, engine: Engine | None = None
) -> tuple[AnyArray, AnyArray]:
    """(da, db): the gradients of select(condition, a, b), for the gradient dy of its result; the rest as of
    binary_gradient.

    condition: as of `select`; it has no gradient.  Raises InvalidArguments, Unimplemented.
    """
    t = of_result(dy, {"a": a, "b": b}, engine, numbers("condition", condition).shape)
    x, y = t.operands
    return t.where(condition, True, x), t.where(condition, False, y)


class OfResult(NamedTuple):
    """The gradient of a result, and what its operands have of it."""

    dy: AnyArray
    operands: tuple[AnyArray, ...]
    engine: Engine | None

    def share(self, like: AnyArray, factor: float = 1.0, given: AnyArray | None = None) -> AnyArray:
        """factor * dy, or times another array than dy, with the dims of an operand."""
        return summed_to(self.dy if given is None else given, like.shape, self.dy, self.engine, factor)

    def product(self, other: AnyArray, like: AnyArray) -> AnyArray:
        return of_product(self.dy, other, like.shape, self.dy, self.engine)

    def where(self, condition: Any, is_true: bool, like: AnyArray) -> AnyArray:
        """dy where the condition is so, else 0."""
        zero = zeros_of((1,) * max(1, self.dy.ndim), self.dy)
        parts = (self.dy, zero) if is_true else (zero, self.dy)
        return self.share(like, 1.0, select(condition, *parts, dtype=kind_of(self.dy), engine=self.engine))


def of_result(dy: Any, operands: dict[str, Any], engine: Engine | None, *others: tuple[int, ...]) -> OfResult:
    """Arrays of floats, and the gradient with the dims that they are broadcast to.  Raises InvalidArguments."""
    arrays = tuple(floats(name, value) for name, value in operands.items())
    shapes = [array.shape for array in arrays]
    try:
        dims = np.broadcast_shapes(*shapes, *others)
    except ValueError:
        raise InvalidArguments(f"dims that are not 1 must be equal, from the last one on: {shown(shapes)}") from None
    of_dy = floats("dy", dy)
    if of_dy.shape != dims:
        raise InvalidArguments(f"dy has dims {of_dy.shape}, the result has {dims}")
    return OfResult(of_dy, arrays, engine)
