"""In which types arrays go to and from kernels: what a caller passes and gets, as it lies or as f32."""

from functools import lru_cache
from typing import Any

import numpy as np

from asmdnn.network.element_types import EXTENSIONS, extension_type
from asmdnn.types import HALF_FLOATS, DataType, f32, s8, u8

KINDS = "fiub"  # of numpy types that are plain numbers
F32 = np.dtype(np.float32)
HALVES = {t.extension or np.dtype(t.numpy).name: t for t in HALF_FLOATS}  # by the names of numpy's and ml_dtypes' types
HALF_BYTES = 2
BYTES = {np.dtype(np.uint8): u8, np.dtype(np.int8): s8}


def passed_type(dtype: np.dtype[Any]) -> DataType:
    """The type in which kernels read and write arrays of a type: bytes and floats of 16 bits as they are, others as
    f32.  Integers of 32 bits and more are read as they are, too, as indices, and written as f32."""
    if dtype == F32:
        return f32
    return HALVES.get(dtype.name) or BYTES.get(dtype, f32)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether it has 16 bits, as floats that are f32 inside of a network."""
    return dtype.itemsize == HALF_BYTES and dtype.name in HALVES  # numpy takes a while to name a type


@lru_cache(64)  # numpy makes the name of a type anew each time it is asked
def is_read(dtype: np.dtype[Any]) -> bool:
    """Whether kernels read a caller's array itself, if it is dense."""
    return dtype == F32 or passed_type(dtype) is not f32 or is_index_type(dtype)


def is_index_type(dtype: np.dtype[Any]) -> bool:
    """Whether kernels read the integers that lie there, and write others as f32."""
    return dtype.kind == "i" and dtype.itemsize >= F32.itemsize


def made_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of arrays in which kernels write values of a type."""
    return F32 if passed_type(dtype) is f32 else dtype


def name_of(dtype: np.dtype[Any]) -> str:
    """As a file has it; a type that numpy lacks goes by its own name."""
    return dtype.name if dtype.kind not in KINDS or dtype.name in EXTENSIONS.values() else dtype.str


def type_named(name: str) -> np.dtype[Any]:
    """The way back.  Raises ValueError for what is no number, and for what numpy lacks without ml_dtypes."""
    lacks = name in EXTENSIONS.values()
    found = extension_type(name) if lacks else np.dtype(name)
    if found is None or (found.kind not in KINDS and not lacks):
        raise ValueError(f"{name} is no type of numbers that is known here")
    return found
