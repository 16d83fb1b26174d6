"""What networks compute with, apart from what describes them: one from a pack needs no more."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def same_bits(a: Array, b: Array) -> bool:
    """Whether arrays are one, or have equal bytes."""
    if a is b:
        return True
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.ctypes.data == b.ctypes.data and a.strides == b.strides:
        return True
    words = f"u{a.dtype.itemsize}"
    return bool(np.array_equal(np.ascontiguousarray(a).view(words), np.ascontiguousarray(b).view(words)))
