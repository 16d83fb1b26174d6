"""The usual call of a network, with nothing asked twice: one native part, and arrays that kernels read where they lie.

What is unusual in any way is left to `Runnable.run`, which says what is wrong, or converts.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.memory.allocation import no_memory
from asmdnn.network.arrays import Array
from asmdnn.network.calls.running import NativePart, Runnable
from asmdnn.network.passing import is_read
from asmdnn.runtime.addresses import address_reader


class PlainCall:
    """Of a network whose part has run.  Inputs are all read, in the order of the part; outputs are what it makes."""

    __slots__ = ("_addresses", "_converted", "_inputs", "_makes", "_outputs", "_runner")

    def __init__(self, runnable: Runnable, part: NativePart) -> None:
        self._inputs = [
            (name, dims, np.dtype(dtype.type))  # the one that arrays have, which one out of a file is equal to
            for name, (dims, dtype) in ((name, runnable.inputs[name]) for name in part.ends.reads)
        ]
        self._makes, position = [*part.ends.makes.values()], {name: i for i, name in enumerate(part.ends.makes)}
        self._outputs = [(name, position[str(value)]) for name, value in runnable.results.items()]
        wanted = [(i, runnable.outputs[name][1], self._makes[i][1]) for name, i in self._outputs]
        self._converted = [(i, dtype) for i, dtype, made in wanted if dtype != made]
        self._runner, self._addresses = part.runner, address_reader()

    def outputs(self, feeds: Mapping[str, Any]) -> dict[str, Array] | None:
        """What `Runnable.run` returns; None for inputs that are to be looked at.  Raises OutOfMemory."""
        if type(feeds) is not dict or len(feeds) != len(self._inputs):
            return None
        arrays = []
        for name, shape, dtype in self._inputs:
            array = feeds.get(name)
            if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != shape:
                return None
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
            arrays.append(array)
        try:
            made = [np.empty(*each) for each in self._makes]
            self._runner.run(self._addresses([*arrays, *made]))
            if self._converted:
                with np.errstate(all="ignore"):
                    for i, dtype in self._converted:
                        made[i] = made[i].astype(dtype)
        except MemoryError as error:
            raise no_memory(error) from None
        return {name: made[i] for name, i in self._outputs}


def plain_call_of(runnable: Runnable) -> PlainCall | None:
    """None of a network with states, texts, bounds or parts in numpy, with indices to be checked, or with outputs that
    are no arrays of their own."""
    part, results = runnable.native, [*runnable.results.values()]
    if part is None or not part.is_ready or runnable.states or runnable.borders or runnable.cuts:
        return None
    ends = part.ends
    if ends.limits or ends.checked or {*ends.reads} != runnable.inputs.keys():
        return None
    if not all(dtype is not None and is_read(dtype) for _, dtype in runnable.inputs.values()):
        return None
    named = {value for value in results if isinstance(value, str) and value in ends.makes}
    return PlainCall(runnable, part) if len(named) == len(results) else None
