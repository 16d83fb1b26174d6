"""What callers say of a model's inputs: dims, and data that never changes."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.memory.sequences import items
from asmdnn.memory.traced import is_integer
from asmdnn.network.graph import LARGEST_DIM, Array, TensorType

Shapes = Mapping[str, tuple[int, ...]]


def check_names(inputs: Mapping[str, TensorType], shapes: Shapes, constants: Mapping[str, Array]) -> None:
    """Raise InvalidArguments for a name that is no input."""
    for name in (*shapes, *constants):
        if name not in inputs:
            raise InvalidArguments(f"{shown(name)} is no input of the model: {did_you_mean(shown(name), inputs)}")


def shape_of(name: str, declared: TensorType, given: Any) -> tuple[int, ...]:
    """The dims of an input.  Raises InvalidArguments."""
    known = declared.shape
    if given is None:
        if known is None or any(not isinstance(n, int) for n in known):
            raise InvalidArguments(f"input {name} is {declared}: say its dims, as in shapes={{{name!r}: (1, ...)}}")
        return tuple(n for n in known if isinstance(n, int))
    try:
        dims = dims_of(items(given))
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"shapes[{name!r}] must be integers, not {shown(given)}") from None
    fits = known is None or (
        len(dims) == len(known) and all(not isinstance(n, int) or n == m for n, m in zip(known, dims, strict=True))
    )
    if not fits or not all(0 <= n <= LARGEST_DIM for n in dims):
        raise InvalidArguments(f"shapes[{name!r}] is {shown(dims)}, which does not fit the model's {declared}")
    return dims


def constant_of(name: str, declared: TensorType, given: Any) -> Array:
    """An input's data, in its type.  Raises InvalidArguments."""
    try:
        data = np.asarray(given)
        fits = data.dtype.kind in "fiub" or data.dtype == declared.dtype
    except Exception:  # whatever the caller's object does
        fits = False
    if not fits:
        raise InvalidArguments(f"constants[{name!r}] must be an array or a number, not {shown(given)}")
    shape_of(name, declared, data.shape)
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, as in a Cast
        return data.astype(declared.dtype)


def dims_of(given: Iterable[Any]) -> tuple[int, ...]:
    """As Python's integers, or such as stand for several."""
    return tuple([n if is_integer(n) else int(n) for n in given])
