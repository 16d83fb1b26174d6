"""A graph whose every value has known dims and a known type: what is planned."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import Value
from asmdnn.records import dataclass


@dataclass(frozen=True, eq=False)
class StaticGraph:
    """inputs and outputs: the names that a caller uses, and the values after them; nodes in an order in which they
    can be computed; values: what is known of each, the data of constants among it."""

    inputs: tuple[str, ...]
    outputs: Mapping[str, str]
    nodes: tuple[Node, ...]
    values: Mapping[str, Value]

    def __post_init__(self) -> None:
        for name in ("outputs", "values"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def readers(self) -> dict[str, int]:
        """How many nodes and outputs read each value."""
        count = dict.fromkeys(self.values, 0)
        for name in (*(x for node in self.nodes for x in node.inputs if x != NOTHING), *self.outputs.values()):
            count[name] += 1
        return count

    def is_constant(self, name: str) -> bool:
        return name != NOTHING and self.values[name].data is not None

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape


def needed(nodes: Sequence[Node], outputs: Iterable[str]) -> tuple[Node, ...]:
    """The nodes on which outputs depend."""
    wanted, kept = {*outputs} - {NOTHING}, list[Node]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
            wanted.discard(NOTHING)
            kept.append(node)
    return tuple(reversed(kept))
