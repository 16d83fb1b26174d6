"""A list of implementations that is read from top to bottom."""

from collections.abc import Iterator
from typing import Any

import asmdnn as dnn
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.core.implementation import Planner
from asmdnn.primitives.core.ways import AsksBelow, EndsWhere, Planners, listed

ATTR, ENGINE = dnn.Attr(), dnn.Engine(isa="avx2", threads=1)


def saying(name: str) -> Planner[Any]:
    return lambda desc, attr, engine: Refusal(name, str(desc))


@AsksBelow
def doubled(below: Planners, desc: Any, attr: dnn.Attr, engine: dnn.Engine) -> Iterator[Refusal]:
    """Of numbers below 10, those below for the double."""
    if desc < 10:
        for name, reason in answers(below, 2 * desc):
            yield Refusal(f"doubled+{name}", reason)


def answers(planners: Planners, desc: int) -> list[tuple[str, str]]:
    found = []
    for planner in planners:
        answer = planner(desc, ATTR, ENGINE)
        several = (answer,) if isinstance(answer, Refusal) else answer
        found += [(one.implementation, one.reason) for one in several if isinstance(one, Refusal)]
    return found


def test_an_entry_asks_those_below_it_alone() -> None:
    planners = listed((saying("a"), doubled, saying("b"), saying("c")))
    assert answers(planners, 3) == [("a", "3"), ("doubled+b", "6"), ("doubled+c", "6"), ("b", "3"), ("c", "3")]
    assert answers(planners, 10) == [("a", "10"), ("b", "10"), ("c", "10")]


def test_of_two_the_first_asks_the_second() -> None:
    assert answers(listed((doubled, doubled, saying("a"))), 3)[:2] == [("doubled+doubled+a", "12"), ("doubled+a", "6")]


def test_a_list_ends_for_some_requests_also_where_an_entry_makes_them() -> None:
    planners = listed((saying("a"), doubled, EndsWhere(lambda desc, attr: desc > 5), doubled, saying("b")))
    assert answers(planners, 2) == [("a", "2"), ("doubled+doubled+b", "8"), ("doubled+b", "4"),
                                    ("doubled+b", "4"), ("b", "2")]  # fmt: skip
    assert answers(planners, 3) == [("a", "3"), ("doubled+b", "6"), ("b", "3")]
    assert answers(planners, 6) == [("a", "6")]


def test_planners_keep_their_names() -> None:
    """Keys of packed plans have them."""
    planners = listed((doubled, EndsWhere(lambda desc, attr: True), saying("a")))
    assert [planner.__qualname__ for planner in planners] == ["doubled", f"{__name__}.saying.<locals>.<lambda>"]
