"""What planning a model for one shape finds out that holds for every other shape: checks of nodes, and constants.

Arrays that depend on constants alone are made once for all shapes, so that plans hold the same ones, and packed weights
are recognised as equal without a look at them.
"""

from collections.abc import Callable, Sequence

from asmdnn.network.folding.prepared import PreparedBody
from asmdnn.network.graph import Array, Node

LARGEST_RESULT_BYTES = 1 << 20  # of a node that is kept; larger ones would be held beside what is made of them
Key = tuple[object, ...]
Arrays = tuple[Array, ...]


class Remembered:
    """Of one model.  Threads that plan it at once may each find out the same."""

    def __init__(self) -> None:
        self._body: PreparedBody | None = None
        self._nodes: dict[tuple[Node, tuple[str, ...]], Node] = {}
        self._checked: set[Node] = set()
        self._arrays: dict[Key, tuple[object, Arrays]] = {}

    def body(self, make: Callable[[], PreparedBody]) -> PreparedBody:
        """That of the model."""
        self._body = self._body or make()
        return self._body

    def renamed(self, node: Node, inputs: tuple[str, ...], make: Callable[[], Node]) -> Node:
        """The node with other inputs: the same one for equal names."""
        known = self._nodes.get((node, inputs))
        return known or self._nodes.setdefault((node, inputs), make())

    def check(self, node: Node, check: Callable[[Node], None]) -> None:
        """Check a node that `renamed` gave, once."""
        if node not in self._checked:
            check(node)
            self._checked.add(node)

    def arrays(
        self, words: Key, made_of: Sequence[Array | None], make: Callable[[], Arrays], most: int | None = None
    ) -> Arrays:
        """What `make` returns, which depends on the words and these constants alone; kept if it has `most` bytes."""
        key = (*words, *map(id, made_of))
        found = self._arrays.get(key)
        if found is None:
            found = (tuple(made_of), make())  # with what it is made of, whose ids stay its own
            if most is None or sum(array.nbytes for array in found[1]) <= most:
                self._arrays[key] = found
        return found[1]


class RememberedNodes(Remembered):
    """What holds where constants are others each time: their arrays are not kept."""

    def arrays(
        self, words: Key, made_of: Sequence[Array | None], make: Callable[[], Arrays], most: int | None = None
    ) -> Arrays:
        return make()
