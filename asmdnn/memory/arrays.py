"""What a numpy array must be to hold the elements of a tensor: types and strides."""

from functools import lru_cache
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory.blocks import Array
from asmdnn.types import DATA_TYPES, DataType


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
    """Whether elements of this numpy type are those of `wanted`; integers hold those of a type that numpy lacks."""
    if wanted.extension and found.itemsize == wanted.size_bytes and found.isnative:
        return found.name == wanted.extension or found.names == (wanted.name,) or found.kind in "iu"
    return found == np.dtype(wanted.numpy)


@lru_cache(maxsize=64)
def data_type_of(found: np.dtype[Any]) -> DataType:
    """The element type that a numpy type is, those of ml_dtypes included, and words of one field that has the name of
    a type that numpy lacks.  Raises InvalidArguments."""
    for dtype in DATA_TYPES.values():
        if found == np.dtype([(dtype.name, dtype.numpy)]) and dtype.extension:
            return dtype
        if found.name == dtype.extension or (not dtype.extension and found == np.dtype(dtype.numpy)):
            return dtype
    held = " or ".join(dtype.name for dtype in DATA_TYPES.values() if dtype.extension)
    raise InvalidArguments(
        f"array has elements of {found}, which asmdnn does not have: convert it, such as array.astype(numpy.float32), "
        f"or pass dtype={held} for integers that hold its bits"
    )


def way_to(dtype: DataType) -> str:
    """What an error says to do to get elements of `dtype`."""
    name = np.dtype(dtype.numpy).name
    return f"{name} that hold {dtype}" if dtype.extension else f"array.astype('{name}')"
