"""What callers declare of a graph's inputs."""

from operator import index
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.memory.sequences import items
from asmdnn.network.graph import LARGEST_DIM, TensorType

NUMPY_TYPES = (
    "float32", "float64", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64", "bool",
)  # fmt: skip


def declared(name: str, shape: Any, dtype: Any) -> TensorType:
    """The type of an input.  Raises InvalidArguments."""
    try:
        dims = tuple(n if n is None or isinstance(n, str) else index(n) for n in items(shape))
        found = np.dtype(dtype)
    except Exception:  # whatever the caller's objects do
        near = resembling(dtype, NUMPY_TYPES)
        raise InvalidArguments(
            f"input {shown(name)} needs dims and a numpy type, not {shown(shape)}, {shown(dtype)}{near}"
        ) from None
    if not all(0 <= n <= LARGEST_DIM for n in dims if isinstance(n, int)):
        raise InvalidArguments(f"input {shown(name)} has dims {shown(dims)}, they must be from 0 to 2**63 - 1")
    return TensorType(found, dims)
