"""What a numpy array must be to hold the elements of a tensor: types and strides."""

from functools import lru_cache
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory.blocks import Array
from asmdnn.types import DATA_TYPES, DataType, bf16


def element_strides(array: Array) -> tuple[int, ...]:
    """Strides in elements; dims of 1 without a meaningful stride (x[None]) get the one of a row-major tensor."""
    strides, item, dense = [0] * array.ndim, array.itemsize, 1
    for dim in reversed(range(array.ndim)):
        stride, count = array.strides[dim], array.shape[dim]
        if count == 1 and (stride <= 0 or stride % item):
            stride = dense * item
        if stride < 0 or stride % item:
            raise InvalidArguments(
                f"array has a stride of {stride} bytes in dim {dim}, which must be positive and a multiple of {item}: "
                "use numpy.ascontiguousarray"
            )
        strides[dim] = stride // item
        dense = strides[dim] * count
    return tuple(strides)


@lru_cache(maxsize=64)
def is_stored_as(found: np.dtype[Any], wanted: DataType) -> bool:
    """Whether elements of this numpy type are those of `wanted`; for bf16 any of the types that hold its 2 bytes."""
    if wanted == bf16 and (found == np.int16 or found.name == "bfloat16"):
        return True
    return found == np.dtype(wanted.numpy)


@lru_cache(maxsize=64)
def data_type_of(found: np.dtype[Any]) -> DataType:
    """The element type that a numpy type is, ml_dtypes' bfloat16 included.  Raises InvalidArguments."""
    if found.name == "bfloat16":
        return bf16
    for dtype in DATA_TYPES.values():
        if dtype != bf16 and found == np.dtype(dtype.numpy):
            return dtype
    raise InvalidArguments(
        f"array has elements of {found}, which asmdnn does not have: convert it, such as array.astype(numpy.float32), "
        "or pass dtype=bf16 for 2-byte integers"
    )


def way_to(dtype: DataType) -> str:
    """What an error says to do to get elements of `dtype`."""
    return "uint16 that hold bf16" if dtype == bf16 else f"array.astype('{np.dtype(dtype.numpy).name}')"
