"""Nodes as users wrote them, for refusals: nobody has asked for what they are decomposed into.

The texts come from where nodes are put in the place of others, in a training step, and where gradients are made.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from asmdnn.errors import Unimplemented, shown
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.mapped import MAP, function_of
from asmdnn.records import dataclass

OF_GRADIENT = "the gradient of "
Written = Mapping[str, str]  # by the name of a result, where it is not the node's own text


def as_written(node: Node, written: Written) -> str:
    """The operator and the name that the user knows."""
    first = next((name for name in node.outputs if name != NOTHING), "")
    if first in written:
        return written[first]
    if node.op == MAP:
        return f"map of {getattr(function_of(node), '__name__', 'a function')} {shown(node.name or first)}"
    return str(node)


def results_of(nodes: Iterable[Node], text: str) -> dict[str, str]:
    """An entry of Written for each result of what stands in the place of a node."""
    return {name: text for node in nodes for name in node.outputs if name != NOTHING}


@dataclass(frozen=True, eq=False)
class AskedNode:
    """A node that gradients go through.  way_out: what to do if they cannot, found when it is needed."""

    text: str
    way_out: Callable[[], str]

    def refused(self, reason: str = "", way_out: str = "", by: str = "") -> Unimplemented:
        """The error to raise.  by: of one operand."""
        said = f"{self.text} has no gradient{f' by its operand {shown(by)}' if by else ''}"
        if self.text.startswith(OF_GRADIENT):
            reason = "second derivatives end here"
        return Unimplemented(": ".join(filter(None, (said, reason, way_out or self.way_out()))))


def what_to_leave_out(nodes: Sequence[Node], node: Node, wrt: Sequence[str], parameters: Collection[str]) -> str:
    """The first value of wrt that a node depends on, and how gradients by it are not asked for."""
    before = {*node.inputs}
    for one in reversed(nodes[: nodes.index(node)]):
        if not before.isdisjoint(one.outputs):
            before.update(one.inputs)
    name = next(name for name in wrt if name in before)
    freeze = f", or freeze it, groups={{{name!r}: None}}" if name in parameters else ""
    return f"leave {shown(name)} out of wrt{freeze}"
