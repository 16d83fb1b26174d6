"""How far a training step is: its numbers, and how they go on from a state."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.network.arrays import Array
from asmdnn.network.inputs import as_input
from asmdnn.network.training.recipe import SUM
from asmdnn.records import dataclass

COUNT, CALLS, SUMMED, PARTS = "steps taken", "calls made", "calls summed up", "calls of a step"
MOST_STEPS = 2**53


@dataclass(frozen=True)
class Counts:
    """steps: that were taken; calls: that the step has had, by which dropout draws; summed: of how many calls the sums
    hold the gradients, which another one may have: `gradients` is a call, and adds to no sum."""

    steps: int = 0
    calls: int = 0
    summed: int = 0

    def arrays(self, parts: int) -> dict[str, Array]:
        """As states have them, i64 by name.  parts: how many calls make a step."""
        found = {COUNT: self.steps, **({CALLS: self.calls} if self.calls != self.steps else {})}
        found |= {SUMMED: self.summed, PARTS: parts} if parts > 1 else {}
        return {name: np.array(count, np.int64) for name, count in found.items()}


START = Counts()


def names_of_counts(parts: int) -> set[str]:
    """Those that every state of such a step has."""
    return {COUNT, SUMMED, PARTS} if parts > 1 else {COUNT}


def check_no_counts(names: Collection[str]) -> None:
    """Raise InvalidArguments for arrays that states would not have, as a number has their name there."""
    for name in (COUNT, CALLS, SUMMED, PARTS):
        if name in names:
            raise InvalidArguments(f"{name!r} is the name of a number in the states of a step: call it something else")


def counts_from(state: Mapping[str, Any], own: Counts, parts: int, sums: Collection[str]) -> Counts:
    """Those of a step that goes on from a state, or from a part of one.  sums: the names of the step's.

    Raises InvalidArguments for sums of another number of calls than the step would take them for.
    """
    steps = count_of(COUNT, state[COUNT]) if COUNT in state else own.steps
    calls = count_of(CALLS, state[CALLS]) if CALLS in state else steps if COUNT in state else own.calls
    given = [name for name in sums if name in state]
    if not given:
        return Counts(steps, calls, own.summed)
    out = f"leave the names that begin with {SUM!r} out of it, and pass strict=False"
    if SUMMED not in state or PARTS not in state:
        raise InvalidArguments(f"the state has sums of gradients, but not {SUMMED!r} and {PARTS!r}: add them, or {out}")
    summed, of = (count_of(name, state[name]) for name in (SUMMED, PARTS))
    if summed >= of:
        raise InvalidArguments(f"{SUMMED} must be less than {PARTS}, which is {of}, not {summed}: {out}")
    if summed and of != parts:
        said = f"the state was saved after {summed} of {of} calls of a step, which takes {parts} here"
        raise InvalidArguments(f"{said}: train with accumulate={of}, or {out}")
    if len(given) < len(sums) and summed != own.summed:
        lacking = next(name for name in sums if name not in state)
        said = f"the state has sums of gradients of {counted(summed, 'call')}, but not {lacking!r}"
        raise InvalidArguments(f"{said}, which here is of {own.summed}: {out}")
    return Counts(steps, calls, summed)


def count_of(name: str, value: Any) -> int:
    """Raises InvalidArguments for what is no number of steps."""
    found = int(as_input(name, value, (), np.dtype(np.int64)))
    if not 0 <= found < MOST_STEPS:
        raise InvalidArguments(f"{name} must be from 0 to 2**53, not {found}")
    return found
