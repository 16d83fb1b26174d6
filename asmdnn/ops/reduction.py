"""Reductions of arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.ops.applied import SameDims, apply
from asmdnn.ops.arguments import AnyArray, AnyDataType, integer, integers
from asmdnn.ops.typed import fractions, typed, typed_output
from asmdnn.primitives.attributes.numbers import check_flag
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reduction.cumulative import CumulativeSum
from asmdnn.primitives.reduction.description import ReductionAlgorithm, ReductionForward


def reduce(
    x: Any,
    alg: ReductionAlgorithm = "sum",
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    p: float = 2.0,
    eps: float = 0.0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """An array reduced over some of its dims, over all for None; see `ReductionForward` for the algorithms.

    keepdims: reduced dims stay, as 1.  out: memory of the result's dims.  post_ops run in order on the result
    with dims of 1.  Raises InvalidArguments, Unimplemented.
    """
    check_flag("keepdims", keepdims)
    array = typed("x", x)
    if not array.ndim:  # numpy takes its last axis, too
        array, keepdims = array.reshape(1), False
    axes = checked_axes(axis, array.ndim)
    target = out if out is None or keepdims else with_dims_of_one(out, array.shape, axes)
    result = apply(
        ("reduce", alg, axes, p, eps),
        {"src": ("x", array)},
        lambda descs, dst: ReductionForward(alg, descs["src"], dst, p, eps),
        lambda descs: tuple(1 if dim in axes else n for dim, n in enumerate(descs["src"].dims)),
        (post_ops, target, engine, fractions(dtype, target, array)),
    )
    if out is not None:
        return out  # type: ignore[no-any-return]
    return result if keepdims else np.squeeze(result, axes)


def cumsum(
    x: Any,
    axis: int = -1,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The sums of an array along an axis, from the first element to each; see `CumulativeSum`.

    exclusive: without the element itself.  reverse: from each element to the last one.  out: memory of x's dims; x
    itself, for a dense x and inclusive sums.  Raises InvalidArguments, Unimplemented.
    """
    axis = integer("axis", axis)
    check_flag("exclusive", exclusive)
    check_flag("reverse", reverse)
    return apply(
        ("cumsum", axis, exclusive, reverse),
        {"src": ("x", x)},
        lambda descs, dst: CumulativeSum(descs["src"], dst, axis, exclusive, reverse),
        SameDims("src"),
        ((), out, engine, dtype),
    )


def with_dims_of_one(out: Any, dims: tuple[int, ...], axes: tuple[int, ...]) -> AnyArray:
    """The memory of a result without these axes as that of one with them.  Raises InvalidArguments."""
    target, left = typed_output("out", out), tuple(n for axis, n in enumerate(dims) if axis not in axes)
    if target.shape != left:
        raise InvalidArguments(f"out has dims {target.shape}, the result has {left}")
    return np.expand_dims(target, axes)


def checked_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """From 0 on, each once.  Raises InvalidArguments."""
    if axis is None:
        return tuple(range(ndim))
    axes = integers("axis", axis)
    if not all(-ndim <= a < ndim for a in axes) or len({a % ndim for a in axes}) < len(axes):
        raise InvalidArguments(
            f"axis is {shown(axis)}, x has {counted(ndim, 'dim')}: use each of {-ndim} to {ndim - 1} once"
        )
    return tuple(sorted(a % ndim for a in axes))
