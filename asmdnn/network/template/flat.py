"""The steps of a trace with all that they use in one list: numbers, values of slots, constants."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from asmdnn.network.template.asking import Answered, Asked, Seen
from asmdnn.network.template.parts import Constant, Made, Make, Number, Part
from asmdnn.records import dataclass


class Filled(NamedTuple):
    """A step: what `make` makes of some values of the list, which `take` takes, gets a place in it."""

    make: Make
    take: Callable[[Sequence[Any]], Sequence[Any]]
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class FlatTrace:
    """steps: whose parts and slots are places; result: the place of what comes out.  start: the list as it is before
    the first one, where values of slots begin at place `slots`."""

    steps: Sequence[Any]
    result: int
    start: Sequence[Any]
    slots: int


class FlatPlaces:
    """Of parts: behind numbers come so many slots, then constants, each once."""

    def __init__(self, numbers: Sequence[Any], slots: int) -> None:
        self.slots, self.start = len(numbers), [*numbers, *[None] * slots]
        self._constants: dict[int, int] = {}  # by id

    def of(self, part: Part) -> int:
        if isinstance(part, Constant):
            return self.constant(part.value)
        return part.at if isinstance(part, Number) else self.slots + part.at

    def constant(self, value: Any) -> int:
        if id(value) not in self._constants:
            self._constants[id(value)] = len(self.start)
            self.start.append(value)
        return self._constants[id(value)]

    def filled(self, step: Made) -> Filled:
        parts = dict(step.parts)
        own = [self.of(parts[i]) if i in parts else self.constant(value) for i, value in enumerate(step.values)]
        return Filled(step.make, taking(own), self.slots + step.slot)


def taking(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What takes the values of these places."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1)) if places else lambda values: ()


def flattened(steps: Sequence[Any], result: Part, numbers: Sequence[Any], slots: int) -> FlatTrace:
    """Of the steps of a trace with these numbers, and so many slots."""
    places = FlatPlaces(numbers, slots)

    def placed(step: Any) -> Any:
        if isinstance(step, Made):
            return places.filled(step)
        if isinstance(step, Seen):
            return step._replace(answer=places.slots + step.answer, wanted=places.of(step.wanted))
        if isinstance(step, Answered):
            return step._replace(desc=places.of(step.desc), attr=places.of(step.attr))
        if isinstance(step, Asked):
            slot = places.slots + step.slot
            return step._replace(desc=places.of(step.desc), attr=places.of(step.attr), slot=slot)
        return step

    found = tuple([placed(step) for step in steps])
    return FlatTrace(found, places.of(result), places.start, places.slots)
