"""New arrays: where the system has no memory for one, the library's error says so, and not numpy's.

Every array whose size a caller chooses is made by `allocated`, or inside a `try` that answers MemoryError with
`no_memory`; tests/memory/test_allocation.py looks for others.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy.typing as npt

from asmdnn.errors import OutOfMemory

Array = npt.NDArray[Any]
Made = TypeVar("Made")
Given = ParamSpec("Given")


def allocated(make: Callable[..., Array], *arguments: Any, **named: Any) -> Array:
    """make(*arguments, **named), which allocates: `allocated(np.empty, dims, dtype)`.  Raises OutOfMemory."""
    try:
        return make(*arguments, **named)
    except MemoryError as error:
        raise no_memory(error) from None


def within_memory(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """The function, whose allocations, Python's own too, raise OutOfMemory: for planning, and for making primitives."""

    @wraps(function)
    def call(*arguments: Given.args, **named: Given.kwargs) -> Made:
        try:
            return function(*arguments, **named)
        except MemoryError as error:
            raise no_memory(error) from None

    return call


def no_memory(error: MemoryError) -> OutOfMemory:
    """What to raise instead; numpy's message has the size, Python's own has none."""
    if isinstance(error, OutOfMemory):
        return error
    return OutOfMemory(f"{str(error) or 'the system has no more memory'}: free memory, or make the tensors smaller")
