"""Calls of a native network whose states stay where they are: their addresses are placed once, and not with each call.

A training step has hundreds of states, and its arrays are those of the caller only while they are read or assigned.
Its arena stays, too: it is often larger than what the pool of scratchpads keeps, and pages that are new with each call
cost more than many a layer.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from asmdnn.memory.allocation import no_memory
from asmdnn.network.arrays import Array
from asmdnn.network.calls.running import NativePart, Runnable, input_name, native_array, result_name, tensor_names
from asmdnn.runtime.addresses import address_reader


class InPlaceCalls:
    """Of one runnable network on the arrays of its states; for one caller at a time.

    part: what it is natively; states: arrays by name, in whose place no others may come."""

    def __init__(self, runnable: Runnable, part: NativePart, states: Mapping[str, Array]) -> None:
        self.runnable, self.part = runnable, part
        placed = {input_name(write.state.name): states[write.state.name] for write in runnable.states}
        placed |= {input_name(x.state.now): states[x.state.name] for x in runnable.states if x.state.now}
        placed |= {result_name(str(x.value)): states[x.state.name] for x in runnable.states}
        self._arrays = placed  # held as long as the call
        runner, names = part.runner, tensor_names(part.ends.reads, part.ends.makes)
        self._call, self._addresses = runner.new_call(), address_reader()
        self._call.keep_scratch()
        fixed = [name in placed for name in names]
        arrays = [placed.get(name) for name in names]
        addresses = [0 if array is None else array.ctypes.data for array in arrays]
        self._call.place(addresses, [place for place in runner.moving if fixed[place[1]]])
        self._reads = [name for name in part.ends.reads if input_name(name) not in placed]
        self._makes = {x: made for x, made in part.ends.makes.items() if result_name(x) not in placed}
        order = {name: i for i, name in enumerate(tensor_names(self._reads, self._makes))}
        self._moving = [(slot, order[names[i]], offset) for slot, i, offset in runner.moving if not fixed[i]]

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs.  feeds: of all inputs but states.  Raises InvalidArguments, OutOfMemory."""
        part = self.part
        try:
            if part.ends.limits:
                part.check_indices(feeds, part.ends.limits)
            results = {name: np.empty(*made) for name, made in self._makes.items()}
            arrays = [native_array(feeds[name]) for name in self._reads]
            self._call.place(self._addresses([*arrays, *results.values()]), self._moving)
            self._call()
            return {name: self.runnable.output(name, results, {}) for name in self.runnable.outputs}
        except MemoryError as error:
            raise no_memory(error) from None

    def bound(self, feeds: Mapping[str, Array], results: Mapping[str, Array]) -> Callable[[], None]:
        """A call on arrays that stay where they are: of all inputs but states, and of the values that it makes."""
        limits, arrays = self.part.ends.limits, [feeds[name] for name in self._reads]
        addresses = self._addresses([*arrays, *(results[name] for name in self._makes)])

        def call() -> None:
            if limits:
                self.part.check_indices(feeds, limits)
            self._call.place(addresses, self._moving)  # other calls may have been between
            self._call()

        return call


def in_place_calls(runnable: Runnable, states: Mapping[str, Array]) -> InPlaceCalls | None:
    """None for networks that are not one native call, that write a part of a state, or integers, or deliver what they
    also read or write, or indices that are to be looked at."""
    part = runnable.native
    if part is None or part.ends.checked or any(x.is_late for x in runnable.states):
        return None
    if any(x.state.at != 0 or x.dims != states[x.state.name].shape for x in runnable.states):
        return None
    written = {x.value for x in runnable.states if isinstance(x.value, str)}
    values = [x for x in runnable.results.values() if isinstance(x, str)]
    if len(values) != len({*values}) or any(x in written or x not in part.ends.makes for x in values):
        return None
    return InPlaceCalls(runnable, part, states)


class PlacedNetworks:
    """Networks on the same states, in whose place no others may come.  A call has the states to itself."""

    def __init__(self, states: Mapping[str, Array]) -> None:
        self._states, self._calls = states, dict[int, InPlaceCalls | None]()

    def of(self, net: Any) -> InPlaceCalls | None:
        """None as `in_place_calls` has it."""
        if id(net) not in self._calls:
            self._calls[id(net)] = in_place_calls(net._runnable, self._states)
        return self._calls[id(net)]

    def caller(self, net: Any) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
        """What makes the outputs of feeds: of all inputs but states.  Raises InvalidArguments, OutOfMemory."""
        calls = self.of(net)
        return partial(net._runnable.run_in_place, states=self._states) if calls is None else calls.run

    def run(self, net: Any, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """As what `caller` returns."""
        return self.caller(net)(feeds)
