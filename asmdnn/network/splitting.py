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
    of which data decide the dims; rest: what depends on them, in order.  crossing: what both read of before.  lists:
    names of values that are some.
    """

    first: Body
    cuts: tuple[Node, ...]
    rest: tuple[Node, ...]
    crossing: tuple[str, ...]
    late_outputs: tuple[str, ...]
    lists: frozenset[str]


def split(body: Body, at: Collection[tuple[str, ...]], evaluated: Collection[tuple[str, ...]]) -> SplitBody:
    """Cut at the nodes with these outputs.  evaluated: those that are computed between the parts; the
    others begin the rest.

    What makes lists, or reads some, of cuts alone is a cut, too: lists are in no network.
    """
    late, first, cuts, rest = set[str](), list[Node](), list[Node](), list[Node]()
    lists, from_cuts = lists_of(body.nodes), set[str]()
    for node in body.nodes:
        reads = reads_of_node(node)
        waits = not late.isdisjoint(reads)
        if not waits and node.outputs not in at:
            first.append(node)
            continue
        goes_on = waits and is_of_lists(node, lists) and reads & late <= from_cuts
        is_cut = goes_on or (not waits and node.outputs in evaluated)
        (cuts if is_cut else rest).append(node)
        from_cuts.update(node.outputs if is_cut else ())
        late.update(node.outputs)
    late.discard(NOTHING)
    cuts, rest = [*makers_of_lists(first, cuts, lists), *cuts], [*makers_of_lists(first, rest, lists), *rest]
    late.update(name for node in (*cuts, *rest) for name in node.outputs if name in lists)
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
        lists=frozenset(lists),
    )


def lists_of(nodes: Iterable[Node]) -> set[str]:
    """The names of lists: what these nodes make, and Loops that go on with some."""
    found = set[str]()
    for node in nodes:
        if node.op in LISTS or (node.op == "Identity" and not found.isdisjoint(node.inputs)):
            found.update(node.outputs)
        elif node.op == "Loop":
            found.update(name for name, given in zip(node.outputs, node.inputs[2:], strict=False) if given in found)
    return found


def is_of_lists(node: Node, lists: Collection[str]) -> bool:
    """Whether it makes or reads some."""
    return not reads_of_node(node).isdisjoint(lists) or any(name in lists for name in node.outputs)


def makers_of_lists(first: Sequence[Node], readers: Iterable[Node], lists: Collection[str]) -> list[Node]:
    """Of those nodes, which come before, that make lists which these read: both parts have them."""
    needed, found = {name for node in readers for name in reads_of_node(node) if name in lists}, list[Node]()
    for node in reversed(first):
        if not needed.isdisjoint(node.outputs):
            needed |= {name for name in reads_of_node(node) if name in lists}
            found.append(node)
    return found[::-1]


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
