"""What waits for data in a network from the cache on disk: its model is read at the first call, and nothing is planned.

A file says where the model was cut, and what was known in front of the cuts.  Networks of what follows data, and of the
bodies of loops and branches, are kept by themselves, under the sum of all that they depend on.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

from asmdnn.forking import importing
from asmdnn.network.arrays import Array
from asmdnn.network.calls.running import NetworkPart, Runnable
from asmdnn.network.narrow.storage import Precision

Cuts = tuple[tuple[tuple[str, ...], str], ...]


class WaitingPart:
    """What a file says of a part that waits for data.  found: the cuts, of each the outputs of its node, and the value
    whose data it waits for; before: what runs in front of it; late: outputs of the model that it makes."""

    found: Cuts
    before: Runnable
    late: tuple[str, ...]


class CutModel(Protocol):
    """A model that was read, which finds its parts again: staged.py's Stages."""

    def part_at(self, found: Any, before: Runnable) -> NetworkPart: ...


MakeStages = Callable[[Precision], CutModel]  # reads it; the argument is what the network was planned with


class KeptPartOfData:
    """As the part that `make` finds in the model.  cuts: of each the outputs of its node, and what it waits for;
    before: what is known of what runs in front of it."""

    def __init__(self, make: Callable[[], CutModel], cuts: Cuts, before: Runnable) -> None:
        self.make, self.cuts, self.before = make, cuts, before

    @cached_property
    def part(self) -> NetworkPart:
        with importing():
            from asmdnn.network.splitting import DecidedByData

        found = [DecidedByData(outputs=outputs, value=value) for outputs, value in self.cuts]
        return self.make().part_at(found, self.before)

    def prepare(self) -> None:
        """Nothing is known before there are data."""

    def run(self, values: dict[str, Array], into: Mapping[str, Array] | None = None) -> None:
        """Raises InvalidArguments for a model that has changed since it was loaded, and as the part does."""
        self.part.run(values, into)
