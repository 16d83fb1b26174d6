"""Maps that several states become are one group: what an optimizer keeps, and the parameter, in one pass.

    mean = b1 mean + (1 - b1) g;  square = b2 square + (1 - b2) g g;  w = w - rate mean / (sqrt(square) + eps)

A group of updates begins with any map that a state depends on, and takes what reads its values, what makes operands for
it alone, and other maps that a state becomes of the same operands.  Each value that somebody else reads is stored; the
last one is the group's result, the others are its further results.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from asmdnn.network.graph import NOTHING
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import StaticGraph
from asmdnn.records import dataclass, once

MOST_MAPS = 32  # of a group
MOST_TENSORS = 6  # that a group reads beside its operand: their pointers take registers,
MOST_RESULTS = 3  # and so do those of results
WRITTEN = f"{OWN}.Written"
GRADIENTS = {f"{OWN}.ConvWeightsGradient"}  # what has maps of updates as post-ops


@dataclass(frozen=True, eq=False)
class UpdateMaps:
    """Grows groups of updates.  maps: which nodes are maps; users: by value, the numbers of nodes that read it; maker:
    that of the node that makes it; before: of each node a set of bits, what it depends on, and itself."""

    graph: StaticGraph
    maps: Sequence[bool]
    users: Mapping[str, Sequence[int]]
    maker: Mapping[str, int]
    before: Sequence[int]
    readers: Mapping[str, int]

    @once
    def leading(self) -> frozenset[int]:
        """The maps on which a state depends by maps of one shape alone."""
        found = set[int]()
        for i in reversed(range(len(self.maps))):
            if self.maps[i] and any(self.is_written(j) or j in found for j in self.readers_of(i)):
                found.add(i)
        return frozenset(found)

    def is_written(self, i: int) -> bool:
        """Whether a node says that a state becomes what it reads."""
        return self.graph.nodes[i].key == WRITTEN

    def readers_of(self, i: int) -> Iterator[int]:
        """The nodes that read what a node makes first, of maps those that have its shape."""
        name = self.graph.nodes[i].outputs[0]
        for j in self.users.get(name, ()):
            if not self.maps[j] or self.graph.shape(self.graph.nodes[j].outputs[0]) == self.graph.shape(name):
                yield j

    def grown(self, first: int, taken: Collection[int]) -> list[int] | None:
        """The numbers of a group's nodes in order; None if it would store one value alone.

        first: a map, or what makes a gradient, which then nothing else reads.  taken: nodes of other groups."""
        is_map = self.maps[first]
        if not is_map and self.graph.nodes[first].key not in GRADIENTS:
            return None
        start = first if is_map else next(iter(self.readers_of(first)), -1)
        if start not in self.leading or start in taken:
            return None
        members = {first, start}
        while len(members) <= MOST_MAPS and (more := self.next(members, taken)) is not None:
            members.add(more)
        stored = self.stored(members)
        if not all(self.graph.values[name].dtype == np.float32 for name in (*stored, *self.read(members))):
            return None
        is_update = any(self.is_written(j) for i in stored.values() for j in self.readers_of(i))
        fits = len(stored) > 1 if is_map else first not in stored.values()
        return sorted(members) if fits and is_update and self.is_whole(members) else None

    def next(self, members: set[int], taken: Collection[int]) -> int | None:
        """A map that can join."""
        own = sum(1 << i for i in members)
        for i in self.near(members):
            if i in members or i in taken or i not in self.leading or self.dims(i) != self.dims(min(members)):
                continue
            others = [name for name in self.inputs(i) if self.maker.get(name, -1) not in {*members, -1}]
            if any(self.before[self.maker[name]] & own for name in others):
                continue
            more = members | {i}
            if len(self.stored(more)) <= MOST_RESULTS and len(self.read(more)) <= MOST_TENSORS + 1:
                return i
        return None

    def near(self, members: set[int]) -> Iterator[int]:
        """The maps that read values of members, make operands for them alone, or make states of operands of theirs."""
        for i in sorted(members):
            yield from self.readers_of(i)
        for name in self.read(members):
            maker = self.maker.get(name, -1)
            if maker >= 0 and self.maps[maker] and {j for j in self.users[name] if not self.is_written(j)} <= members:
                yield maker
            if self.graph.shape(name) == self.dims(min(members)):
                yield from (j for j in self.users[name] if any(map(self.is_written, self.readers_of(j))))

    def is_whole(self, members: set[int]) -> bool:
        """Whether nothing that members read from outside depends on one of them."""
        own = sum(1 << i for i in members)
        return not any(self.before[self.maker[name]] & own for name in self.read(members) if name in self.maker)

    def dims(self, i: int) -> tuple[int, ...]:
        return self.graph.shape(self.graph.nodes[i].outputs[0])

    def inputs(self, i: int) -> Iterator[str]:
        return (name for name in self.graph.nodes[i].inputs if name != NOTHING)

    def read(self, members: set[int]) -> list[str]:
        """The tensors that maps among members read from outside."""
        made = {name for i in members for name in self.graph.nodes[i].outputs}
        found = dict.fromkeys(name for i in sorted(members) if self.maps[i] for name in self.inputs(i))
        return [name for name in found if name not in made and not self.is_number(name)]

    def is_number(self, name: str) -> bool:
        data = self.graph.values[name].data
        return data is not None and data.size == 1

    def stored(self, members: set[int]) -> dict[str, int]:
        """The values of members that others read, with the numbers of their nodes."""
        inside = dict[str, int]()
        for i in members:
            for name in self.graph.nodes[i].inputs:
                inside[name] = inside.get(name, 0) + 1
        every = {name: i for i in sorted(members) for name in self.graph.nodes[i].outputs if name != NOTHING}
        return {name: i for name, i in every.items() if self.readers[name] > inside.get(name, 0)}
