"""A model cut where data decide dims: what is planned before there are any, and what waits for them."""

from collections.abc import Collection, Iterable, Sequence

from asmdnn.errors import Unimplemented
from asmdnn.network.graph import NOTHING, Body, Node, captured
from asmdnn.records import dataclass, replace


class DecidedByData(Unimplemented):
    """Data decide the dims of what a node makes, or which of its bodies runs.

    outputs: of that node of the model; value: the data, by the name that they have in the model, or ""."""

    def __init__(self, message: str = "", outputs: tuple[str, ...] = (), value: str = NOTHING) -> None:
        super().__init__(message)
        self.outputs, self.value = outputs, value


@dataclass(frozen=True, eq=False)
class SplitBody:
    """first: all that depends on no cut; its outputs are whatever others read, and the model's own ones.  cuts: nodes
    of which data decide the dims; rest: what depends on them, in order.  crossing: what both read of before.
    """

    first: Body
    cuts: tuple[Node, ...]
    rest: tuple[Node, ...]
    crossing: tuple[str, ...]
    late_outputs: tuple[str, ...]


def split(body: Body, at: Collection[tuple[str, ...]], evaluated: Collection[tuple[str, ...]]) -> SplitBody:
    """Cut at the nodes with these outputs.  evaluated: those with a definition; the others begin the rest."""
    late, first, cuts, rest = set[str](), list[Node](), list[Node](), list[Node]()
    for node in body.nodes:
        waits = not late.isdisjoint(reads_of_node(node))
        if not waits and node.outputs not in at:
            first.append(node)
            continue
        (cuts if not waits and node.outputs in evaluated else rest).append(node)
        late.update(node.outputs)
    late.discard(NOTHING)
    wanted = {name for node in (*cuts, *rest) for name in reads_of_node(node)} - late - body.constants.keys()
    own = copied(body, first, wanted)
    rest = [*own, *rest]
    wanted |= {name for node in own for name in reads_of_node(node)}
    wanted -= late | body.constants.keys() | {name for node in own for name in node.outputs} | {NOTHING}
    early = [name for name in body.outputs if name not in late]
    made = {name for node in first for name in node.outputs}
    outputs = tuple(dict.fromkeys([*early, *(name for name in sorted(wanted) if name in made)]))
    return SplitBody(
        replace(body, outputs=outputs, nodes=tuple(first)),
        cuts=tuple(cuts),
        rest=tuple(rest),
        crossing=tuple(sorted(wanted)),
        late_outputs=tuple(name for name in body.outputs if name in late),
    )


def copied(body: Body, nodes: Sequence[Node], wanted: Iterable[str]) -> list[Node]:
    """Nodes that depend on constants alone, such as weights that are dequantised: both parts have them."""
    known, fixed = {NOTHING, *body.constants}, list[Node]()
    for node in nodes:
        if node.inputs and known.issuperset(reads_of_node(node)):
            fixed.append(node)
            known.update(node.outputs)
    needed, found = set(wanted), list[Node]()
    for node in reversed(fixed):
        if not needed.isdisjoint(node.outputs):
            needed |= reads_of_node(node)
            found.append(node)
    return found[::-1]


def reads_of_node(node: Node) -> set[str]:
    """What it reads, its bodies included."""
    return {*node.inputs, *captured(node)} - {NOTHING}
