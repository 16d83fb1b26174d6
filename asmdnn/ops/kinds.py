"""Results of the kind that came: who gives tensors of torch, jax or another library gets tensors of it back.

Both ways by DLPack, without a copy: arguments become arrays of numpy, or a Memory where numpy lacks their type.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory
from asmdnn.memory.arrays import data_type_of
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.typed import kind_of, named, typed, wanted_type
from asmdnn.types import HALF_FLOATS, DataType

NUMBERS = (int, float, bool)
OWN = (np.ndarray, Memory)


def called(function: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The function's results, as arrays of the library that the first array among its arguments is of."""
    first = first_array((*arguments, *options.values()))
    if first is None or isinstance(first, OWN):
        return function(*arguments, **options)
    out = options.pop("out", None)
    read = {name: readable(value) for name, value in options.items()}
    place = None if out is None else destination(out)
    if place is not None:
        read["out"] = place
    result = function(*map(readable, arguments), **read)
    return given_back(result, Giver(first, options.get("dtype"), way_into(first)), (place, out))


def first_array(values: Iterable[Any]) -> Any:
    """The first argument that is an array of any library, also in a list; None if there is none."""
    for value in values:
        if type(value) in (list, tuple):
            if value and type(value[0]) not in (*NUMBERS, list, tuple):  # numbers of Python have no kind
                found = first_array(value)
                if found is not None:
                    return found
        elif hasattr(type(value), "__dlpack__"):
            return value
    return None


def way_into(array: Any) -> Callable[[Any], Any] | None:
    """from_dlpack of the array API's namespace, or of the package of the class; None if the library has none."""
    try:
        space = array.__array_namespace__() if hasattr(type(array), "__array_namespace__") else None
    except Exception:  # whatever the caller's object does
        space = None
    found: Callable[[Any], Any] | None = getattr(space or sys.modules.get(home_of(array)), "from_dlpack", None)
    return found


def home_of(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def readable(value: Any) -> Any:
    """A tensor of another library, or a list or dict of them, as arrays over the same memory; all else as it is.

    So is what cannot be read: the function that gets it names the argument.
    """
    if type(value) in (list, tuple):
        return value if value and type(value[0]) in NUMBERS else type(value)(map(readable, value))
    if type(value) is dict:
        return {name: readable(each) for name, each in value.items()}
    if not hasattr(type(value), "__dlpack__") or isinstance(value, OWN):
        return value
    try:
        return np.from_dlpack(value)
    except Exception:  # whatever the caller's object does, or a type that numpy lacks
        try:
            return Memory.from_dlpack(value)
        except Exception:
            return value


def destination(out: Any) -> Any:
    """The memory of `out` as an array to write, of words where numpy lacks its type; `out` itself if it has none."""
    try:
        memory = out if isinstance(out, OWN) else Memory.from_dlpack(out)
        return named(memory.view(), memory.desc.dtype) if isinstance(memory, Memory) else memory
    except Exception:  # whatever the caller's object does: the function that gets it says what is wrong with it
        return out


class Giver(NamedTuple):
    """What results become: arrays of the first argument's library, by its from_dlpack."""

    first: Any
    dtype: Any
    import_: Callable[[Any], Any] | None

    def __call__(self, result: AnyArray) -> Any:
        """Raises InvalidArguments where the library has no such type."""
        if self.import_ is None:
            return result
        try:
            words = kind_of_words(result, self.first, self.dtype)
            return self.import_(result if words is None else Memory.from_array(result, words))
        except Exception as error:  # whatever the library does: bf16, as an example, most do not have
            what = f"the result of dtype {result.dtype} cannot be made an array of {home_of(self.first)} ({error})"
            raise InvalidArguments(f"{what}: pass arrays of numpy, or another dtype=") from error


def given_back(result: Any, give: Giver, out: tuple[Any, Any]) -> Any:
    """The arrays among the results as the library's; out: what was read of the caller's, and the caller's."""
    if result is out[0]:
        return out[1]
    if isinstance(result, list | tuple):
        return type(result)(given_back(each, give, out) for each in result)
    if isinstance(result, dict):
        return {name: given_back(each, give, out) for name, each in result.items()}
    return give(result) if isinstance(result, np.ndarray) else result


def kind_of_words(result: AnyArray, first: Any, dtype: Any) -> DataType | None:
    """Of what type elements are that numpy lacks; None for those that it can export itself."""
    if result.dtype.isbuiltin != 1:  # one of ml_dtypes
        return data_type_of(result.dtype)
    if result.dtype == np.uint16:  # no result is of such integers
        return next(kind for kind in HALF_FLOATS if kind.extension)
    if result.dtype != np.uint8:
        return None
    kind = kind_of(typed("x", first)) if dtype is None else wanted_type(dtype)
    return kind if kind.extension and kind.size_bytes == 1 else None
