"""What a list of implementations answers: a plan, or a refusal with its reason."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from asmdnn.errors import Unimplemented
from asmdnn.primitives.attr import Attr
from asmdnn.primitives.engine import Engine
from asmdnn.runtime.plan import Plan


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an implementation does not take a description."""

    implementation: str
    reason: str

    def __str__(self) -> str:
        return f"{self.implementation}: {self.reason}"


KEPT_PLANS = 256

Desc = TypeVar("Desc")
Planner = Callable[[Desc, Attr, Engine], Plan | Refusal]


def try_all(planners: Sequence[Planner[Desc]], desc: Desc, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """What each implementation says, best first, lazily."""
    return (planner(desc, attr, engine) for planner in planners)


@lru_cache(KEPT_PLANS)
def first_plan(
    planners: tuple[Planner[Desc], ...], desc: Desc, attr: Attr, engine: Engine
) -> tuple[Plan, tuple[Refusal, ...]]:
    """The first plan and the refusals before it; Unimplemented with every reason if there is none.

    All arguments are values, so that equal requests share one plan: a network repeats its layers.
    """
    refusals: list[Refusal] = []
    for answer in try_all(planners, desc, attr, engine):
        if isinstance(answer, Plan):
            return answer, tuple(refusals)
        refusals.append(answer)
    raise Unimplemented(f"no implementation takes {desc}: {'; '.join(map(str, refusals))}")
