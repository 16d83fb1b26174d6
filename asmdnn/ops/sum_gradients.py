"""Gradients of reductions and sums of arrays: what an element weighs, times the gradient of the sum that it is in."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.sequences import items
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.elementwise import binary, eltwise, select
from asmdnn.ops.gradients import floats
from asmdnn.ops.moves import expand
from asmdnn.ops.reduction import checked_axes, cumsum, reduce
from asmdnn.ops.shares import in_f32, zeros_of
from asmdnn.ops.sum import weighted_sum
from asmdnn.ops.typed import kind_of, typed
from asmdnn.primitives.attributes.numbers import check_alg, check_flag, finite
from asmdnn.primitives.attributes.post_ops import Eltwise
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reduction.description import ALGORITHMS, NORM, ReductionAlgorithm
from asmdnn.types import BinaryAlgorithm, f32, u8


def reduce_gradient(
    dy: Any,
    x: Any,
    alg: ReductionAlgorithm = "sum",
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    p: float = 2.0,
    eps: float = 0.0,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of reduce(x, alg, axis), for the gradient dy of its result, whose dims keepdims says.

    Elements that are equally large share that of "max" and "min".  Where a norm is 0 or eps, it is 0.  Of f32, bf16 or
    f16; the result has dy's type.  Raises InvalidArguments, Unimplemented.
    """
    check_flag("keepdims", keepdims)
    check_alg("alg", alg, ALGORITHMS)
    src, of_dy = floats("x", x), floats("dy", dy)
    axes = checked_axes(axis, src.ndim)
    kept = tuple(1 if dim in axes else n for dim, n in enumerate(src.shape))
    dims = kept if keepdims else tuple(n for dim, n in enumerate(src.shape) if dim not in axes)
    if of_dy.shape != dims:
        raise InvalidArguments(f"dy has dims {of_dy.shape}, the result has {dims}")
    if not src.size:
        return zeros_of(src.shape, of_dy).view(of_dy.dtype)
    line, back = src.reshape(src.shape or (1,)), of_dy.reshape(kept or (1,))
    wide, own = (in_f32(line, engine), in_f32(back, engine)), axes if src.ndim else (0,)
    p, eps = finite("p", p), finite("eps", eps)
    found = ReductionGradient(*wide, alg, own, p=p, eps=eps, engine=engine).gradient()
    found = expand(found, line.shape, engine=engine) if found.shape != line.shape else found
    return weighted_sum([found], dtype=kind_of(of_dy), engine=engine).reshape(src.shape)


class ReductionGradient:
    """A reduction of f32 and the gradient of its result, with dims of 1."""

    def __init__(
        self, x: AnyArray, dy: AnyArray, alg: str, axes: tuple[int, ...], p: float, eps: float, engine: Engine | None
    ) -> None:
        self.x, self.dy, self.alg, self.axes, self.p, self.eps, self.engine = x, dy, alg, axes, p, eps, engine

    def gradient(self) -> AnyArray:
        """With x's dims, or those of dy where all elements have the same."""
        ways = {"sum": self.of_sum, "mean": self.of_mean, "max": self.of_best, "min": self.of_best}
        ways |= {"mul": self.of_product, "logsumexp": self.of_exponentials}
        return ways.get(self.alg, self.of_norm)()

    def of_sum(self) -> AnyArray:
        return self.dy

    def of_mean(self) -> AnyArray:
        return weighted_sum([self.dy], [self.dy.size / self.x.size], engine=self.engine)

    def of_best(self) -> AnyArray:
        hit = self.two("eq", self.x, self.reduced(self.x, self.alg))
        return self.two("mul", hit, self.two("div", self.dy, self.reduced(hit, "sum")))

    def of_exponentials(self) -> AnyArray:
        share = self.two("sub", self.x, self.reduced(self.x, self.alg), Eltwise("exp"))
        return self.two("mul", share, self.dy)

    def of_product(self) -> AnyArray:
        """The product of all others: where x is 0 that of the others, if it is the only one."""
        zero = self.two("eq", self.x, 0.0)
        rest = self.two("add", self.x, zero)
        others = self.reduced(rest, "mul")
        zeros = self.reduced(zero, "sum")
        alone = self.two("mul", zero, self.two("eq", zeros, 1.0))
        none = self.two("eq", zeros, 0.0)
        weight = self.two("add", alone, self.two("sub", none, zero, Eltwise("relu")))
        return self.two("mul", self.two("mul", self.two("div", others, rest), weight), self.dy)

    def of_norm(self) -> AnyArray:
        """sign(x) |x|^(p - 1) times dy, and p, or the norm to the power of 1 - p."""
        slope = self.x
        if self.p != 2:
            size = self.one(self.x, "abs", Eltwise("pow", 1.0, self.p - 1))
            slope = self.two("mul", self.one(self.x, "sign"), size)
        total = self.reduced(self.x, "norm_lp_power_p_sum", self.p)
        back = self.dy
        if "power_p" in self.alg:
            back = weighted_sum([back], [self.p], engine=self.engine)
        else:
            norm = self.one(total, "linear", Eltwise("pow", 1.0, 1 / self.p - 1), alpha=1.0, beta=self.added)
            back = self.two("mul", back, norm)
            back = select(self.two("gt", total, 0.0), back, 0.0, engine=self.engine)
        if self.alg.endswith("max"):
            back = select(self.two("gt", total, self.eps), back, 0.0, engine=self.engine)
        return self.two("mul", slope, back)

    @property
    def added(self) -> float:
        return self.eps if self.alg.startswith(NORM) and self.alg.endswith("sum") else 0.0

    def two(self, alg: BinaryAlgorithm, a: Any, b: Any, *post_ops: Eltwise) -> AnyArray:
        return binary(alg, a, b, post_ops=post_ops, dtype=f32, engine=self.engine)

    def one(self, x: AnyArray, alg: Any, *post_ops: Eltwise, alpha: float = 0.0, beta: float = 0.0) -> AnyArray:
        return eltwise(x, alg, alpha, beta, post_ops=post_ops, engine=self.engine)

    def reduced(self, x: AnyArray, alg: Any, p: float = 2.0) -> AnyArray:
        return reduce(x, alg, self.axes, keepdims=True, p=p, engine=self.engine)


def cumsum_gradient(
    dy: Any,
    axis: int = -1,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of cumsum(x, axis, ...), for the gradient dy of its result: sums from the other end.

    exclusive, reverse: as of the forward pass.  dy: of f32, bf16 or f16; so is the result.
    Raises InvalidArguments, Unimplemented.
    """
    check_flag("reverse", reverse)
    return cumsum(floats("dy", dy), axis, exclusive=exclusive, reverse=not reverse, out=out, engine=engine)


def weighted_sum_gradient(dy: Any, scales: Sequence[float], *, engine: Engine | None = None) -> list[AnyArray]:
    """The gradients of arrays of weighted_sum(arrays, scales), for the gradient dy of its result: dy times each scale.

    dy: of f32, bf16 or f16; so are the results.  Raises InvalidArguments, Unimplemented.
    """
    found = floats("dy", dy)
    try:
        factors = items(scales)
    except Exception:  # whatever the caller's object does
        factors = ()
    if not factors:
        raise InvalidArguments(f"scales must be a sequence, a number for each array, not {shown(scales)}")
    return [weighted_sum([found], [scale], engine=engine) for scale in factors]


def dropout_gradient(
    dy: Any, mask: Any, probability: float = 0.5, *, out: Any = None, engine: Engine | None = None
) -> AnyArray:
    """The gradient of x of dropout(x, probability), for the gradient dy of its result and the mask beside that.

    mask: uint8 or bool with the dims of dy.  dy: of f32, bf16 or f16; so is the result.  Raises InvalidArguments.
    """
    if isinstance(mask, np.ndarray) and mask.dtype == np.bool_:
        mask = mask.view(np.uint8)
    found, kept = floats("dy", dy), typed("mask", mask)
    if kind_of(kept) != u8 or kept.shape != found.shape:
        raise InvalidArguments(
            f"mask must be uint8 or bool with the dims of dy, {found.shape}, not {kept.dtype} {kept.shape}"
        )
    p = finite("probability", probability)
    if not 0 <= p <= 1:
        raise InvalidArguments(f"probability must be from 0 to 1, not {shown(probability)}")
    scale = Eltwise("linear", 1 / (1 - p) if p < 1 else 0.0)
    return binary("mul", found, kept, post_ops=[scale], dtype=None if out is not None else kind_of(found), out=out,
                  engine=engine)  # fmt: skip
