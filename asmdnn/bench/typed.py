"""Problems of other types than f32: data that a type can hold, and answers behind the conversion to it."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.values import INTEGER_KINDS, Array, encoded, rounded
from asmdnn.errors import Unimplemented
from asmdnn.types import DataType, bf16, f32


def numbers(random: np.random.Generator, dims: tuple[int, ...], dtype: DataType, least: float, largest: float) -> Array:
    """Elements from least to largest, whole ones of integer types; without sign from 0 on."""
    stored = np.dtype(dtype.numpy)
    if stored.kind not in INTEGER_KINDS or dtype == bf16:
        return encoded(random.uniform(least, largest, dims).astype(np.float32), dtype)
    first = max(np.ceil(least), np.iinfo(stored).min)
    return random.integers(int(first), int(max(first, largest)), dims, endpoint=True).astype(stored)


def narrowed(values: Array, error: Array, dtype: DataType) -> tuple[Array, Array]:
    """Values and errors in a type: what is in doubt may be rounded either way."""
    if dtype == f32:
        return values, error
    error = np.broadcast_to(error, values.shape)
    either_way = np.abs(rounded(values + error, dtype) - rounded(values - error, dtype))
    return rounded(values, dtype), np.where(error > 0, error + either_way, 0.0)


def check_typed(types: tuple[DataType, ...], attr: dnn.Attr, in_place: bool = False, is_backward: bool = False) -> None:
    """Raise Unimplemented for what is checked in f32 alone."""
    if set(types) != {f32} and (attr.post_ops or in_place or is_backward):
        raise Unimplemented("--inplace, post-ops and gradients are checked in f32 alone")
