"""A list of implementations that is read from top to bottom.

An entry is a planner, whose answer is a plan or a reason, or one of two that act on all entries below them: AsksBelow
answers a request by what they make of another one, and EndsWhere keeps requests from them.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, answers_of
from asmdnn.records import dataclass

Planners = tuple[Planner[Any], ...]
Condition = Callable[[Any, Attr], bool]


@dataclass(frozen=True, slots=True)
class AsksBelow:
    """An entry that changes a request, asks the planners below it, and says what their plans are for the caller's.

    answers: of these planners and the request; none where it has nothing to change.
    """

    answers: Callable[[Planners, Any, Attr, Engine], Iterator[Answer]]


@dataclass(frozen=True, slots=True)
class EndsWhere:
    """The end of the list for requests of which the condition holds: no planner below is asked."""

    condition: Condition


Entries = Sequence[Planner[Any] | AsksBelow | EndsWhere]


def listed(entries: Entries) -> Planners:
    """The planners of a list, best first."""
    below: Planners = ()
    for entry in reversed(entries):
        if isinstance(entry, EndsWhere):
            below = (unless(entry.condition, below),)
        else:
            below = (asking(entry, below) if isinstance(entry, AsksBelow) else entry, *below)
    return below


def asking(entry: AsksBelow, below: Planners) -> Planner[Any]:
    """The planner that an entry is in front of these."""

    @wraps(entry.answers)
    def ask(desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        return entry.answers(below, desc, attr, engine)

    return ask


def unless(condition: Condition, planners: Planners) -> Planner[Any]:
    """These planners as one, which says nothing where the condition holds: it is asked once for all of them."""

    def ask(desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        return iter(()) if condition(desc, attr) else answers_of(planners, desc, attr, engine)

    ask.__qualname__ = ", ".join(f"{planner.__module__}.{planner.__qualname__}" for planner in planners)
    return ask
