"""State: values that a network reads and writes in place, and that stay for the next call.

Imported without planners, as what runs needs no more.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.memory.allocation import allocated, within_memory
from asmdnn.network.arrays import Array
from asmdnn.network.inputs import OTHER_DIMS, as_input
from asmdnn.network.passing import HALVES, KINDS, is_half
from asmdnn.records import dataclass
from asmdnn.runtime.addresses import address_reader

Dims = tuple[int, ...]
FLOATS = ("float32", *HALVES)  # which kernels write where they lie
TYPES = (*FLOATS, "bool", "uint8", "int8", "int32", "int64")


@dataclass(frozen=True, eq=False)
class NetworkState:
    """name: of the model's input that it is read as.  initial: of its type, one number or all of them.  written: the
    model's output that goes into it, "" if nothing does; at: where along the one axis that differs: a number, or the
    name of an input; now: the model's input that reads what it has become, "" if there is none."""

    name: str
    initial: Array
    written: str = ""
    at: int | str = 0
    now: str = ""

    @property
    def is_float(self) -> bool:
        """Whether kernels write it; integers and truths a call does, when it has run."""
        return self.initial.dtype.name in FLOATS

    @property
    def hidden(self) -> tuple[str, ...]:
        """Names of the model's inputs and outputs that no caller passes or gets."""
        return tuple(name for name in (self.name, self.written, self.now) if name)


@dataclass(frozen=True, eq=False)
class StateWrite:
    """What a plan writes of a state.  value: after the output, or its data if that is known; dims: of it; axis: that
    along which it is a piece."""

    state: NetworkState
    value: str | Array
    dims: Dims
    axis: int

    @property
    def is_late(self) -> bool:
        """Whether the call writes it, when kernels have run."""
        return bool(self.state.written) and not self.state.is_float

    def window(self, array: Array, feeds: Mapping[str, Array]) -> Array:
        """The part of the state that is written.  Raises InvalidArguments for one that is not inside."""
        if array.shape == self.dims:
            self.checked_start(0, feeds)
            return array
        room, size = array.shape[self.axis], self.dims[self.axis]
        start = self.checked_start(room - size, feeds)
        return array[(*[slice(None)] * self.axis, slice(start, start + size))]

    def checked_start(self, most: int, feeds: Mapping[str, Array]) -> int:
        at = self.state.at
        start = at if isinstance(at, int) else int(feeds[at].reshape(-1)[0])
        if not 0 <= start <= most:
            words = "" if isinstance(at, int) else f", which {at} says"
            raise InvalidArguments(f"state {self.state.name} is written at {start}{words}: it must be from 0 to {most}")
        return start


def state_write(state: NetworkState, value: str | Array, dims: Dims, room: Dims) -> StateWrite:
    """Raises InvalidArguments for dims that do not fit into those of the state."""
    differ = [i for i, (n, m) in enumerate(zip(dims, room, strict=False)) if n != m]
    if len(dims) != len(room) or len(differ) > 1 or any(dims[i] > room[i] for i in differ):
        said = f"state {state.name} is {list(room)}, and {list(dims)} are written to it"
        raise InvalidArguments(f"{said}: they must be equal, or less along one axis")
    return StateWrite(state, value, dims, differ[0] if differ else 0)


class StateArrays(Mapping[str, Array]):
    """The arrays of a network's states by name, for one caller at a time; shapes of an open network share them."""

    def __init__(self, states: Sequence[NetworkState], dims: Mapping[str, Dims]) -> None:
        self.states = tuple(states)
        self._arrays = {x.name: allocated(np.empty, dims[x.name], x.initial.dtype) for x in states}
        self._free, self._process = [True], os.getpid()
        self.reset()

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            near = did_you_mean(shown(name), self._arrays)
            raise InvalidArguments(f"{shown(name)} is no state of the network: {near}")
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __setitem__(self, name: str, value: Any) -> None:
        """Have the network read and write an array of the caller's: of the state's type, dense and writable.

        Raises InvalidArguments, also while a call runs.
        """
        array = as_input(f"state {shown(name)}", value, self[name].shape, self[name].dtype, OTHER_DIMS)
        flags = array.flags
        if array is not value or not (flags.c_contiguous and flags.aligned and flags.writeable):
            raise InvalidArguments(f"state {name} must be a dense, aligned and writable array: use numpy.empty")
        others = [x for other, x in self._arrays.items() if other != name]
        if any(np.may_share_memory(array, x) for x in others):
            raise InvalidArguments(f"state {name} shares memory with another state: give each its own array")
        with self:
            self._arrays[name] = array

    def __enter__(self) -> "StateArrays":
        if self._process != os.getpid():  # a call of another thread that fork() has left behind
            self._free, self._process = [True], os.getpid()
        try:
            self._free.pop()  # atomic
        except IndexError:
            raise InvalidArguments(
                "the network has state, and another call of it runs: call it from one thread, or make it once for each"
            ) from None
        return self

    def __exit__(self, *error: object) -> None:
        self._free.append(True)

    def reset(self) -> None:
        """All states as they were at first.  Raises InvalidArguments while a call runs."""
        with self:
            for state in self.states:
                self._arrays[state.name][...] = state.initial


@within_memory
def apart_from(states: Mapping[str, Array], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The feeds, with copies of those that lie in the memory of a state, which may be written before they are read.

    Raises OutOfMemory.
    """
    dense = {name: array if array.flags.c_contiguous else array.copy() for name, array in feeds.items()}
    read, arrays = address_reader(), [*states.values()]
    places = sorted((begin, begin + array.nbytes) for begin, array in zip(read(arrays), arrays, strict=True))
    for (name, array), begin in zip([*dense.items()], read([*dense.values()]), strict=True):
        last = bisect_left(places, (begin + array.nbytes,)) - 1  # they lie apart: of those that begin before its end
        if last >= 0 and places[last][1] > begin:
            dense[name] = array.copy()
    return dense


def checked_state(name: str, dims: Sequence[Any], dtype: np.dtype[Any], initial: Any) -> Array:
    """The initial data of a state, read-only.  Raises InvalidArguments."""
    if dtype.name not in TYPES:
        raise InvalidArguments(f"state {shown(name)} is {dtype.name}, it must be one of {', '.join(TYPES)}")
    if not all(isinstance(n, int) and n > 0 for n in dims):
        raise InvalidArguments(f"state {shown(name)} has dims {shown(tuple(dims))}, they must be integers from 1 on")
    try:
        given = np.array(initial)
        is_number = given.dtype.kind in KINDS or is_half(given.dtype)
    except Exception:  # whatever the caller's object does
        is_number = False
    if not is_number:
        raise InvalidArguments(f"initial of state {shown(name)} must be numbers, not {shown(initial)}")
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, as in a Cast
        data = given.astype(dtype)
    if dtype.name not in FLOATS and not np.array_equal(data, given):
        raise InvalidArguments(f"initial of state {shown(name)} must be {dtype.name} numbers, not {shown(initial)}")
    if data.shape not in ((), tuple(dims)):
        raise InvalidArguments(f"initial of state {shown(name)} is {list(data.shape)}, it must be one or {list(dims)}")
    data.setflags(write=False)
    return data


def is_index(shape: Dims, dtype: np.dtype[Any]) -> bool:
    """Whether an input may say where a state is written."""
    return dtype.kind == "i" and prod(shape) == 1
