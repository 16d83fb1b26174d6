"""A model cut where data decide dims: what is planned before there are any, and what waits for them."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from asmdnn.errors import Unimplemented, counted, shown
from asmdnn.network.graph import NOTHING, Body, Node, captured
from asmdnn.records import dataclass, replace

LISTS: Final = {  # what makes some
    "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceMap", "SplitToSequence",
}  # fmt: skip
MOST_NAMED: Final = 6  # operators, in an error


class DecidedByData(Unimplemented):
    """Data decide the dims of what a node makes, or which of its bodies runs.

    outputs: of that node of the model; value: the data, by the name that they have in the model, or ""; others: what
    else data decide, of nodes that do not wait for this one."""

    def __init__(
        self,
        message: str = "",
        outputs: tuple[str, ...] = (),
        value: str = NOTHING,
        others: "Sequence[DecidedByData]" = (),
    ) -> None:
        super().__init__(message)
        self.outputs, self.value, self.others = outputs, value, tuple(others)


def decided_by_data(node: Node, name: str) -> DecidedByData:
    """What a node raises that must know the data of this value before dims are known."""
    return DecidedByData(
        f"{node} has dims that depend on the data of {shown(name)}: pass it in constants=, if it is an input, or load "
        "the model with fallback='numpy'",
        value=name,
    )


class WaitingNodes:
    """What data decide of a body, whose nodes are gone through in order, and all that waits for those."""

    def __init__(self) -> None:
        self._found, self._late, self._more = list[DecidedByData](), set[str](), Counter[str]()

    def has(self, node: Node) -> bool:
        """Whether it waits for one of them."""
        if not self._late or self._late.isdisjoint(reads_of_node(node)):
            return False
        self._late.update(node.outputs)
        self._late.discard(NOTHING)
        return True

    def add(self, node: Node, error: DecidedByData) -> None:
        """A node of which data decide."""
        self._more[node.key] += bool(self._found)
        self._found.append(DecidedByData(str(error), node.outputs, error.value))
        self._late.update(node.outputs)
        self._late.discard(NOTHING)

    def check(self) -> None:
        """Raise DecidedByData if there are some."""
        if not self._found:
            return
        first, *others = self._found
        kinds = ", ".join(f"{op} {n} times" for op, n in self._more.most_common(MOST_NAMED) if n)
        more = f"; so it is with {counted(len(others), 'node')} more, {kinds}" if others else ""
        raise DecidedByData(f"{first}{more}", first.outputs, first.value, others)


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
    """Cut at the nodes with these outputs.  evaluated: those that are computed between the parts; the
    others begin the rest.
    """
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
    for name in sorted(wanted & lists_of(first)):
        reader = next(node for node in (*cuts, *rest) if name in reads_of_node(node))
        raise Unimplemented(
            f"{reader} waits for data, and reads {shown(name)}, which is a list: lists are known before a network "
            "runs, so pass what decides it in constants="
        )
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


def lists_of(nodes: Iterable[Node]) -> set[str]:
    """What they make that are no tensors."""
    found = set[str]()
    for node in nodes:
        if node.op in LISTS or (node.op == "Identity" and not found.isdisjoint(node.inputs)):
            found.update(node.outputs)
    return found


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
