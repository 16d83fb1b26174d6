"""Arrays of a caller: whether they are what a network takes."""

from collections.abc import Collection, Iterable, Mapping, Set
from itertools import combinations
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted, resembling, shown
from asmdnn.network.arrays import Array
from asmdnn.network.passing import is_read, made_type

_BY_NAME = "pass each by its name"


def check_feeds(feeds: Any, inputs: Set[str], what: str = "feeds must be arrays for") -> None:
    """Raise InvalidArguments unless it maps the names of the inputs, all of them and no others.  what: begins it."""
    if type(feeds) is dict and feeds.keys() == inputs:
        return
    if not isinstance(feeds, Mapping):
        raise InvalidArguments(f"{what} {', '.join(inputs)}, not {shown(feeds)}")
    if {*feeds} != {*inputs}:
        raise InvalidArguments(f"{what} {names_and_others(feeds, inputs)}")


def feeds_of_call(arrays: tuple[Any, ...], named: dict[str, Any], inputs: Collection[str]) -> dict[str, Any]:
    """Of a call `net(x)` of a network with one input, or `net(image=x, size=n)`.  Raises InvalidArguments."""
    if len(arrays) == 1 == len(inputs) and not named:
        return dict.fromkeys(inputs, arrays[0])
    if arrays:
        also = f" and {names_and_others(named, inputs)}" if named else ""
        given = f"{counted(len(arrays), 'array')} without a name{also}"
        raise InvalidArguments(f"the network takes arrays for {', '.join(inputs)}, not {given}: {_BY_NAME}")
    if named.keys() != {*inputs}:
        raise InvalidArguments(f"the network takes arrays for {names_and_others(named, inputs)}")
    return named


def check_named(what: str, arrays: tuple[Any, ...], names: Iterable[str]) -> None:
    """Raise InvalidArguments for arrays without names, where all have one."""
    if arrays:
        given = f"{counted(len(arrays), 'array')} without a name"
        raise InvalidArguments(f"{what} takes arrays for {', '.join(names)}, not {given}: {_BY_NAME}")


def checked_feeds(feeds: Any, inputs: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]) -> dict[str, Array]:
    """The arrays by name.  Raises InvalidArguments."""
    check_feeds(feeds, inputs.keys())
    return {name: as_input(name, feeds[name], *wanted) for name, wanted in inputs.items()}


def names_and_others(given: Collection[Any], wanted: Collection[str]) -> str:
    """What names there should be, what there are, and which one the first of the others resembles."""
    near = next((resembling(name, wanted) for name in given if name not in wanted), "")
    return f"{', '.join(wanted)}, not {', '.join(map(str, given)) or 'none'}{near}"


OTHER_NETWORK, OTHER_DIMS = "load the model for its dims", "give it those dims"  # ways out


def as_input(name: str, given: Any, shape: tuple[int, ...], dtype: np.dtype[Any], way: str = OTHER_NETWORK) -> Array:
    """An array of these dims and this type; no copy if it is one.  way: out of other dims.  Raises InvalidArguments."""
    if type(given) is np.ndarray and given.dtype is dtype and given.shape == shape:
        return given
    try:
        array = given if isinstance(given, np.ndarray) else np.asarray(given)
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"{name} must be an array, not {shown(given)}") from None
    if array.shape != shape or array.dtype != dtype:
        raise unlike(name, array, shape, dtype, way)
    return array


def unlike(
    name: str, array: Array, shape: tuple[int, ...], dtype: np.dtype[Any], way: str = OTHER_NETWORK
) -> InvalidArguments:
    """The error about an array of other dims or of another type."""
    if array.dtype.kind == "O" and dtype.kind != "O" and not array.ndim:
        return InvalidArguments(f"{name} must be an array, not {shown(array.item())}")
    order = "" if array.dtype.isnative else " in the other byte order"
    given = f"{array.dtype.name}{list(array.shape)}{order}, the network takes {dtype.name}{list(shape)}"
    ways = ["convert it"] * (array.dtype != dtype) + [way] * (array.shape != shape)
    return InvalidArguments(f"{name} is {given}: {', and '.join(ways)}")


def check_apart(names: Iterable[str], outputs: Collection[str], arrays: Mapping[str, Array]) -> None:
    """Raise InvalidArguments for an output that shares memory with an input or another output."""
    for one, other in combinations(names, 2):
        shared = one in outputs or other in outputs
        if shared and np.may_share_memory(arrays[one], arrays[other]):
            late, early = (other, one) if other in outputs else (one, other)
            raise InvalidArguments(f"{late} shares memory with {early}: give it an array of its own")


def check_bound(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], is_output: bool) -> None:
    """Raise InvalidArguments unless kernels can work on the array itself."""
    if not is_read(dtype) or (is_output and made_type(dtype) != dtype):
        raise InvalidArguments(f"{name} is {dtype}, which kernels read and write as f32: use run()")
    array = as_input(name, array, shape, dtype)
    if not (array.flags.c_contiguous and array.flags.aligned) or (is_output and not array.flags.writeable):
        raise InvalidArguments(f"{name} must be dense, aligned and, if it is an output, writable: use numpy.empty")
