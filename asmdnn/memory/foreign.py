"""Arrays of other libraries, read through whatever protocol they speak; objects of users may do anything meanwhile."""

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments
from asmdnn.memory.allocation import allocated, no_memory
from asmdnn.memory.blocks import Array


def as_array(name: str, value: object) -> Array:
    """`value` as an ndarray, without a copy where that is possible.  Raises InvalidArguments, which names the argument,
    for everything that is none: ragged lists, tensors with a gradient or on another device, odd types; OutOfMemory."""
    if type(value) is np.ndarray:
        return value
    try:
        foreign = not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__")
        return np.from_dlpack(value) if foreign else np.asarray(value)  # type: ignore[arg-type]
    except MemoryError as error:
        raise no_memory(error) from None
    except Exception as error:  # whatever the object does
        if records_gradients(value):
            way = f"call the functions of asmdnn.torch, which have gradients, or pass {name}.detach()"
            raise InvalidArguments(f"{name} requires gradients, which this function does not record: {way}") from None
        what = f"{name} of type {type(value).__name__} cannot be read as an array in memory ({error})"
        raise InvalidArguments(f"{what}: pass a float32 array of numpy") from error


def records_gradients(value: object) -> bool:
    """Whether it is a tensor of torch that is handed to nobody, since what is computed would have no gradient."""
    try:
        return getattr(value, "requires_grad", False) is True
    except Exception:  # whatever the object does
        return False


def is_python(value: object) -> bool:
    """Whether it is a number of Python, or a list of them, which has no type of elements."""
    return type(value) in (float, int, bool, list, tuple)


def rounded_f32(name: str, value: object) -> npt.NDArray[np.float32]:
    """`value` as f32, copied if it is of another type: for weights that are converted, where calls refuse to.

    Raises InvalidArguments for what is no array of real numbers, or too large for f32, which would become infinite.
    """
    given = as_array(name, value)
    if not np.can_cast(given.dtype, np.float32, "same_kind"):
        raise InvalidArguments(f"{name} has dtype {given.dtype}, it must have numbers that f32 can hold")
    with np.errstate(all="ignore"):
        found = allocated(np.asarray, given, np.float32)
    if given.dtype != np.float32 and np.any(np.isinf(found) & ~np.isinf(given)):
        raise InvalidArguments(f"{name} has numbers of {given.dtype} that are too large for f32: scale them")
    return found
