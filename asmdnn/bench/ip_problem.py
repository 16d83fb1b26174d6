"""Inner-product problems and their strings, as benchdnn writes them: `mb16ic1024oc1000`, `mb2ic256ih7oc512n"name"`.

Keys: mb images (default 2), ic and oc channels, id, ih and iw positions; positions that are not given repeat the ones
before them (`ih7` alone is 7x7).
"""

import math

from asmdnn.bench.problem_text import Named, check_given, check_memory, entries, quoting
from asmdnn.bench.problems import DEFAULT_MB
from asmdnn.records import dataclass, replace

KEYS = ("mb", "ic", "oc", "id", "ih", "iw")


@dataclass(frozen=True, slots=True)
class IpProblem(Named):
    """`positions` are the spatial sizes, outermost first: (), (w,), (h, w) or (d, h, w)."""

    mb: int
    ic: int
    oc: int
    positions: tuple[int, ...]
    name: str = ""

    def with_images(self, mb: int) -> "IpProblem":
        return replace(self, mb=mb)

    @property
    def src_dims(self) -> tuple[int, ...]:
        return (self.mb, self.ic, *self.positions)

    @property
    def weights_dims(self) -> tuple[int, ...]:
        return (self.oc, self.ic, *self.positions)

    @property
    def dst_dims(self) -> tuple[int, ...]:
        return (self.mb, self.oc)

    @property
    def inputs(self) -> int:
        """Of one image."""
        return self.ic * math.prod(self.positions)

    def __str__(self) -> str:
        axes = "dhw"[3 - len(self.positions) :]
        sizes = "".join(f"i{axis}{size}" for axis, size in zip(axes, self.positions, strict=True))
        return f"mb{self.mb}ic{self.ic}{sizes}oc{self.oc}" + (f'n"{self.name}"' if self.name else "")


def ip_problem(text: str) -> IpProblem:
    """The problem that `text` describes.  Raises InvalidArguments that quotes it and says what is wrong."""
    with quoting(text):
        return _build(*entries(text, KEYS))


def _build(numbers: dict[str, int], name: str) -> IpProblem:
    check_given(numbers, "ic", "oc")
    given = [axis for axis in "dhw" if f"i{axis}" in numbers]
    positions: list[int] = []
    for axis in "dhw"["dhw".index(given[0]) :] if given else "":
        positions.append(numbers.get(f"i{axis}", positions[-1] if positions else 0))
    problem = IpProblem(numbers.get("mb", DEFAULT_MB), numbers["ic"], numbers["oc"], tuple(positions), name)
    check_memory(src=problem.src_dims, weights=problem.weights_dims, dst=problem.dst_dims)
    return problem
