"""Resampling of arrays, and its gradient."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.ops.applied import Descs, apply
from asmdnn.ops.arguments import AnyArray, AnyDataType
from asmdnn.ops.data_format import into_last, is_last, result_like
from asmdnn.ops.gradients import Descs as Gradients
from asmdnn.ops.gradients import floats, given_dims, gradient
from asmdnn.ops.pooling import each, image
from asmdnn.primitives.attributes.numbers import finite
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.resampling.backward_description import ResamplingBackward
from asmdnn.primitives.resampling.description import (
    Coordinates,
    NearestRounding,
    ResamplingAlgorithm,
    ResamplingForward,
)


def resize(
    x: Any,
    size: int | Sequence[int] | None = None,
    *,
    factor: float | Sequence[float] | None = None,
    mode: ResamplingAlgorithm = "nearest",
    coordinates: Coordinates = "half_pixel",
    rounding: NearestRounding = "round_prefer_ceil",
    data_format: str | None = None,
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """An array (n, c, [d, [h,]] w) on another grid: of `size`, or `factor` times as large, rounded down.

    size, factor: a number, or one for each axis; exactly one of the two.  mode: "nearest", "linear" or "cubic";
    coordinates and rounding as in ResamplingForward.  torch's interpolate: "nearest" is coordinates="asymmetric" with
    rounding="floor", "bilinear" is "linear", align_corners=True is coordinates="align_corners".  data_format: "NHWC",
    with channels last, of x and the result.
    Raises InvalidArguments.
    """
    array = image(x, data_format)
    axes, sizes = array.ndim - 2, array.shape[2:]
    if (size is None) == (factor is None):
        raise InvalidArguments("give exactly one of size and factor")
    factors: tuple[float, ...] = ()
    if size is not None:
        made = each("size", size, axes, 1)
    else:
        factors = factors_of(factor, axes)
        made = tuple(int(n * number) for n, number in zip(sizes, factors, strict=True))
    dims = (*array.shape[:2], *made)

    def describe(descs: Descs, dst: MemoryDesc) -> ResamplingForward:
        return ResamplingForward(mode, descs["src"], dst, factors, coordinates, rounding)

    key = ("resize", made, factors, mode, coordinates, rounding)

    def second(target: Any) -> AnyArray:
        return apply(key, {"src": ("x", array)}, describe, lambda _: dims, ((), target, engine, dtype))

    if is_last(data_format, axes):
        return into_last(second, dims, result_like(array, dtype), out)[0]  # type: ignore[no-any-return]
    return second(out)


def resize_gradient(
    dy: Any,
    dims: Sequence[int],
    *,
    factor: float | Sequence[float] | None = None,
    mode: ResamplingAlgorithm = "nearest",
    coordinates: Coordinates = "half_pixel",
    rounding: NearestRounding = "round_prefer_ceil",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of resize, for the gradient dy of its result; dims: those of x, (n, c, [d, [h,]] w).

    dy: f32, bf16 or f16, as the result.  factor: as given to resize; None, as for a size, means the quotient of dims.
    All else is as there.
    Raises InvalidArguments, Unimplemented.
    """
    array = floats("dy", dy)
    if array.ndim < 3:
        raise InvalidArguments(f"dy has dims {array.shape}, it must have those of an image: (n, c, [d, [h,]] w)")
    dims = given_dims("dims", dims, array.ndim)
    given = () if factor is None else factors_of(factor, array.ndim - 2)

    def describe(descs: Gradients) -> ResamplingBackward:
        return ResamplingBackward(mode, descs["diff_src"], descs["diff_dst"], given, coordinates, rounding)

    key = ("resize", given, mode, coordinates, rounding)
    return gradient(key, {"diff_dst": ("dy", array)}, ("diff_src", dims), describe, out, engine)


def factors_of(factor: Any, axes: int) -> tuple[float, ...]:
    """One for each axis.  Raises InvalidArguments."""
    numbers = factor if isinstance(factor, Sequence) else (factor,) * axes
    factors = tuple(finite("factor", number) for number in islice(numbers, axes + 1))
    if len(factors) != axes or min(factors, default=1.0) <= 0:
        raise InvalidArguments(f"factor must be a number above 0, or {axes} of them, not {shown(factor)}")
    return factors
