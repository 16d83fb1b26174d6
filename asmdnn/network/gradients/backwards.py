"""From a loss back to the values that gradients are wanted of: the chain rule, node by node, in reverse order.

Every value's gradients, one from each reader, are added in the order in which the readers stand one after another, so
the bits do not depend on anything else.  Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 3.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import count
from math import prod

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.gradients.asked import OF_GRADIENT, AskedNode, as_written, results_of, what_to_leave_out
from asmdnn.network.gradients.composed import decomposed_results, has_rule
from asmdnn.network.gradients.table import Gradients, rules
from asmdnn.network.gradients.words import GradientWords, KnownGraph, is_float
from asmdnn.network.graph import NOTHING, Node
from asmdnn.records import dataclass, replace

F32 = np.dtype(np.float32)
CASTS = ("Cast", "CastLike", "Identity")  # whose gradients are f32, whatever floats they make of what
Parts = dict[str, list[str]]


@dataclass(frozen=True, eq=False)
class Origin:
    """Of a graph: what its nodes were written as, where they are others (asked.py), and the names of its parameters."""

    written: dict[str, str]
    parameters: Collection[str]


def differentiated(
    known: KnownGraph, nodes: Sequence[Node], loss: str, wrt: Sequence[str], first: int, origin: Origin
) -> list[str]:
    """The gradients of the loss by these values, whose nodes `known` takes in.  first: a number that no name has.
    origin: what users wrote, to which what they are the gradients of is added.

    Raises InvalidArguments for what is no loss or is not reached by it, Unimplemented for operators without a rule.
    """
    check_loss(known, loss)
    for name in wrt:
        if known.values[name].dtype != F32:
            raise InvalidArguments(f"{shown(name)} is {known.values[name].dtype.name}: only f32 values have gradients")
    back = Backwards(known, count(first))
    of_loss = Node("Identity", (loss,), (loss,), attributes={})
    start = back.words(of_loss, AskedNode(str(of_loss), str))
    parts: Parts = {loss: [start.constant(np.ones(shape_of(known, loss)))]}

    def asked_of(node: Node) -> AskedNode:
        way_out = partial(what_to_leave_out, nodes, node, wrt, origin.parameters)
        return AskedNode(as_written(node, origin.written), way_out)

    back.walk(nodes, parts, set(wrt), asked_of)
    origin.written.update(back.written)
    missing = [name for name in wrt if not parts.get(name)]
    if missing:
        raise InvalidArguments(
            f"the loss {shown(loss)} does not depend on {shown(missing[0])}, or by integers alone: leave it out of wrt"
        )
    return [start.sum_of(parts[name]) for name in wrt]


class Backwards:
    """The way back through nodes.  numbers: of the names of what it makes; written: whose gradients these are."""

    def __init__(self, known: KnownGraph, numbers: "count[int]") -> None:
        self.known, self.numbers, self.written = known, numbers, dict[str, str]()

    def words(self, node: Node, asked: AskedNode) -> GradientWords:
        return GradientWords(self.known, node, self.numbers, asked)

    def walk(self, nodes: Sequence[Node], parts: Parts, wrt: set[str], asked_of: Callable[[Node], AskedNode]) -> None:
        """Add to `parts`, by value its gradients from each reader, those of all that depends on wrt, and of wrt.
        asked_of: what stands for a node in refusals."""
        depends = self.depending(nodes, wrt)
        for node in reversed(nodes):
            if not depends.intersection(node.inputs) or not parts.keys() & (set(node.outputs) - {NOTHING}):
                continue
            asked, start = asked_of(node), len(self.known.made)
            words = self.words(node, asked)
            given = [words.sum_of(parts[name]) if parts.get(name) else None for name in node.outputs]
            for name, part in zip(node.inputs, self.gradients_of(words, node, given, depends), strict=False):
                if name in depends and name != NOTHING:
                    if part is None:
                        raise asked.refused(by=name if str(node) == asked.text else "")
                    parts.setdefault(name, []).append(part)
            self.written |= results_of(self.known.made[start:], f"{OF_GRADIENT}{asked.text}")

    def depending(self, nodes: Sequence[Node], names: set[str]) -> set[str]:
        """The floats that depend on these values, and they."""
        found = set(names)
        for node in nodes:
            if found.intersection(node.inputs):
                found.update(x for x in node.outputs if x != NOTHING and is_float(self.known.values[x].dtype))
        return found

    def gradients_of(self, words: GradientWords, node: Node, given: Gradients, depends: set[str]) -> Gradients:
        """By each input.  Raises Unimplemented where there is no rule, and none of what the node is decomposed into."""
        self.check_types(words.asked, node, depends)
        if has_rule(self.known, node):
            return rules()[node.key](words, node, given)
        found = self.composed(words, node, given, depends)
        if found is None:
            raise words.asked.refused()
        return found

    def check_types(self, asked: AskedNode, node: Node, depends: set[str]) -> None:
        """Raise Unimplemented for a node that computes with other floats than f32."""
        types = {self.known.values[name].dtype for name in depends.intersection((*node.inputs, *node.outputs))}
        if node.op not in CASTS and types - {F32}:
            other = min(dtype.name for dtype in types - {F32})
            said = f"{asked.text} computes in {other}, gradients are f32"
            raise Unimplemented(f"{said}: cast its operands to f32 before it")

    def composed(self, words: GradientWords, node: Node, given: Gradients, depends: set[str]) -> Gradients | None:
        """Through what a node is decomposed into; None for one that is not.

        An input that stands twice has a name of its own each time, so that each place has its gradient."""
        own = tuple(words("Identity", x) if x != NOTHING and node.inputs.count(x) > 1 else x for x in node.inputs)
        start = len(self.known.made)
        results = decomposed_results(self.known, words, replace(node, inputs=own))
        if results is None:
            return None
        parts: Parts = {}
        for name, d in zip(node.outputs, given, strict=True):
            if d is not None:
                parts.setdefault(results[name], []).append(d)
        wanted = {new for new, name in zip(own, node.inputs, strict=True) if name in depends}
        self.walk(self.known.made[start:], parts, wanted, lambda inside: words.asked)
        return [words.sum_of(parts[new]) if new in wanted and new in parts else None for new in own]


def shape_of(known: KnownGraph, name: str) -> tuple[int, ...]:
    return known.values[name].shape


def check_loss(known: KnownGraph, loss: str) -> None:
    """Raise InvalidArguments for what is no number of f32."""
    value = known.values[loss]
    if prod(value.shape) != 1 or value.dtype != F32:
        dims = "x".join(map(str, value.shape)) or "1"
        raise InvalidArguments(
            f"the loss {shown(loss)} is {value.dtype.name} {dims}, it must be one number of f32: take a mean or a sum"
        )
