"""Where numpy's arrays lie, read at the price of a look-up."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from asmdnn.jit.native import ffi


@cache
def address_reader() -> Callable[[Sequence[Any]], list[int]]:
    """A function that reads arrays' addresses from their objects, where these are known to lie; decided once a process.

    numpy's C API makes the place part of its ABI: `data` comes first in PyArrayObject, after the head of every Python
    object.  Compiled extensions read it there; array.ctypes takes 1.5 us for it, this 0.1.
    """
    head = object.__basicsize__
    words = ffi.cast("int64_t *", head)  # so that the index of an object's word is its address over 8

    def read(arrays: Sequence[Any]) -> list[int]:
        return [words[id(array) >> 3] for array in arrays]

    def ask(arrays: Sequence[Any]) -> list[int]:
        return [array.__array_interface__["data"][0] for array in arrays]

    samples = [np.empty(3, np.float32), np.empty((4, 5), np.float32)[1:, ::2]]
    return read if head == 16 and read(samples) == ask(samples) else ask
