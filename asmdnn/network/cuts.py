"""Outputs with a bound: kernels make as many places as it says along an axis, and a caller gets those that count.

Imported without planners, as what runs needs it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.arrays import Array
from asmdnn.network.dims import Dim
from asmdnn.records import dataclass

WORDS = 3  # of a cut, in a file


class CountOf(str):
    """The name, among the outputs of a graph, of a count that no caller gets: of how many places of `output` along
    `axis` there are.  of: the value that has the bound."""

    output: str
    axis: int
    of: str

    def __new__(cls, output: str, axis: int, of: str) -> "CountOf":
        self = super().__new__(cls, f"count along axis {axis} of {output}")
        self.output, self.axis, self.of = output, axis, of
        return self

    def __reduce__(self) -> Any:
        return CountOf, (self.output, self.axis, self.of)


@dataclass(frozen=True)
class OutputCut:
    """axis: of an output; count: the value that says how many places of it there are, one integer; of: the value that
    has the bound; then: the cut along another axis."""

    axis: int
    count: str
    of: str
    then: "OutputCut | None" = None

    @property
    def every(self) -> tuple["OutputCut", ...]:
        """The cuts along all axes."""
        return (self, *(() if self.then is None else self.then.every))

    def part(self, array: Array, values: Mapping[str, Array]) -> Array:
        """A view of the places that count."""
        for cut in self.every:
            count = int(values[cut.count].reshape(-1)[0])
            array = array[(*[slice(None)] * cut.axis, slice(count))]
        return array

    def dims(self, dims: tuple[int, ...]) -> tuple[Any, ...]:
        """Of an output, with a Dim where it is cut."""
        found: list[int | Dim] = [*dims]
        for cut in self.every:
            found[cut.axis] = Dim(cut.of, 0, dims[cut.axis])
        return tuple(found)


Cuts = Mapping[str, OutputCut]
Types = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]


def cuts_of_graph(outputs: Mapping[str, str]) -> list[tuple[str, OutputCut]]:
    """The cuts along each axis, with their outputs.  outputs: of a graph, counts among them."""
    counts = [(name, value) for name, value in outputs.items() if isinstance(name, CountOf)]
    return [(name.output, OutputCut(name.axis, value, name.of)) for name, value in counts]


def joined(cuts: Iterable[tuple[str, OutputCut]]) -> dict[str, OutputCut]:
    """By output; of several of one output the last one comes first."""
    found: dict[str, OutputCut] = {}
    for name, cut in cuts:
        found[name] = OutputCut(cut.axis, cut.count, cut.of, found.get(name))
    return found


def cut_like(exact: Array, array: Array) -> Array:
    """What is made of all places, in the dims of what a caller got."""
    part: Array = exact[tuple(map(slice, array.shape))] if exact.size != array.size else exact
    return part


def check_no_cuts(cuts: Cuts) -> None:
    """Raise InvalidArguments for outputs that kernels write more of than counts."""
    for name, cut in cuts.items():
        raise InvalidArguments(f"output {name} has as many places as {cut.of!r} has in a call: use run()")


def cuts_text(cuts: Cuts) -> dict[str, Any]:
    """As a file has them."""
    return {name: [x for one in cut.every for x in (one.axis, one.count, one.of)] for name, cut in cuts.items()}


def check_cuts(cuts: Cuts, outputs: Types, there: Types) -> None:
    """Raise ValueError unless they are cuts of outputs by values that are there."""
    for name, cut in [(name, one) for name, several in cuts.items() for one in several.every]:
        dims = outputs[name][0] if name in outputs else None
        if dims is None or cut.axis >= len(dims) or there.get(cut.count, ((),))[0] != (1,):
            raise ValueError(f"{name} is cut, and is no output, or nobody makes its count")


def cuts_read(text: Mapping[str, Any]) -> dict[str, OutputCut]:
    """The way back.  Raises ValueError, and whatever nonsense leads to."""
    found = [(name, OutputCut(*each[i : i + WORDS])) for name, each in text.items() for i in range(0, len(each), WORDS)]
    for _, cut in found:
        if [type(x) for x in (cut.axis, cut.count, cut.of)] != [int, str, str] or cut.axis < 0:
            raise ValueError("a cut that is none")
    return joined(found)
