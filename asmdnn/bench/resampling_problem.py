"""Problems of resampling, as benchdnn writes them: `mb1ic64_ih20oh40n"name"`."""

import math

from asmdnn.bench.axis import AXES
from asmdnn.bench.problem_text import (
    FLOAT_BYTES,
    LARGEST_TENSOR_BYTES,
    Named,
    entries,
    quoting,
)
from asmdnn.bench.problems import DEFAULT_MB
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass, replace

_KEYS = ("mb", "ic", *(kind + axis for kind in "io" for axis in AXES))


@dataclass(frozen=True, slots=True)
class ResamplingProblem(Named):
    """mb images of ic channels; inner and outer: src's and dst's sizes of each axis, outermost first."""

    mb: int
    ic: int
    inner: tuple[int, ...]
    outer: tuple[int, ...]
    name: str = ""

    def with_images(self, mb: int) -> "ResamplingProblem":
        return replace(self, mb=mb)

    def __str__(self) -> str:
        letters = AXES[-len(self.inner) :]
        sizes = (f"i{a}{i}o{a}{o}" for a, i, o in zip(letters, self.inner, self.outer, strict=True))
        return f"mb{self.mb}ic{self.ic}_{'_'.join(sizes)}" + (f'_n"{self.name}"' if self.name else "")


def parse_problem(text: str) -> ResamplingProblem:
    """`mb1ic64_ih20oh40`; axes that are not given repeat the ones before.  Raises InvalidArguments that quotes it."""
    with quoting(text):
        numbers, name = entries(text, _KEYS)
        given = [a for a in AXES if f"i{a}" in numbers]
        if "ic" not in numbers or not given or any(f"o{a}" not in numbers for a in given):
            raise InvalidArguments("give ic, and for each axis i and o, such as ic64_ih20oh40")
        letters = AXES[AXES.index(given[0]) :]
        axes = [a if a in given else given[-1] for a in letters]
        inner, outer = (tuple(numbers[kind + a] for a in axes) for kind in "io")
        problem = ResamplingProblem(numbers.get("mb", DEFAULT_MB), numbers["ic"], inner, outer, name)
        if max(math.prod(inner), math.prod(outer)) * problem.mb * problem.ic * FLOAT_BYTES > LARGEST_TENSOR_BYTES:
            raise InvalidArguments("a tensor has more elements than memory can address")
        return problem
