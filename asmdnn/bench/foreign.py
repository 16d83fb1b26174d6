"""Drivers of benchdnn for primitives that are not built yet: their problems are read as words, and counted."""

from functools import cache

from asmdnn.bench.driver import AnyCase, AnyDriver, Driver
from asmdnn.bench.words import Settings
from asmdnn.errors import Unimplemented
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class TextProblem:
    """A problem as it is written."""

    text: str
    name: str = ""
    count: int = 1

    def __str__(self) -> str:
        return self.text


def _work(case: AnyCase) -> str:
    raise Unimplemented(f"--{case.driver.name}: this primitive is not built yet")


@cache
def foreign_driver(name: str) -> AnyDriver:
    """A driver that takes any option and any problem, and computes none."""
    return Driver(name, Settings(), {}, TextProblem, _work, example="", notation="", is_foreign=True)
