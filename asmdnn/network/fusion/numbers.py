"""Integers between kernels are computed with as f32 numbers, wherever that is exact: up to 2^24.

Every integer has bounds: those of an input are said here and checked before each run, those of constants, truths,
positions and sums follow.  Where a result could be larger than 2^24, the limits of the inputs that it comes from are
halved until it cannot; where that would leave too little (FLOORS), the node stays as it is, without a kernel.

Masks, ids, positions and counts of text encoders become maps, moves and reductions of f32 so, in the same kernels as
all others.  Own nodes stand where integers come and go: Number(limit) is an input as f32, Integers is the way back, for
indices and callers.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from asmdnn.network.fusion.bits import BitOperators
from asmdnn.network.fusion.exact import (
    ABOVE,
    ANYTHING,
    ARITHMETIC,
    BELOW,
    COMPARISONS,
    EXACT,
    FLOOR,
    LARGEST_LONG,
    LARGEST_WORD,
    TRUTHS,
    IntegerBounds,
    Known,
    TooLarge,
    far_remainder,
    held,
    low_half,
    quotient,
    symmetric,
    towards_zero,
    without_signs,
)  # fmt: skip
from asmdnn.network.fusion.narrow import BITS, NARROW_TYPES, UNSIGNED, product, range_of, wrapping
from asmdnn.network.fusion.numbering import F32, OPSET, TRUTH, WIDE, combined
from asmdnn.network.fusion.places import PlaceOperators
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.definition import size_along
from asmdnn.network.operators.mapped import MAP
from asmdnn.network.operators.own import OWN
from asmdnn.network.operators.reductions import axes_to_reduce
from asmdnn.network.static import StaticGraph, needed

MOVES = {
    "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Transpose", "Slice", "Tile", "DepthToSpace",
    "SpaceToDepth",
}  # fmt: skip

MOVES_ALL = MOVES - {"Slice"}


def as_numbers(graph: StaticGraph) -> StaticGraph:
    """The graph with integers as f32 wherever that is exact."""
    made = {name for node in graph.nodes for name in (*node.inputs, *node.outputs)} - {NOTHING}
    if not any(
        graph.values[name].dtype in (*WIDE, *NARROW_TYPES, *UNSIGNED, TRUTH) and not graph.is_constant(name)
        for name in made
    ):
        return graph
    limits, left = dict[str, int](), set[str]()
    while True:
        try:
            return Numbering(graph, limits, left).graph()
        except TooLarge as error:
            halved = {name: limits.get(name, EXACT) // 2 for name in error.sources}
            if not halved or min(halved.values()) < error.floor:
                left.add(error.result)
                limits = {}
            else:
                limits |= halved


class Numbering(BitOperators, PlaceOperators):
    """One pass, with limits of inputs by name; left: results of nodes that stay as they are."""

    def __init__(self, graph: StaticGraph, limits: dict[str, int], left: set[str]) -> None:
        super().__init__(graph, limits)
        self.left = left
        self.renamed: dict[str, str] = {}
        self.handlers: dict[str, Callable[[Node], bool]] = {
            "Cast": self.cast, "Concat": self.concat, "Split": self.split, "Gather": self.move, "Where": self.where,
            "ReduceSum": self.reduction, "ReduceMax": self.reduction, "ReduceMin": self.reduction, "Pad": self.pad,
            "CumSum": self.running_sum, "Index": self.index, "Clip": self.clip,
            "ArgMax": self.position, "ArgMin": self.position, "TopK": self.top, "ScatterRows": self.scattered,
            "Suppressed": self.kept_boxes, "Integers": self.integers, "BitShift": self.shift,
            "BitwiseNot": self.inversion, **dict.fromkeys(BITS, self.bits),
            **dict.fromkeys(MOVES, self.move), **dict.fromkeys(COMPARISONS, self.comparison),
            **dict.fromkeys(ARITHMETIC.keys() - {"Clip"}, self.arithmetic),
        }  # fmt: skip

    def graph(self) -> StaticGraph:
        for node in self.source.nodes:
            inputs = tuple(self.renamed.get(name, name) for name in node.inputs)
            node = Node(
                node.op, inputs, node.outputs, node.attributes, name=node.name, domain=node.domain, opset=node.opset
            )
            handler = self.handlers.get(node.op) if node.domain in ("", OWN) else None
            handler = handler if node.outputs[0] not in self.left else None
            if handler is None or not handler(node):
                self.nodes.append(node)
        outputs = {name: self.renamed.get(value, value) for name, value in self.source.outputs.items()}
        kept = needed(self.nodes, outputs.values())
        return StaticGraph(self.source.inputs, outputs, kept, self.values)

    def cast(self, node: Node) -> bool:
        (x,), (result,) = node.inputs, node.outputs
        wanted, dtype = self.values[result].dtype, self.values[x].dtype
        if dtype == TRUTH and wanted in (F32, *WIDE, *NARROW_TYPES):
            return self.of_truths(node, x, result, wanted != F32)
        if dtype in WIDE and wanted == F32 and (x in self.source.inputs or x not in self.known):
            return False  # which rounds what is above 2^24
        known = self.number(x) if dtype in (*WIDE, *NARROW_TYPES) else None
        if known is not None and wanted == F32:
            return self.as_floats(node, known)
        if known is not None and wanted in WIDE:
            if wanted.itemsize < dtype.itemsize and known.bounds.size > LARGEST_WORD:
                one = Known(f"{result} as numbers", symmetric(LARGEST_WORD), has_signs=known.has_signs)
                return self.results(node, (known.name,), [(result, one)], op=MAP, function=low_half)
            self.learn(result, known)
            return True
        if wanted in NARROW_TYPES and (known is not None or dtype == F32):
            return self.narrowed(node, x if known is None else known.name, known)
        if wanted == TRUTH and (known is not None or dtype == F32):
            zero = self.constant(0.0)
            equal = self.made(f"{result}, negated", self.values[result].shape, TRUTH)
            operands = (x if known is None else known.name, zero)
            self.nodes.append(Node("Equal", operands, (equal,), {}, name="", domain="", opset=OPSET))
            self.nodes.append(Node("Not", (equal,), (result,), {}, name=node.name, domain="", opset=OPSET))
            return True
        if dtype == F32 and wanted in WIDE:
            most = LARGEST_WORD if wanted == np.int32 else LARGEST_LONG
            one = Known(f"{result} as numbers", symmetric(most), has_signs=True)
            function = partial(towards_zero, most=most)
            return self.results(node, (x,), [(result, one)], op=MAP, function=function)
        return False

    def as_floats(self, node: Node, known: Known) -> bool:
        """The numbers as they are; a 0 without its sign, as it was that of an integer."""
        (result,) = node.outputs
        if known.has_signs:
            cast = {"function": without_signs}
            self.nodes.append(Node(MAP, (known.name,), (result,), cast, name=node.name, domain="", opset=node.opset))
        else:
            self.renamed[result] = known.name
        return True

    def narrowed(self, node: Node, x: str, known: Known | None) -> bool:
        """A Cast to 8 or 16 bits: f32 towards zero, and around where the type holds less, as low bits of an integer."""
        (result,), dtype = node.outputs, self.values[node.outputs[0]].dtype
        own = range_of(dtype)
        if known is not None and own.least <= known.bounds.least and known.bounds.most <= own.most:
            self.learn(result, known)
            return True
        if known is None:
            whole = self.made(f"{result}, whole", self.values[x].shape)
            cut = {"function": partial(towards_zero, most=LARGEST_WORD)}
            self.nodes.append(Node(MAP, (x,), (whole,), cut, name=node.name, domain="", opset=node.opset))
            x = whole
        one = Known(f"{result} as numbers", own, has_signs=own.least < 0)
        return self.results(node, (x,), [(result, one)], op=MAP, function=wrapping(dtype))

    def of_truths(self, node: Node, x: str, result: str, is_integer: bool) -> bool:
        made = f"{result} as numbers" if is_integer else result
        self.made(made, self.values[result].shape)
        inputs = (x, self.constant(1.0), self.constant(0.0))
        self.nodes.append(Node("Where", inputs, (made,), {}, name=node.name, domain="", opset=OPSET))
        if is_integer:
            self.learn(result, Known(made, TRUTHS))
        return True

    def move(self, node: Node) -> bool:
        x = self.number(node.inputs[0]) if self.is_integer(node.inputs[0]) else None
        if x is None:
            return False
        known = self.as_it_is(node.outputs[0], x)._replace(origin=x.origin if node.op in MOVES_ALL else "")
        return self.results(node, (x.name, *node.inputs[1:]), [(node.outputs[0], known)])

    def pad(self, node: Node) -> bool:
        fill = node.inputs[2] if len(node.inputs) > 2 else NOTHING
        if not self.is_integer(node.inputs[0]) or node.get("mode", "constant") == "wrap":
            return False
        x, value = self.number(node.inputs[0]), self.number(fill) if fill != NOTHING else Known(NOTHING, TRUTHS)
        if x is None or value is None:
            return False
        inputs = (x.name, node.inputs[1], value.name, *node.inputs[3:])
        return self.results(node, inputs, [(node.outputs[0], self.as_it_is(node.outputs[0], x, value))])

    def concat(self, node: Node) -> bool:
        parts = [self.number(name) for name in node.inputs if self.is_integer(name)]
        found = [part for part in parts if part is not None]
        if not found or len(found) < len(node.inputs):
            return False
        known = self.as_it_is(node.outputs[0], *found)
        return self.results(node, [one.name for one in found], [(node.outputs[0], known)])

    def split(self, node: Node) -> bool:
        x = self.number(node.inputs[0]) if self.is_integer(node.inputs[0]) else None
        if x is None:
            return False
        known = [(name, self.as_it_is(name, x)) for name in node.outputs if name in self.values]
        return self.results(node, (x.name, *node.inputs[1:]), known)

    def where(self, node: Node) -> bool:
        found = self.operands(node, node.inputs[1:])
        if found is None:
            return False
        known = self.as_it_is(node.outputs[0], *found)
        return self.results(node, (node.inputs[0], *(one.name for one in found)), [(node.outputs[0], known)])

    def comparison(self, node: Node) -> bool:
        found = self.operands(node, node.inputs)
        return found is not None and self.results(node, [one.name for one in found], [])

    def arithmetic(self, node: Node) -> bool:
        found = self.operands(node, node.inputs)
        if found is None:
            return False
        if node.op == "Div" and found[0].bounds.size + found[1].bounds.size >= EXACT:
            raise TooLarge(node.outputs[0], found[0].sources | found[1].sources, min(one.floor for one in found))
        dtype = self.values[node.outputs[0]].dtype
        if node.op == "Mul" and dtype in NARROW_TYPES and dtype.itemsize > 1:
            names = [one.name for one in found]
            return self.wraps(node, names, IntegerBounds(-EXACT, EXACT), op=MAP, function=product)
        bounds = ARITHMETIC[node.op](*(one.bounds for one in found))
        changed: dict[str, Any] = {"op": MAP, "function": quotient} if node.op == "Div" else {}
        if node.op == "Mod" and found[0].bounds.size > EXACT:
            changed = {"op": MAP, "function": partial(far_remainder, is_fmod=bool(node.get("fmod", 0)))}
        if node.op == "Mul" and dtype == np.int64 and self.is_truth_alone(node.outputs[0]):  # which nothing wraps to 0
            known = combined(f"{node.outputs[0]} as numbers", bounds, found)
        else:
            known = self.bounded(node, bounds, *found)
        if dtype in NARROW_TYPES:
            return self.wraps(node, [one.name for one in found], bounds, **changed)
        if dtype in UNSIGNED and bounds.least < 0:
            raise TooLarge(node.outputs[0], frozenset(), FLOOR)
        return self.results(node, [one.name for one in found], [(node.outputs[0], known)], **changed)

    def clip(self, node: Node) -> bool:
        """Between bounds of which one may be missing."""
        names = [name for name in node.inputs if name != NOTHING]
        found = self.operands(node, names)
        if found is None:
            return False
        by_name = dict(zip(names, found, strict=True))
        given = [by_name.get(name) for name in (*node.inputs, NOTHING, NOTHING)[:3]]
        x, least, most = (
            one.bounds if one else other for one, other in zip(given, (ANYTHING, BELOW, ABOVE), strict=True)
        )
        known = self.bounded(node, held(x, least, most), *found)
        return self.results(node, [one.name if one else NOTHING for one in given], [(node.outputs[0], known)])

    def reduction(self, node: Node) -> bool:
        x, result = self.number(node.inputs[0]) if self.is_integer(node.inputs[0]) else None, node.outputs[0]
        if x is None:
            return False
        dims = self.values[node.inputs[0]].shape
        given = self.values[node.inputs[1]].data if len(node.inputs) > 1 and node.inputs[1] != NOTHING else None
        count = prod(dims[axis] for axis in axes_to_reduce(node, len(dims), given))
        times = count if node.op == "ReduceSum" else 1
        known = self.bounded(node, IntegerBounds(times * x.bounds.least, times * x.bounds.most), x)
        return bool(count) and self.results(node, (x.name, *node.inputs[1:]), [(result, known)])

    def running_sum(self, node: Node) -> bool:
        x = self.number(node.inputs[0]) if self.is_integer(node.inputs[0]) else None
        axis = self.values[node.inputs[1]].data
        if x is None or axis is None:
            return False
        dims = self.values[node.inputs[0]].shape
        times = size_along(dims, int(np.ravel(axis)[0]))
        bounds = IntegerBounds(min(0.0, times * x.bounds.least), max(0.0, times * x.bounds.most))
        known = self.bounded(node, bounds, x)
        return self.results(node, (x.name, node.inputs[1]), [(node.outputs[0], known)])
