"""Element-wise operators join the kernel that makes their operand: its result is stored once, after all of them.

A *map* computes each element of its result from the elements at the same place of its operands, so any chain or tangle
of maps of one shape is one expression of the value before it, of constants, and of other tensors:

    y = f(x, a, b, ...)      for example hardswish as Add, Clip, Mul, Div, or relu(conv + residual)

A group is a node and the maps after it, such that only its last value is read by anybody else.  Tensors that it reads
besides must not depend on it; a sum of two branches so goes to one of them, which then runs last.  No map has other
rounding than by itself but for the products and sums that the expression contracts.
"""

from collections.abc import Sequence

import numpy as np

from asmdnn.network.fusion.expressions import EXPRESSIONS, LOGIC
from asmdnn.network.fusion.integers import is_common
from asmdnn.network.fusion.scaling import scaled_by
from asmdnn.network.fusion.updates import MOST_MAPS, MOST_TENSORS, UpdateMaps
from asmdnn.network.graph import NOTHING, Node, topological
from asmdnn.network.operators.own import OWN
from asmdnn.network.quantized.weights import DEQUANTIZE, QUANTIZE
from asmdnn.network.static import StaticGraph
from asmdnn.records import dataclass

FUSED_INTO = {
    "Conv", "ConvTranspose", "MatMul", "Gemm", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool",
    "LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization", "Resize", "Upsample",
    f"{OWN}.MatMulInteger", f"{OWN}.ConvInteger", f"{OWN}.MatMulNBits", f"{OWN}.ChannelNorm",
}  # what has post-ops, by key; and maps themselves  # fmt: skip
NARROWS = {"Conv", "MatMul", "Gemm", "AveragePool", "GlobalAveragePool"}  # kernels that store bytes
TAKES_NO_TENSORS = {"Resize", "Upsample"}  # they would be a pass after it: a sum goes rather to what makes the other


@dataclass(frozen=True, eq=False)
class Group:
    """Nodes that one primitive computes: `main` and the maps after it, or maps alone (main None); in order.

    x: the value that maps start from, main's result, or an operand that has the result's dims.  second: of a pair of
    convolutions the second one's group, which alone reads `result`.  scale: a product of main's operand and a number
    for each channel, which main computes, too (scaling.py).  floats: what makes floats of integers that the group reads
    as they are.  further: what it stores beside the result (updates.py)."""

    main: Node | None
    maps: tuple[Node, ...]
    x: str
    result: str
    second: "Group | None" = None
    scale: Node | None = None
    floats: tuple[Node, ...] = ()
    further: tuple[str, ...] = ()

    @property
    def node(self) -> Node:
        """`main`, of a group that has one."""
        assert self.main is not None
        return self.main

    @property
    def nodes(self) -> tuple[Node, ...]:
        own = self.maps if self.main is None else (self.main, *self.maps)
        own = own if self.scale is None else (self.scale, *own)
        own = (*self.floats, *own)
        return own if self.second is None else (*own, *self.second.nodes)

    @property
    def has_integers(self) -> bool:
        """Whether it reads or makes bytes that stand for floats."""
        return bool(self.floats) or any(node.op == QUANTIZE for node in self.maps)

    @property
    def label(self) -> str:
        """For example "Conv 'stem' + Add, Relu"."""
        first, *rest = [node for node in self.nodes if node is not self.scale and node not in self.floats]
        return (
            str(first)
            + (" of a scaled operand" if self.scale else "")
            + (f" + {', '.join(node.op for node in rest)}" if rest else "")
        )


def groups_of(graph: StaticGraph) -> tuple[Group, ...]:
    """All nodes in groups, each group after those whose results it reads."""
    return Grouping(graph).groups()


def is_map(graph: StaticGraph, node: Node) -> bool:
    """Whether the node is an expression of f32 values, of truths, or between f32 and bytes."""
    if node.op in (QUANTIZE, DEQUANTIZE):
        return is_common(graph.values, node)
    if node.domain or node.op not in EXPRESSIONS or len(node.outputs) != 1:
        return False
    names = [name for name in (*node.inputs, *node.outputs) if name != NOTHING]
    types = (np.float32, np.bool_) if node.op in LOGIC else (np.float32,)
    if any(graph.values[name].dtype not in types for name in names):
        return False
    return node.op != "Where" or bool(graph.values[node.outputs[0]].dtype == np.float32)


class Grouping:
    """Grows groups from the first node on."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph, self.readers = graph, graph.readers()
        self.maps = [is_map(graph, node) for node in graph.nodes]
        self.maker = {name: i for i, node in enumerate(graph.nodes) for name in node.outputs if name != NOTHING}
        self.users: dict[str, list[int]] = {}
        self.before: list[int] = []  # for each node a set of bits: what it depends on, and itself
        for i, node in enumerate(graph.nodes):
            bits = 1 << i
            for name in node.inputs:
                self.users.setdefault(name, []).append(i)
                if name in self.maker:
                    bits |= self.before[self.maker[name]]
            self.before.append(bits)
        self.taken: set[int] = set()
        self.scales: dict[int, Node] = {}  # by the convolution
        self.makes_floats = [i for i, node in enumerate(graph.nodes) if node.op == DEQUANTIZE and not node.domain]
        self.floats = {graph.nodes[i].outputs[0]: i for i in self.makes_floats}
        self.updates = UpdateMaps(graph, self.maps, self.users, self.maker, self.before, self.readers)

    def groups(self) -> tuple[Group, ...]:
        found = []
        for i in range(len(self.graph.nodes)):
            if i in self.taken or (i in self.makes_floats and self.is_read(i)):
                continue
            scaled = scaled_by(self.graph, i, self.users, self.readers)
            if scaled is not None:
                self.scales[scaled] = self.graph.nodes[i]
                self.taken.add(i)
            else:
                members = self.updates.grown(i, self.taken) or self.grown(i)
                self.taken.update(members)
                found.append(self.group(members))
        return ordered(found)

    def is_read(self, i: int) -> bool:
        """Whether a node's result is for one node, which takes it into its group, and no output."""
        name = self.graph.nodes[i].outputs[0]
        users = self.users.get(name, [])
        return len({*users}) == 1 and self.readers[name] == len(users)

    def grown(self, first: int) -> list[int]:
        """The nodes of the group that begins with a node, in order."""
        node, best = self.graph.nodes[first], [first]
        if node.op == DEQUANTIZE or (
            not self.maps[first] and (node.key not in FUSED_INTO or not self.is_float(node.outputs[0]))
        ):
            return best
        members = [first]
        while len(members) <= MOST_MAPS:
            following = self.following(members)
            if following is None:
                break
            members.append(following)
            if self.is_closed(members) and self.may_end(members):
                best = list(members)
        return best

    def may_end(self, members: Sequence[int]) -> bool:
        """Whether the last value is one that the group's kernel stores: floats, or bytes if it narrows them."""
        last, first = self.graph.nodes[members[-1]], self.graph.nodes[members[0]]
        if last.op == QUANTIZE:
            return self.maps[members[0]] or first.op in NARROWS
        return last.op != DEQUANTIZE and self.is_float(last.outputs[0])

    def is_float(self, name: str) -> bool:
        return self.graph.values[name].dtype == np.float32

    def following(self, members: Sequence[int]) -> int | None:
        """The next map that can join: it reads a value of the group, and nothing else that depends on one."""
        nodes = self.graph.nodes
        made = {nodes[i].outputs[0] for i in members}
        own = sum(1 << i for i in members)
        candidates = sorted({user for name in made for user in self.users.get(name, ())})
        for i in candidates:
            if i in self.taken or i in members or not self.maps[i]:
                continue
            if self.graph.shape(nodes[i].outputs[0]) != self.graph.shape(nodes[members[0]].outputs[0]):
                continue
            others = [name for name in nodes[i].inputs if name in self.maker and name not in made]
            if all(not self.before[self.maker[name]] & own for name in others):
                return self.needed(i, members)
        return None

    def needed(self, i: int, members: Sequence[int]) -> int:
        """The map itself, or one that makes a truth for it, which is never stored, so has to be in the group, too."""
        for name in self.graph.nodes[i].inputs:
            maker = self.maker.get(name, -1)
            if maker < 0 or self.is_float(name) or not self.maps[maker] or maker in members or maker in self.taken:
                continue
            if self.graph.shape(name) == self.graph.shape(self.graph.nodes[i].outputs[0]):
                return self.needed(maker, members)
        return i

    def is_closed(self, members: Sequence[int]) -> bool:
        """Whether only the last value is read by others, and not too many tensors are read."""
        nodes, inside = self.graph.nodes, dict[str, int]()
        tensors = set[str]()
        for i in members:
            for name in nodes[i].inputs:
                inside[name] = inside.get(name, 0) + 1
        made = [nodes[i].outputs[0] for i in members]
        for i in members[1:]:
            tensors |= {name for name in nodes[i].inputs if name not in made and self.is_tensor(name)}
        read_outside = [name for name in made if self.readers[name] > inside.get(name, 0)]
        most = 0 if nodes[members[0]].op in TAKES_NO_TENSORS else MOST_TENSORS
        return read_outside == [made[-1]] and len(tensors) <= most

    def is_tensor(self, name: str) -> bool:
        return name != NOTHING and not (self.graph.is_constant(name) and self.graph.values[name].data.size == 1)  # type: ignore[union-attr]

    def group(self, members: Sequence[int]) -> Group:
        nodes = tuple(self.graph.nodes[i] for i in members)
        result = nodes[-1].outputs[0]
        made = {node.outputs[0] for node in nodes}
        scale = self.scales.get(members[0])
        every = nodes if scale is None else (scale, *nodes)
        read = dict.fromkeys(name for node in every for name in node.inputs if name not in made)
        floats = tuple(self.graph.nodes[self.floats[name]] for name in read if name in self.floats)
        further = tuple(self.updates.stored({*members})) if self.maps[members[-1]] else ()
        further = tuple(name for name in further if name != result)
        if not self.maps[members[0]] or nodes[0].op == DEQUANTIZE:
            return Group(nodes[0], nodes[1:], nodes[0].outputs[0], result, scale=scale, floats=floats, further=further)
        outside = [name for node in nodes for name in node.inputs if name != NOTHING and name not in made]
        whole = [
            x for x in outside if self.graph.shape(x) == self.graph.shape(result) and not self.graph.is_constant(x)
        ]
        return Group(None, nodes, (whole or [NOTHING])[0], result, floats=floats, further=further)


def ordered(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Groups after those whose results they read, the earlier ones first."""
    return tuple(groups[i] for i in topological(operands_of(groups), [group.nodes[0] for group in groups]))


def operands_of(groups: Sequence[Group]) -> list[set[int]]:
    """For each group those whose results it reads."""
    makers = {name: i for i, group in enumerate(groups) for node in group.nodes for name in node.outputs if name}
    return [
        {makers[name] for node in group.nodes for name in node.inputs if name in makers} - {i}
        for i, group in enumerate(groups)
    ]
