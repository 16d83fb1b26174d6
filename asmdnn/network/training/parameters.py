"""Parameters of a training step, as a caller reads and writes them."""

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.memory.allocation import within_memory
from asmdnn.network.arrays import Array
from asmdnn.network.inputs import OTHER_DIMS, as_input
from asmdnn.network.states import StateArrays

F32 = np.dtype(np.float32)


class Parameters(MutableMapping[str, Array]):
    """The trained and frozen parameters by name: reading copies, assigning writes.  Neither works while a step runs.

    prefix: of the names of the states."""

    def __init__(self, states: StateArrays, names: Iterable[str], prefix: str = "") -> None:
        self._states, self._names, self._prefix = states, tuple(names), prefix

    def __repr__(self) -> str:
        return f"<Parameters {', '.join(self._names)}>"

    @within_memory
    def __getitem__(self, name: str) -> Array:
        with self._states as states:
            return states[self._prefix + self._known(name)].copy()

    def __setitem__(self, name: str, value: Any) -> None:
        with self._states as states:
            array = states[self._prefix + self._known(name)]
            array[...] = as_input(f"parameter {shown(name)}", value, array.shape, F32, OTHER_DIMS)

    def __delitem__(self, name: str) -> None:
        raise InvalidArguments(f"parameter {shown(name)} is part of the step: make a graph without it")

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _known(self, name: str) -> str:
        if name not in self._names:
            raise InvalidArguments(f"{shown(name)} is no parameter: {did_you_mean(shown(name), self._names)}")
        return name
