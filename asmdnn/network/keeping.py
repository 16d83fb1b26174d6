"""The part of a network that keeps state between calls, and knows what a network with the same can be made of."""

from collections.abc import Callable, Mapping
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.network.arrays import Array
from asmdnn.network.calls.running import Runnable
from asmdnn.network.inputs import checked_feeds
from asmdnn.network.states import StateArrays


class KeepsState:
    """What Network has of states; `_states` is None where there are none."""

    _states: StateArrays | None
    _runnable: Runnable

    _origin: Any
    _again: Callable[[], Any] | None

    @property
    def origin(self) -> Any:
        """What it can be made of again: a function and its arguments.  Raises InvalidArguments."""
        if self._origin is None and self._again is not None:
            self._origin = self._again().origin
        if self._origin is None:
            raise InvalidArguments("the network has nothing that it could be made of again: load its model for that")
        return self._origin

    def __copy__(self) -> Any:
        """Itself, as nothing changes what a network computes; with state one that has its own."""
        if self._states is None:
            return self
        make, arguments = self.origin
        return with_states(make, arguments, self._states)

    def __deepcopy__(self, memo: object) -> Any:
        """As copy."""
        return self.__copy__()

    @property
    def state(self) -> StateArrays:
        """The arrays of its states, by name, which calls read and write in place.  `net.state["past"] = array` has
        them use an array of the caller's.  Raises InvalidArguments for a network without state."""
        if self._states is None:
            raise InvalidArguments("the network has no state: make one with graph.state(...), or load_onnx(state=...)")
        return self._states

    def reset(self) -> None:
        """Give all states their initial values.  Raises InvalidArguments while a call runs, or if there is none."""
        self.state.reset()

    def _with_states(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """The inputs, and what a call would read of states, which stay as they are."""
        checked = checked_feeds(feeds, self._runnable.inputs)
        if self._states is None:
            return checked
        with self._states as states:
            before = {name: array.copy() for name, array in states.items()}
        after = {name: array.copy() for name, array in before.items()}
        self._runnable.run_in_place(checked, after)
        return checked | before | {x.now: after[x.name] for x in states.states if x.now}

    def _outputs_of(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """What a call returns for what `_with_states` gave; states stay as they are."""
        states = {write.state.name: values[write.state.name].copy() for write in self._runnable.states}
        return self._runnable.run_in_place({name: values[name] for name in self._runnable.inputs}, states)


def with_states(make: Callable[..., Any], arguments: tuple[Any, ...], arrays: Mapping[str, Array]) -> Any:
    """A network made again, with these states."""
    net = make(*arguments)
    for name, array in arrays.items():
        net.state[name][...] = array
    return net
