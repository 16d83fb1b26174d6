"""Images whose channels are last: views with channels second, as primitives name dims; nothing is copied."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import AnyArray, AnyDataType
from asmdnn.ops.typed import kind_of, numpy_type, result_type, typed_output

FORMATS: Final = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}  # by spatial axes


def is_last(data_format: str | None, axes: int) -> bool:
    """Whether channels are last; None is channels second.  Raises InvalidArguments for a word of other axes."""
    first, last = FORMATS.get(axes, FORMATS[2])
    if data_format is not None and not (isinstance(data_format, str) and data_format in (first, last)):
        raise InvalidArguments(
            f"data_format must be {first} or {last} for x of {axes + 2} dims, not {shown(data_format)}"
            f"{resembling(data_format, (first, last))}"
        )
    return data_format == last


def channels_second(array: AnyArray) -> AnyArray:
    return array.transpose(0, array.ndim - 1, *range(1, array.ndim - 1))


def channels_last(array: AnyArray) -> AnyArray:
    return array.transpose(0, *range(2, array.ndim), 1)


def result_like(x: AnyArray, dtype: AnyDataType | None) -> "np.dtype[Any]":
    """numpy's type of a result of `dtype`, or else of x's type."""
    return numpy_type(result_type(dtype, None, kind_of(x)), (x.dtype,))


def into_last(
    compute: Callable[[AnyArray], Any], dims: tuple[int, ...], dtype: "np.dtype[Any]", out: Any
) -> tuple[Any, Any]:
    """(`out`, or a new array of these dims with channels last, which `compute` filled; what that returned).

    dims: with channels second, as the view that `compute` gets.
    """
    batch, channels, *sizes = dims
    own = (batch, *sizes, channels)
    made = allocated(np.empty, own, dtype) if out is None else out
    view = made if out is None else typed_output("out", out)
    if view.shape != own:
        raise InvalidArguments(f"out has dims {view.shape}, the result has {own}")
    return made, compute(channels_second(view))
