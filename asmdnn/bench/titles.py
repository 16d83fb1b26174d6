"""What a table calls a case: a template of its words."""

from collections.abc import Callable
from typing import Any

from asmdnn.bench.dims import dims_words
from asmdnn.bench.driver import AnyCase

GIVEN = "given_"
TYPES = ("dt", "sdt", "ddt")


class _Words(dict[str, str]):
    """Of a case, each made where a template asks for it."""

    def __init__(self, case: AnyCase) -> None:
        self.case, self.settings, self.problem = case, case.settings, case.problem

    def __missing__(self, word: str) -> str:
        if field := word.removeprefix(GIVEN) * word.startswith(GIVEN):
            value = getattr(self.settings, field)
            return "" if value == getattr(self.case.driver.settings, field) else f"{value} "
        return str(getattr(self, f"_{word}")() if hasattr(self, f"_{word}") else getattr(self.settings, word))

    def _alg(self) -> str:
        return str(self.settings.alg).lower()

    def _backward(self) -> str:
        return "backward " if self.settings.dir.startswith("BWD") else ""

    def _numbers(self) -> str:
        return "".join(f"{number:g} " for number in (self.settings.alpha, self.settings.beta) if number)

    def _types(self) -> str:
        given = [name for name in (getattr(self.settings, field, "") for field in TYPES) if name]
        return "" if {*":".join(given).split(":")} == {"f32"} else f"{' to '.join(given)} "

    def _sources(self) -> int:
        return len(self.settings.sdt.split(":"))

    def _dims(self) -> str:
        return dims_words(self.problem)

    def _problem(self) -> str:
        return self.problem.name or str(self.problem)


def titled(template: str) -> Callable[[Any], str]:
    """`{alg} {backward}{types}{tag} {problem}`: settings by their names, and words that are made of several.

    backward: of a gradient; types: of the sources and dst, where they are not all f32; numbers: alpha and beta, unless
    they are 0; given_FIELD: a setting, unless it is the default; sources: how many; dims: the problem without its name;
    problem: its name, if it has one.
    """
    return lambda case: template.format_map(_Words(case)).rstrip()
