"""A pass over a graph that computes with integers as f32: what is known of each, and the nodes that are written."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.network.fusion.exact import EXACT, FLOOR, IntegerBounds, Known, TooLarge, floor_of, signs_zeros
from asmdnn.network.fusion.narrow import NARROW_TYPES, UNSIGNED, range_of, wrapping
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.limits import around
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.mapped import MAP
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import StaticGraph

F32, TRUTH, WIDE = np.dtype(np.float32), np.dtype(np.bool_), (np.dtype(np.int64), np.dtype(np.int32))
OPSET = 13  # of the nodes that are made


class KnownIntegers:
    """limits: of inputs, by name; values and nodes: of the graph that comes out."""

    def __init__(self, graph: StaticGraph, limits: dict[str, int]) -> None:
        self.source, self.limits = graph, limits
        self.values, self.nodes = dict(graph.values), list[Node]()
        self.known: dict[str, Known | None] = {}

    def is_integer(self, name: str) -> bool:
        return name != NOTHING and self.values[name].dtype in WIDE

    def is_computed_with(self, name: str) -> bool:
        """Whether it is an integer of any type: narrow ones are moved as the bytes that they are."""
        return name != NOTHING and self.values[name].dtype in (*WIDE, *NARROW_TYPES, *UNSIGNED)

    def number(self, name: str) -> Known | None:
        """What an integer is as f32; None for a constant that f32 has not."""
        if name not in self.known:
            self.known[name] = self.of_constant(name) if self.values[name].data is not None else self.of_input(name)
        return self.known[name]

    def of_constant(self, name: str) -> Known | None:
        data = self.values[name].data
        assert data is not None, "callers have looked"
        if data.size and not -EXACT <= data.min() <= data.max() <= EXACT:
            return None
        made, bounds = f"{name} as numbers", (data.min(), data.max()) if data.size else (0, 0)
        self.values[made] = Value(data.shape, F32, data.astype(F32))
        return Known(made, IntegerBounds(float(bounds[0]), float(bounds[1])))

    def of_input(self, name: str) -> Known:
        """Of a caller's integers, or those that numpy makes, which are checked before a run."""
        limit, dtype = self.limits.get(name, EXACT), self.values[name].dtype
        made = self.made(f"{name} as numbers", self.values[name].shape)
        self.nodes.append(Node("Number", (name,), (made,), {"limit": around(limit)}, "", OWN))
        if dtype in NARROW_TYPES:
            return Known(made, range_of(dtype))
        return Known(made, IntegerBounds(0 if dtype in UNSIGNED else -limit, limit), frozenset((name,)), origin=name)

    def made(self, name: str, shape: tuple[int, ...], dtype: Any = F32) -> str:
        self.values[name] = Value(shape, dtype)
        return name

    def results(self, node: Node, inputs: Sequence[str], known: Sequence[tuple[str, Known]], **changed: Any) -> bool:
        """The node on f32 operands; known: of results that are integers, what they are."""
        names = {name: one.name for name, one in known}
        for name, one in known:
            self.made(one.name, self.values[name].shape)
        outputs = tuple(names.get(name, name) for name in node.outputs)
        op = changed.pop("op", node.op)
        domain = node.domain if op == node.op else ""
        attributes = changed or node.attributes
        self.nodes.append(Node(op, tuple(inputs), outputs, attributes, node.name, domain, opset=node.opset))
        for name, one in known:
            self.learn(name, one)
        return True

    def learn(self, name: str, one: Known) -> None:
        """An integer that is known as f32, and the way back for those who need it."""
        self.known[name] = one
        attributes = {"bounds": tuple(one.bounds), "origin": one.origin}
        self.nodes.append(Node("Integers", (one.name,), (name,), attributes, "", OWN))

    def wraps(self, node: Node, inputs: Sequence[str], bounds: IntegerBounds, **changed: Any) -> bool:
        """The node on f32 operands, whose result wraps around where its narrow type holds less.  Raises TooLarge."""
        (result,), dtype = node.outputs, self.values[node.outputs[0]].dtype
        own = range_of(dtype)
        is_within = own.least <= bounds.least and bounds.most <= own.most
        if dtype not in NARROW_TYPES and not is_within:
            raise TooLarge(result, frozenset(), FLOOR)
        if is_within:
            known = Known(f"{result} as numbers", bounds, has_signs=own.least < 0)
            return self.results(node, inputs, [(result, known)], **changed)
        whole = self.made(f"{result}, whole", self.values[result].shape)
        op, attributes = changed.pop("op", node.op), changed or node.attributes
        self.nodes.append(Node(op, tuple(inputs), (whole,), attributes, name=node.name, domain="", opset=node.opset))
        known = Known(f"{result} as numbers", own, has_signs=own.least < 0)
        return self.results(node, (whole,), [(result, known)], op=MAP, function=wrapping(dtype))

    def bounded(self, node: Node, bounds: IntegerBounds, *operands: Known) -> Known:
        """A result with these bounds.  Raises TooLarge."""
        known = combined(f"{node.outputs[0]} as numbers", bounds, operands)
        has_signs = known.has_signs or signs_zeros(node.op, *(one.bounds for one in operands))
        known = known._replace(floor=min(known.floor, floor_of(node.op, node.get("reduction"))), has_signs=has_signs)
        if not bounds.size <= EXACT:
            raise TooLarge(node.outputs[0], known.sources, known.floor)
        return known

    def as_it_is(self, name: str, *operands: Known) -> Known:
        """A result that is one of its operands, which may be as large as f32 goes."""
        least, most = min(one.bounds.least for one in operands), max(one.bounds.most for one in operands)
        return combined(f"{name} as numbers", IntegerBounds(least, most), operands)

    def constant(self, number: float) -> str:
        self.values[name := f"the number {number}"] = Value((), F32, np.array(number, F32))
        return name

    def operands(self, node: Node, names: Sequence[str]) -> list[Known] | None:
        """A node's operands, which are integers, numbers that are some among them; None if it has others."""
        if not any(map(self.is_computed_with, names)):
            return None
        found = [self.number(name) if self.is_computed_with(name) or self.is_count(name) else None for name in names]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None

    def is_truth_alone(self, name: str) -> bool:
        """Whether nothing is asked of an integer but whether it is 0."""
        readers = [node for node in self.source.nodes if name in node.inputs]
        is_cast = all(node.op == "Cast" and self.values[node.outputs[0]].dtype == TRUTH for node in readers)
        return is_cast and name not in self.source.outputs.values()

    def is_count(self, name: str) -> bool:
        """Whether it is a constant of f32 that are integers."""
        data = self.values[name].data if name != NOTHING else None
        return data is not None and data.dtype == F32 and bool((np.trunc(data) == data).all())


def combined(name: str, bounds: IntegerBounds, operands: Sequence[Known]) -> Known:
    """What is made of these operands."""
    sources = frozenset().union(*(one.sources for one in operands))
    floor, has_signs = min((one.floor for one in operands), default=FLOOR), any(one.has_signs for one in operands)
    return Known(name, bounds, sources, floor, has_signs=has_signs)
