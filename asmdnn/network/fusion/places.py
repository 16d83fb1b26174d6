"""Integers that say where something is: positions that kernels count, and indices that they go by, as f32."""

from math import prod

import numpy as np

from asmdnn.network.fusion.exact import ANYTHING, IntegerBounds, Known, multiplied, summed
from asmdnn.network.fusion.numbering import F32, OPSET, TRUTH, WIDE, KnownIntegers
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.limits import COUNTED, Limit
from asmdnn.network.operators.definition import size_along
from asmdnn.network.operators.own import OWN


class PlaceOperators(KnownIntegers):
    """Their handlers, of a pass over a graph."""

    def scattered(self, node: Node) -> bool:
        """Moved, or combined; a row counts as often as its place may come."""
        (x, places, updates), how = node.inputs, node.get("reduction")
        found = self.operands(node, (x, updates))
        if found is None:
            return False
        result = self.as_it_is(node.outputs[0], *found)
        if how in ("add", "mul"):
            combined = summed if how == "add" else multiplied
            old, new = (one.bounds for one in found)
            times = node.get("most_often", self.most_often(places))
            result = self.bounded(node, combined(old, new, times), *found)
        return self.results(node, (found[0].name, places, found[1].name), [(node.outputs[0], result)])

    def most_often(self, places: str) -> int:
        """How many of these indices may name one row."""
        value = self.values[places]
        if value.data is None:
            return prod(value.shape)
        return int(np.unique(value.data, return_counts=True)[1].max(initial=0))

    def position(self, node: Node) -> bool:
        """Of any numbers; below 2^24, which kernels make as f32."""
        x = self.number(node.inputs[0]) if self.is_integer(node.inputs[0]) else Known(node.inputs[0], ANYTHING)
        if x is None:
            return False
        return self.results(node, (x.name,), [(node.outputs[0], self.counted(node, node.outputs[0]))])

    def top(self, node: Node) -> bool:
        values, positions = (*node.outputs, NOTHING)[:2]
        is_integer = self.is_integer(node.inputs[0])
        x = self.number(node.inputs[0]) if is_integer else Known(node.inputs[0], ANYTHING)
        if x is None or self.values[node.inputs[0]].dtype not in (F32, *WIDE):
            return False
        known = [(values, self.as_it_is(values, x))] if is_integer and values in self.values else []
        known += [(positions, self.counted(node, positions))] if positions in self.values else []
        return self.results(node, (x.name, *node.inputs[1:]), known)

    def kept_boxes(self, node: Node) -> bool:
        """Their numbers, or -1."""
        (result,), boxes = node.outputs, self.values[node.inputs[1]].shape[2]
        return self.results(node, node.inputs, [(result, Known(f"{result} as numbers", IntegerBounds(-1, boxes - 1)))])

    def index(self, node: Node) -> bool:
        """Of a caller's, checked before a run; of those that kernels make, looked at after it if they may be wrong."""
        (x,), (result,) = node.inputs, node.outputs
        size, shape = node.get("limit"), self.values[x].shape
        limit = Limit(size, node.get("axis"), node.get("least", -size), node.get("ignored"))
        if x in self.source.inputs:
            name = self.made(f"{result}, given", shape)
            self.nodes.append(Node("Number", (x,), (name,), {"limit": limit}, "", OWN))
        else:
            known = self.number(x)
            if known is None:
                return False
            name = known.name
            if known.bounds.least < limit.least or known.bounds.most >= size:
                integers = known.origin or self.said(node)
                if not known.origin:
                    self.made(integers, shape, WIDE[0])
                    self.nodes.append(Node("Integers", (name,), (integers,), {"bounds": tuple(known.bounds)}, "", OWN))
                name = self.made(f"{result}, looked at", shape)
                self.nodes.append(Node("LookedAt", (known.name, integers), (name,), {"limit": limit}, "", OWN))
        if limit.least < 0:
            name = self.from_the_start(node, name, shape)
        ends = (max(0, limit.least), size - 1, *(() if limit.ignored is None else (limit.ignored,)))
        self.learn(result, Known(name, IntegerBounds(min(ends), max(ends))))
        return True

    def from_the_start(self, node: Node, name: str, shape: tuple[int, ...]) -> str:
        """Indices that may count from the end, f32."""
        (result,), zero, size = node.outputs, self.constant(0.0), self.constant(float(node.get("limit")))
        below = self.made(f"{result}, below 0", shape, TRUTH)
        wrapped, made = (self.made(f"{result}{words}", shape) for words in (", wrapped", " as numbers"))
        self.nodes.append(Node("Less", (name, zero), (below,), {}, name="", domain="", opset=OPSET))
        self.nodes.append(Node("Add", (name, size), (wrapped,), {}, name="", domain="", opset=OPSET))
        self.nodes.append(Node("Where", (below, wrapped, name), (made,), {}, name=node.name, domain="", opset=OPSET))
        return made

    def said(self, node: Node) -> str:
        """A name for indices that a message may have: of the node in the file, which may have several."""
        if node.get("axis") == COUNTED:
            return f"places of {node.get('of')}"
        names = f"indices of {node.get('of')}", f"indices of {node.get('of')} along axis {node.get('axis')}"
        return next((name for name in names if name not in self.values), f"{names[0]}, {node.outputs[0]}")

    def integers(self, node: Node) -> bool:
        """Of numbers that fusion has bounded."""
        self.learn(node.outputs[0], Known(node.inputs[0], IntegerBounds(*node.get("bounds"))))
        return True

    def counted(self, node: Node, name: str) -> Known:
        dims = self.values[node.inputs[0]].shape
        size = size_along(dims, node.get("axis", -1 if node.op == "TopK" else 0))
        return Known(f"{name} as numbers", IntegerBounds(0, max(0, size - 1)))
