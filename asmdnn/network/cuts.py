"""Outputs with a bound: kernels make as many places as it says along an axis, and a caller gets those that count.

Imported without planners, as what runs needs it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.arrays import Array
from asmdnn.network.dims import Dim
from asmdnn.records import dataclass


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
    has the bound."""

    axis: int
    count: str
    of: str

    def part(self, array: Array, values: Mapping[str, Array]) -> Array:
        """A view of the places that count."""
        count = int(values[self.count].reshape(-1)[0])
        part: Array = array[(*[slice(None)] * self.axis, slice(count))]
        return part

    def dims(self, dims: tuple[int, ...]) -> tuple[Any, ...]:
        """Of an output, with a Dim where it is cut."""
        return (*dims[: self.axis], Dim(self.of, 0, dims[self.axis]), *dims[self.axis + 1 :])


Cuts = Mapping[str, OutputCut]
Types = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]


def cuts_of_graph(outputs: Mapping[str, str]) -> dict[str, OutputCut]:
    """By output.  outputs: of a graph, counts among them."""
    counts = [(name, value) for name, value in outputs.items() if isinstance(name, CountOf)]
    return {name.output: OutputCut(name.axis, value, name.of) for name, value in counts}


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
    return {name: [cut.axis, cut.count, cut.of] for name, cut in cuts.items()}


def check_cuts(cuts: Cuts, outputs: Types, there: Types) -> None:
    """Raise ValueError unless they are cuts of outputs by values that are there."""
    for name, cut in cuts.items():
        dims = outputs[name][0] if name in outputs else None
        if dims is None or cut.axis >= len(dims) or there.get(cut.count, ((),))[0] != (1,):
            raise ValueError(f"{name} is cut, and is no output, or nobody makes its count")


def cuts_read(text: Mapping[str, Any]) -> dict[str, OutputCut]:
    """The way back.  Raises ValueError, and whatever nonsense leads to."""
    found = {name: OutputCut(*each) for name, each in text.items()}
    for cut in found.values():
        if [type(x) for x in (cut.axis, cut.count, cut.of)] != [int, str, str] or cut.axis < 0:
            raise ValueError("a cut that is none")
    return found
