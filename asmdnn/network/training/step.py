"""A training step: one native call, which reads and writes parameters and an optimizer's moments in place."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from os import PathLike
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.allocation import within_memory
from asmdnn.network.arrays import Array
from asmdnn.network.inputs import as_input
from asmdnn.network.network import Network
from asmdnn.network.states import StateArrays
from asmdnn.network.training.state_files import read_npz, write_npz
from asmdnn.optim.optimizer import Optimizer

NUMBERS, LOSS, COUNT = "numbers of the step", "loss of the step", "steps taken"
F32, MOST_STEPS = np.dtype(np.float32), 2**53
Inputs = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]


class Parameters(MutableMapping[str, Array]):
    """The trained and frozen parameters by name: reading copies, assigning writes.  Neither works while a step runs."""

    def __init__(self, states: StateArrays, names: Sequence[str]) -> None:
        self._states, self._names = states, tuple(names)

    def __repr__(self) -> str:
        return f"<Parameters {', '.join(self._names)}>"

    @within_memory
    def __getitem__(self, name: str) -> Array:
        with self._states as states:
            return states[self._known(name)].copy()

    def __setitem__(self, name: str, value: Any) -> None:
        with self._states as states:
            array = states[self._known(name)]
            array[...] = as_input(f"parameter {shown(name)}", value, array.shape, F32)

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
            raise InvalidArguments(f"{shown(name)} is no parameter, these are {', '.join(self._names)}")
        return name


class TrainingStep:
    """What `Graph.train` makes.  One call is one step: a loss, its gradients, and the update of all parameters.

    steps: how many were taken, on which learning rates and corrections depend.  One call at a time: a second one from
    another thread raises InvalidArguments.  Equal bits for every number of threads of the engine.
    """

    def __init__(self, net: Network, optimizers: Sequence[Optimizer], names: Sequence[str], steps: int = 0) -> None:
        self._net, self._optimizers, self._names, self.steps = net, tuple(optimizers), tuple(names), steps
        self.parameters = Parameters(net.state, names)

    def __repr__(self) -> str:
        return f"<TrainingStep of {', '.join(self._names)} after {self.steps} steps>"

    def __copy__(self) -> "TrainingStep":
        """One with parameters and moments of its own."""
        return TrainingStep(copy(self._net), self._optimizers, self._names, self.steps)

    def __deepcopy__(self, memo: object) -> "TrainingStep":
        """As copy."""
        return self.__copy__()

    def __reduce__(self) -> Any:
        return TrainingStep, (self._net, self._optimizers, self._names, self.steps)

    @property
    def inputs(self) -> Inputs:
        """(dims, numpy type) by name."""
        return {name: wanted for name, wanted in self._net.inputs.items() if name != NUMBERS}

    @property
    def is_native(self) -> bool:
        """Whether it is one native call, without nodes in numpy."""
        return self._net.is_native

    def __call__(self, **feeds: Any) -> float:
        """Take a step; the loss, from before it.  Raises as `run`."""
        return float(self.run(feeds)["loss"].item())

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Take a step, for inputs by name: "loss" and the outputs that were asked for, from before the update.

        Raises InvalidArguments for inputs that are missing, unknown or do not fit, for a learning rate that is no
        finite number, and while another step runs; no parameter has changed then.
        """
        given = self._checked(feeds)
        with self._net.state as states:
            results = self._net._runnable.run_in_place({**given, NUMBERS: self._numbers(self.steps + 1)}, states)
            self.steps += 1
        return {"loss": results.pop(LOSS), **results}

    def check(self) -> None:
        """As `Network.check`: also that every parameter is written after its last reader.  Raises PlanError."""
        self._net.check()

    def explain(self) -> str:
        """As `Network.explain`."""
        return self._net.explain()

    def page(self, feeds: Mapping[str, Any] | None = None, repeats: int = 20) -> str:
        """As `Network.page`.  feeds: of a step that is measured, and not taken."""
        return self._net.page(None if feeds is None else self._next(feeds), repeats)

    def verify(self, feeds: Mapping[str, Any]) -> Any:
        """As `Network.verify`, for the next step, which is not taken."""
        return self._net.verify(self._next(feeds))

    @within_memory
    def state_dict(self) -> dict[str, Array]:
        """Copies of all that stays between steps, by name: parameters, moments, the number of steps (i64).

        Raises InvalidArguments while a step runs.
        """
        with self._net.state as states:
            return {name: array.copy() for name, array in states.items()} | {COUNT: np.array(self.steps, np.int64)}

    @within_memory
    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Go on from what `state_dict` of a step with these names and dims returned.

        strict: False takes the names that both have.  All is looked at before anything is written.  Raises
        InvalidArguments.
        """
        if not isinstance(state, Mapping) or type(strict) is not bool:
            raise InvalidArguments(
                f"state must be arrays by name, and strict a bool, not {shown(state)}, {shown(strict)}"
            )
        with self._net.state as states:
            known = {*states, COUNT}
            differ = sorted(map(str, known ^ {*state}))
            if strict and differ:
                raise InvalidArguments(f"state and step differ in {shown(differ)}: strict=False takes what both have")
            found = {name: as_input(name, state[name], x.shape, F32) for name, x in states.items() if name in state}
            steps = count_of(state[COUNT]) if COUNT in state else self.steps
            found = {name: array.copy() for name, array in found.items()}  # one may be a view of another state
            for name, array in found.items():
                states[name][...] = array
            self.steps = steps

    @within_memory
    def save(self, path: str | PathLike[str]) -> None:
        """Write `state_dict` as numpy's .npz, as a whole or not at all.  Raises InvalidArguments."""
        write_npz(path, self.state_dict())

    @within_memory
    def load(self, path: str | PathLike[str], strict: bool = True) -> None:
        """`load_state_dict` of a file that `save` has written.  Raises InvalidArguments."""
        self.load_state_dict(read_npz(path, max(array.nbytes for array in self._net.state.values())), strict)

    def _next(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        return {**self._checked(feeds), NUMBERS: self._numbers(self.steps + 1)}

    def _checked(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        wanted = self.inputs
        if not isinstance(feeds, Mapping) or feeds.keys() != wanted.keys():
            given = ", ".join(map(str, feeds)) if isinstance(feeds, Mapping) else shown(feeds)
            raise InvalidArguments(f"a step takes arrays for {', '.join(wanted)}, not {given or 'none'}")
        return {name: as_input(name, feeds[name], *dims_and_type) for name, dims_and_type in wanted.items()}

    def _numbers(self, step: int) -> Array:
        """What the optimizers' rules read.  Raises InvalidArguments for numbers that f32 does not hold."""
        found = [number for optimizer in self._optimizers for number in optimizer.numbers(step)]
        with np.errstate(all="ignore"):
            numbers = np.array(found, np.float64).astype(F32)
        if not np.isfinite(numbers).all():
            raise InvalidArguments(f"the optimizer's numbers of step {step} are {shown(found)}: make the rate smaller")
        return numbers


def count_of(value: Any) -> int:
    """Raises InvalidArguments for what is no number of steps."""
    found = int(as_input(COUNT, value, (), np.dtype(np.int64)))
    if not 0 <= found < MOST_STEPS:
        raise InvalidArguments(f"{COUNT} must be from 0 to 2**53, not {found}")
    return found
