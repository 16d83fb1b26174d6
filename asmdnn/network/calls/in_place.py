"""Calls of a native network whose states stay where they are: their addresses are placed once, and not with each call.

A training step has hundreds of states, and its arrays are those of the caller only while they are read or assigned.
Its arena stays, too: it is often larger than what the pool of scratchpads keeps, and pages that are new with each call
cost more than many a layer.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from asmdnn.memory.allocation import no_memory
from asmdnn.network.arrays import Array
from asmdnn.network.calls.running import NativePart, Runnable, input_name, native_array, result_name, tensor_names
from asmdnn.runtime.addresses import address_reader


class InPlaceCalls:
    """Of one runnable network on the arrays of its states; for one caller at a time.

    part: what it is natively; states, own: arrays by name, of states and inputs, in whose place no others may come."""

    def __init__(
        self, runnable: Runnable, part: NativePart, states: Mapping[str, Array], own: Mapping[str, Array]
    ) -> None:
        self.runnable, self.part = runnable, part
        placed = {input_name(write.state.name): states[write.state.name] for write in runnable.states}
        placed |= {input_name(x.state.now): states[x.state.name] for x in runnable.states if x.state.now}
        placed |= {result_name(str(x.value)): states[x.state.name] for x in runnable.states}
        placed |= {input_name(name): array for name, array in own.items() if name in part.ends.reads}
        self._arrays = placed  # held as long as the call
        self._limits = {name: limit for name, limit in part.ends.limits.items() if name not in own}
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
        """The outputs.  feeds: of all other inputs.  Raises InvalidArguments, OutOfMemory."""
        try:
            if self._limits:
                self.part.check_indices(feeds, self._limits)
            results = {name: np.empty(*made) for name, made in self._makes.items()}
            arrays = [native_array(feeds[name]) for name in self._reads]
            self._call.place(self._addresses([*arrays, *results.values()]), self._moving)
            self._call()
            return {name: self.runnable.output(name, results, {}) for name in self.runnable.outputs}
        except MemoryError as error:
            raise no_memory(error) from None

    def bound(self, feeds: Mapping[str, Array], results: Mapping[str, Array]) -> Callable[[], None]:
        """A call on arrays that stay where they are: of all other inputs, and of the values that it makes."""
        limits, arrays = self._limits, [feeds[name] for name in self._reads]
        addresses = self._addresses([*arrays, *(results[name] for name in self._makes)])

        def call() -> None:
            if limits:
                self.part.check_indices(feeds, limits)
            self._call.place(addresses, self._moving)  # other calls may have been between
            self._call()

        return call


def in_place_calls(runnable: Runnable, states: Mapping[str, Array], own: Mapping[str, Array]) -> InPlaceCalls | None:
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
    return InPlaceCalls(runnable, part, states, own)


class PlacedNetworks:
    """Networks on the same states, and on the same arrays for some inputs, in whose place no others may come.  A call
    has these to itself."""

    def __init__(self, states: Mapping[str, Array], own: Mapping[str, Array]) -> None:
        self._states, self._own, self._calls = states, own, dict[int, InPlaceCalls | None]()

    def of(self, net: Any) -> InPlaceCalls | None:
        """None as `in_place_calls` has it."""
        if id(net) not in self._calls:
            self._calls[id(net)] = in_place_calls(net._runnable, self._states, self._own)
        return self._calls[id(net)]

    def run(self, net: Any, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs.  feeds: of all other inputs.  Raises InvalidArguments, OutOfMemory."""
        calls = self.of(net)
        if calls is not None:
            return calls.run(feeds)
        own = {name: array for name, array in self._own.items() if name in net.inputs}
        found: dict[str, Array] = net._runnable.run_in_place({**feeds, **own}, self._states)
        return found
