"""Which elements of a value number places of a choice that count: columns of what a suppression keeps, say."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from asmdnn.network.counted.choosing import CountedChoice
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Value, normal
from asmdnn.network.operators.evaluation import results_of

MOVES = {"Cast", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}


class PlaceNumbers(NamedTuple):
    """is_place: truths with the value's dims; choice: of what these number the places."""

    is_place: Array
    choice: CountedChoice

    @property
    def only(self) -> CountedChoice | None:
        """The choice, where all elements are such numbers."""
        return self.choice if self.is_place.all() else None

    def has_column(self, column: int) -> bool:
        return bool(self.is_place[..., column].all())


def moved(node: Node, values: Sequence[Value | None], given: Mapping[int, PlaceNumbers]) -> list[PlaceNumbers]:
    """Those of a node's results; none for one that does more than move elements of its first operand."""
    data = [None if value is None else value.data for value in values[1:]]
    if node.domain or node.op not in MOVES or given.keys() != {0}:
        return []
    if any(value is not None and one is None for value, one in zip(values[1:], data, strict=True)):
        return []
    mask = given[0].is_place
    found = [mask] if node.op == "Cast" else results_of(node, [mask, *data])
    return [given[0]._replace(is_place=np.asarray(one, bool)) for one in found]


def chooses_along(node: Node, dims: int, axis: int, numbers: PlaceNumbers) -> bool:
    """Whether a Gather or GatherND of a value with so many dims goes by such numbers along the counted axis."""
    if node.op == "Gather":
        return numbers.only is not None and axis == normal(node.get("axis", 0), dims)
    return not node.get("batch_dims", 0) and axis < numbers.is_place.shape[-1] and numbers.has_column(axis)
