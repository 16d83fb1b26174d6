"""Arrays of other libraries, read through whatever protocol they speak; objects of users may do anything meanwhile."""

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory.blocks import Array


def as_array(name: str, value: object) -> Array:
    """`value` as an ndarray, without a copy where that is possible.  Raises InvalidArguments, which names the argument,
    for everything that is none: ragged lists, tensors with a gradient or on another device, odd types."""
    if type(value) is np.ndarray:
        return value
    try:
        foreign = not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__")
        return np.from_dlpack(value) if foreign else np.asarray(value)  # type: ignore[arg-type]
    except Exception as error:  # whatever the object does
        what = f"{name} of type {type(value).__name__} cannot be read as an array in memory ({error})"
        raise InvalidArguments(f"{what}: pass a float32 array of numpy") from error
