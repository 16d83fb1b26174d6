"""States in a network's file: what it says of them, and what is made of that, checked before anything runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.network.arrays import Array
from asmdnn.network.states import TYPES, NetworkState, StateArrays, StateWrite, is_index, state_write
from asmdnn.planning.decoded import require
from asmdnn.records import dataclass, field

Types = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
Dims = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SavedStates:
    """writes: what the network writes of them; rooms: their dims, by name."""

    writes: tuple[StateWrite, ...] = ()
    rooms: Mapping[str, Dims] = field(default_factory=dict)

    def arrays(self) -> StateArrays | None:
        """As they are at first; None if there are none."""
        return StateArrays([write.state for write in self.writes], self.rooms) if self.writes else None

    def are(self, states: StateArrays | None) -> bool:
        """Whether they are those of an open network, which all of its shapes share."""
        own = {name: (array.shape, array.dtype) for name, array in (states or {}).items()}
        return own == {x.state.name: (self.rooms[x.state.name], x.state.initial.dtype) for x in self.writes}

    def inputs(self) -> dict[str, tuple[Dims, np.dtype[Any]]]:
        """The values that states are read as."""
        every = ((write.state, (self.rooms[write.state.name], write.state.initial.dtype)) for write in self.writes)
        return {name: declared for state, declared in every for name in (state.name, state.now) if name}

    def windows(self) -> dict[str, tuple[Dims, np.dtype[Any]]]:
        """Dims and types of states that kernels write, by the value that lies in them."""
        kernels = [x for x in self.writes if x.state.written and not x.is_late]
        return {str(x.value): (self.rooms[x.state.name], x.state.initial.dtype) for x in kernels}

    def check_made(self, makes: Collection[str], there: Types) -> None:
        """Raises Nonsense unless kernels make what they write of states, and all has its dims.  makes: by kernels."""
        for write in self.writes:
            if write.state.written:
                require(write.is_late or write.value in makes, "a state that nobody writes")
                dims = there[write.value][0] if isinstance(write.value, str) else write.value.shape
                require(dims == write.dims, "a state of other dims")


def states_text(
    writes: Sequence[StateWrite], rooms: Mapping[str, Dims], put: Callable[[Array], int]
) -> list[dict[str, Any]]:
    """rooms: the dims of states.  put: the number of an array."""
    return [
        {
            "name": x.state.name,
            "room": rooms[x.state.name],
            "initial": put(x.state.initial),
            "written": x.state.written,
            "at": x.state.at,
            "now": x.state.now,
            "value": x.value if isinstance(x.value, str) else put(x.value),
            "dims": x.dims,
        }
        for x in writes
    ]


def states_read(text: Any, array: Callable[[Any], Array], inputs: Types) -> SavedStates:
    """Raises anything where the text is nonsense."""
    rooms = {each["name"]: room_read(each) for each in text}
    initial = {each["name"]: array(each["initial"]) for each in text}
    names = [name for each in text for name in (each["name"], each["now"]) if name]
    require(len(names) == len({*names}) and not inputs.keys() & {*names}, "states of one name")
    known = {**inputs, **{name: (room, initial[name].dtype) for name, room in rooms.items()}}
    for name, data in initial.items():
        require(data.dtype.name in TYPES and data.shape in ((), rooms[name]), "no initial data")
    return SavedStates(tuple(write_read(each, initial, array, known) for each in text), rooms)


def at_first_text(states: StateArrays | None, put: Callable[[Array], int]) -> list[dict[str, Any]]:
    """Of the states that all shapes of an open network share."""
    every = states.states if states else ()
    return [
        {"name": x.name, "room": states[x.name].shape, "initial": put(x.initial), "now": x.now}  # type: ignore[index]
        for x in every
    ]


def at_first_read(text: Any, array: Callable[[Any], Array]) -> StateArrays | None:
    """Raises anything where the text is nonsense."""
    every = [{**each, "written": "", "at": 0, "value": "", "dims": each["room"]} for each in text]
    return states_read(every, array, {}).arrays()


def room_read(text: Mapping[str, Any]) -> Dims:
    require(all(isinstance(text[word], str) for word in ("name", "now", "written")), "a state without a name")
    for sizes in (text["room"], text["dims"]):
        require(all(type(n) is int and n > 0 for n in sizes), "dims that are none")
    return (*text["room"],)


def write_read(
    text: Mapping[str, Any], initial: Mapping[str, Array], array: Callable[[Any], Array], known: Types
) -> StateWrite:
    """known: inputs and states, one of which may say where another one is written."""
    at, value = text["at"], text["value"]
    require(type(at) is int or (isinstance(at, str) and is_index(*known[at])), "no place")
    state = NetworkState(text["name"], initial[text["name"]], text["written"], at, text["now"])
    room, dims = known[state.name][0], (*text["dims"],)
    if not state.written:
        return StateWrite(state, "", room, 0)
    return state_write(state, value if isinstance(value, str) else array(value), dims, room)


def lies_in(desc: MemoryDesc, dims: Dims, room: Dims) -> bool:
    """Whether a tensor of these dims has the strides of a dense array of the dims of `room`."""
    strides = [prod(room[i + 1 :]) for i in range(len(room))]
    steps = zip(desc.strides, strides, desc.dims, strict=True)
    plain = not desc.inner_blocks and desc.offset0 == 0 and desc.dims == dims
    return plain and all(n == 1 or step == wanted for step, wanted, n in steps)
