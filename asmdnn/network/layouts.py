"""Formats chosen by cost over the whole graph: dynamic programming over the formats in which values lie.

Each step by itself takes what its own primitive prefers, and pays a reorder where the next one prefers another
format.  Better is what costs least together:

    cost = sum over steps of the cycles that their plans are expected to take, reorders among them

What has been lowered influences the rest by the formats of its live values alone, those that are still read.  So of
all ways in which they lie alike only the cheapest is continued (Bellman).  On a chain one value is live, and this is
the shortest path through a row of formats; at a join the operands are live together, so they are chosen together.

A way branches only where there is a choice: after a step whose result is read by something other than a kernel of
images (a view, a product, the caller), as it may write row-major or channels-last order itself; and in front of a
convolution whose operand others read, too, as it may make the copy that these have use of.  A way that is dearer than
the cheapest one with reorders to its formats is dropped: it cannot win.  What every step takes by itself is always
continued, so no plan costs more than that one.

Source: Bellman, Dynamic Programming (1957); for convolutions Anderson and Gregg, Optimal DNN Primitive Selection with
Partitioned Boolean Quadratic Programming (2018).
"""

from collections.abc import Sequence
from contextlib import suppress

from asmdnn.errors import Unimplemented
from asmdnn.memory import MemoryDesc
from asmdnn.network.descriptors import channels_last, is_row_major
from asmdnn.network.format_choice import BY_ITSELF, CHANNELS_LAST, LAST, PLAIN, FormatChoice
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.joining.join import deliver
from asmdnn.network.lowering.lowering import ImageFormats
from asmdnn.network.lowering.table import lower, lowering_of
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.records import dataclass, replace

MOST_WAYS = 4  # continued at one time
BLOCK = 16  # channels: parts of so many are whole blocks of every format
Formats = tuple[tuple[str, tuple[MemoryDesc, ...], bool], ...]


@dataclass(frozen=True, eq=False)
class FormatPath:
    """Steps so far and what they cost.  by_themselves: what the steps cost if each takes what it prefers, if
    this way goes on from the same formats, else None.  changes: labels of steps that were told otherwise, and what."""

    steps: Steps
    cycles: int = 0
    by_themselves: int | None = None
    changes: tuple[tuple[str, str], ...] = ()


class FormatSearch:
    """Lowers groups one after another, every way that may turn out to be the cheapest."""

    def __init__(self, steps: Steps, groups: Sequence[Group]) -> None:
        self.graph, self.ways = steps.graph, [FormatPath(steps, 0, 0)]
        self.readers: dict[str, list[Group]] = {}
        self.last: dict[str, int] = {}  # the number of the group that reads a value last
        self.number = 0
        for i, group in enumerate(groups):
            for name in dict.fromkeys(x for node in group.nodes for x in node.inputs if x != NOTHING):
                self.readers.setdefault(name, []).append(group)
                self.last[name] = i
        self.last |= dict.fromkeys(self.graph.outputs.values(), len(groups))

    def lower(self, group: Group) -> None:
        """Add what computes the next group.  Raises Refused with the reason why nothing does."""
        choices = self.choices(group)
        try:
            found = [self.lowered(way, group, BY_ITSELF, bool(choices)) for way in self.ways]
        finally:
            self.number += 1
        for way, by_itself in zip(self.ways, tuple(found), strict=True):
            for choice in (one for one in choices if changes(one, by_itself.steps, group.result)):
                with suppress(Refused):  # what the primitive cannot write or read is no choice
                    found.append(self.lowered(way, group, choice, True))
        self.ways = self.kept(found)

    def lowered(self, way: FormatPath, group: Group, choice: FormatChoice, is_shared: bool) -> FormatPath:
        """A way with one more group."""
        steps = way.steps.branch() if is_shared else way.steps
        steps.choice, before = choice, len(steps.steps)
        lower(steps, group)
        cycles = sum(step.pd.plan.cycles for step in steps.steps[before:])
        by_themselves = None if choice != BY_ITSELF or way.by_themselves is None else way.by_themselves + cycles
        words = f"{choice.result or 'preferred format'}{' from a copy' if choice.copies else ''}"
        changes = way.changes if choice == BY_ITSELF else (*way.changes, (group.label, words))
        return FormatPath(steps, way.cycles + cycles, by_themselves, changes)

    def choices(self, group: Group) -> list[FormatChoice]:
        """What else may be told a group than nothing."""
        if group.second is not None:
            return []
        copies = [FormatChoice(copies=True)] if self.has_use_of_copy(group) else []
        return [*map(FormatChoice, self.results(group)), *copies]

    def results(self, group: Group) -> list[str]:
        """Formats of its result that are worth a try if it does not lie so anyhow."""
        is_map, lowering = group.main is None and group.x != NOTHING, lowering_of(group)
        chooses = lowering is not None and lowering.formats == ImageFormats.CHOOSES
        if group.result == NOTHING or not (is_map or chooses):
            return []
        dims, readers = self.graph.shape(group.result), self.readers.get(group.result, [])
        if len(dims) < CHANNELS_LAST:
            return []
        others = [reader for reader in readers if not self.takes_blocks(reader)]
        if not others and group.result not in self.graph.outputs.values():
            return []
        return [PLAIN, LAST] if others else [PLAIN]

    def takes_blocks(self, group: Group) -> bool:
        """Whether a reader prefers blocks of channels."""
        node, lowering = group.main, lowering_of(group)
        if node is None:
            return True
        if lowering is None or lowering.formats != ImageFormats.PARTS:
            return lowering is not None and lowering.reads_blocks
        shapes = [self.graph.shape(x) for x in (*node.outputs, *node.inputs[: None if node.op == "Concat" else 1])]
        return all(len(dims) == len(shapes[0]) > 1 and dims[1] % BLOCK == 0 for dims in shapes)

    def has_use_of_copy(self, group: Group) -> bool:
        """Whether another convolution reads the operand after this one."""
        if not is_convolution(group.main) or group.scale is not None:
            return False
        x = group.node.inputs[0]
        others = [reader for reader in self.readers[x] if reader is not group and is_convolution(reader.main)]
        return self.last[x] > self.number and bool(others)

    def kept(self, ways: Sequence[FormatPath]) -> list[FormatPath]:
        """The cheapest way to each set of formats, without those that cannot win."""
        if len(ways) == 1:
            return [*ways]
        cheapest, names = list[FormatPath](), self.differing([way.steps for way in ways])
        known = list[Formats]()  # of these, compared and not looked up: dims may stand for others
        for way in sorted(ways, key=lambda way: way.cycles):
            formats = formats_of(way.steps, names)
            if formats not in known:
                known.append(formats)
                cheapest.append(way)
            elif way.by_themselves is not None:
                at = known.index(formats)
                cheapest[at] = replace(cheapest[at], by_themselves=way.by_themselves)
        best, *others = cheapest
        kept = [way for way in others if way.by_themselves is not None or may_win(way, best, names)]
        named = [way for way in kept[MOST_WAYS - 1 :] if way.by_themselves is not None]
        return [best, *kept[: MOST_WAYS - 1], *named]

    def differing(self, ways: Sequence[Steps]) -> list[str]:
        """Values that are still read, but for those that lie in all ways where they lay before these parted."""
        first, parts = ways[0].places, {buffer for way in ways for buffer in way.memory.parts}
        return [
            name
            for name, places in first.items()
            if self.last.get(name, -1) >= self.number
            and (places[0].buffer in parts or any(way.places[name] is not places for way in ways))
        ]

    def end(self) -> FormatPath:
        """The cheapest way, and what all steps cost by themselves."""
        ways = [self.delivered(way) for way in self.ways]
        best = min(ways, key=lambda way: way.cycles)
        return replace(best, by_themselves=next(x for way in ways if (x := way.by_themselves) is not None))

    def delivered(self, way: FormatPath) -> FormatPath:
        """What the whole way costs; its steps without the last reorders."""
        last = way.steps.branch()
        before = len(last.steps)
        deliver(last, self.graph.outputs)
        cycles = sum(step.pd.plan.cycles for step in last.steps[before:])
        by_themselves = None if way.by_themselves is None else way.by_themselves + cycles
        return replace(way, cycles=way.cycles + cycles, by_themselves=by_themselves)


def formats_of(steps: Steps, names: Sequence[str]) -> Formats:
    """How values lie, and whether each has a buffer of its own, which may become a part of another."""
    return tuple(
        (name, tuple(place.desc for place in steps.places[name]), steps.memory.owns(steps.places[name][0]))
        for name in names
    )


def may_win(way: FormatPath, best: FormatPath, names: Sequence[str]) -> bool:
    """Whether it is cheaper than the best one with reorders that make the same formats."""
    margin, asking = 0, best.steps.asking
    for name in names:
        had, wanted = ([place.desc for place in steps.places[name]] for steps in (best.steps, way.steps))
        made = [Reorder(had[0], desc) for desc in wanted if desc not in had]
        try:
            margin += sum(asking.planned(reorder).plan.cycles for reorder in made)
        except Unimplemented:  # a view that shows elements twice: nothing makes it
            return True
    return way.cycles <= best.cycles + margin  # of ways that cost the same, who reads the values may gain from one


def is_convolution(node: Node | None) -> bool:
    return node is not None and node.key == "Conv"


def changes(choice: FormatChoice, steps: Steps, name: str) -> bool:
    """Whether anything would be otherwise."""
    desc = steps.places[name][0].desc
    return choice.copies or not (
        is_row_major(desc) if choice.result == PLAIN else desc == channels_last(desc.dims, desc.dtype)
    )
