"""Shifts and logic of the bits of narrow integers, as f32 numbers; wide ones may have bits that f32 has not."""

from functools import partial

from asmdnn.network.fusion.exact import EXACT, IntegerBounds
from asmdnn.network.fusion.narrow import NARROW_TYPES, bounds_of_bits, by_bits, moved_left, moved_right, range_of
from asmdnn.network.fusion.numbering import KnownIntegers
from asmdnn.network.graph import Node
from asmdnn.network.operators.mapped import MAP


class BitOperators(KnownIntegers):
    """A part of Numbering: each method takes a node and says whether it has taken it."""

    def shift(self, node: Node) -> bool:
        """By as many bits as data say."""
        found = self.operands(node, node.inputs)
        if found is None or self.values[node.outputs[0]].dtype not in NARROW_TYPES:
            return False
        is_left = node.get("direction") == "LEFT"
        bounds = IntegerBounds(0, EXACT) if is_left else found[0].bounds
        function = moved_left if is_left else moved_right
        return self.wraps(node, [one.name for one in found], bounds, op=MAP, function=function)

    def bits(self, node: Node) -> bool:
        found = self.operands(node, node.inputs)
        if found is None or self.values[node.outputs[0]].dtype not in NARROW_TYPES:
            return False
        bounds, function = bounds_of_bits(*(one.bounds for one in found)), partial(by_bits, op=node.op)
        return self.wraps(node, [one.name for one in found], bounds, op=MAP, function=function)

    def inversion(self, node: Node) -> bool:
        """-1 - x, which wraps around where there is no sign."""
        found, dtype = self.operands(node, node.inputs), self.values[node.outputs[0]].dtype
        if found is None or dtype not in NARROW_TYPES:
            return False
        ones = self.constant(-1.0 if dtype.kind == "i" else range_of(dtype).most)
        return self.wraps(node, (ones, found[0].name), range_of(dtype), op="Sub")
