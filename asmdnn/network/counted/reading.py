"""A node that reads what is counted, as rules see it."""

from collections.abc import Callable, Mapping, Sequence

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Shape, Value
from asmdnn.records import dataclass


@dataclass(frozen=True, eq=False)
class CountedReading:
    """A node that reads values with counted axes.  values: its operands; counted: the axis by number of operand."""

    node: Node
    values: Sequence[Value | None]
    counted: Mapping[int, int]

    def shape(self, i: int = 0) -> Shape:
        value = self.values[i]
        assert value is not None, "an operand that rules ask for"
        return value.shape

    def data(self, i: int) -> Array | None:
        """Of an operand that is a constant."""
        value = self.values[i] if i < len(self.values) else None
        return None if value is None else value.data

    def has(self, i: int) -> bool:
        return i < len(self.values) and self.values[i] is not None

    @property
    def only(self) -> int | None:
        """The axis of the first operand, if no other has one."""
        return self.counted[0] if self.counted.keys() == {0} else None


Rule = Callable[
    [CountedReading], int | None
]  # the axis in all results; None where places are mixed, or dims would fit by chance alone
