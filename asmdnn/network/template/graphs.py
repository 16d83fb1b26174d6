"""Graphs of one model for several shapes: in which numbers they differ, and one with traced numbers in their place."""

import numpy as np

from asmdnn.memory.traced import NumberTrace, TracedNumber
from asmdnn.network.graph import Array
from asmdnn.network.operators.definition import Value
from asmdnn.network.static import StaticGraph
from asmdnn.network.template.parts import ValueParts
from asmdnn.records import dataclass

MOST_ELEMENTS = 16  # of a constant of integers, such as dims, that may differ between shapes


def numbers_of(graph: StaticGraph) -> list[int]:
    """All dims, and the elements of short constants of integers, in the order of values."""
    found = list[int]()
    for shape, _, data in graph.values.values():
        found += shape
        if data is not None and is_short(data):
            found += data.ravel().tolist()
    return found


def is_short(data: Array) -> bool:
    return data.size <= MOST_ELEMENTS and data.dtype == np.int64


def is_alike(one: StaticGraph, two: StaticGraph) -> bool:
    """Whether graphs differ at most in their numbers."""
    if one.nodes != two.nodes or one.inputs != two.inputs or one.outputs != two.outputs:
        return False
    return [*one.values] == [*two.values] and all(map(are_alike, one.values.values(), two.values.values()))


def are_alike(one: Value, two: Value) -> bool:
    if len(one.shape) != len(two.shape) or one.dtype != two.dtype:
        return False
    if one.data is two.data:
        return True
    return one.data is not None and two.data is not None and is_short(one.data) and one.shape == two.shape


@dataclass(frozen=True, eq=False)
class GraphNumbers:
    """The numbers of a graph of which some are traced, as int64[numbers] in the order of `numbers_of`.

    fixed_at, traced_at: where those are that others have to have in common with it, and those that are traced; same_as:
    for each traced one where the first one is that has to be equal to it.  leaves: numbers of the trace, and where each
    is first.  slots: of values that have traced numbers, by name, and of their data."""

    own: Array
    fixed_at: Array
    traced_at: Array
    same_as: Array
    leaves: tuple[tuple[int, int], ...]
    slots: tuple[tuple[str, int, int], ...]

    def fits(self, numbers: Array) -> bool:
        """Whether those of another graph, which is alike, are equal where these are."""
        is_fixed = np.array_equal(numbers[self.fixed_at], self.own[self.fixed_at])
        return is_fixed and np.array_equal(numbers[self.traced_at], numbers[self.same_as])


def traced(
    graph: StaticGraph, other: StaticGraph, trace: NumberTrace, parts: ValueParts
) -> tuple[StaticGraph, GraphNumbers]:
    """The graph with traced numbers where another one, which is alike, has others; those that change alike are one."""
    own, leaves, found = numbers_of(graph), dict[tuple[int, int], TracedNumber](), list[int | TracedNumber]()
    for mine, its in zip(own, numbers_of(other), strict=True):
        if mine != its and (mine, its) not in leaves:
            leaves[mine, its] = trace.leaf(mine)
        found.append(mine if mine == its else leaves[mine, its])
    firsts = dict[int, int]()
    for at, number in enumerate(found):
        if isinstance(number, TracedNumber):
            firsts.setdefault(number.index, at)
    same = np.array([firsts[number.index] if isinstance(number, TracedNumber) else -1 for number in found], np.int64)
    values, slots, left = dict(graph.values), list[tuple[str, int, int]](), iter(found)
    for name, value in graph.values.items():
        shape = tuple([next(left) for _ in value.shape])
        elements = (
            [next(left) for _ in range(value.data.size)] if value.data is not None and is_short(value.data) else ()
        )
        data = with_elements(value.data, elements) if any(isinstance(n, TracedNumber) for n in elements) else value.data
        if data is not value.data or any(isinstance(n, TracedNumber) for n in shape):
            values[name] = Value(shape, value.dtype, data)  # type: ignore[arg-type]
            whole, inside = parts.slot(value), parts.slot(value.data)
            parts.stand_for(values[name], whole)
            if data is not value.data:
                parts.stand_for(data, inside)
            slots.append((name, whole.at, inside.at))
    numbers = GraphNumbers(
        np.array(own, np.int64),
        fixed_at=np.flatnonzero(same < 0),
        traced_at=np.flatnonzero(same >= 0),
        same_as=same[same >= 0],
        leaves=tuple(firsts.items()),
        slots=tuple(slots),
    )
    return StaticGraph(graph.inputs, graph.outputs, graph.nodes, values), numbers


def with_elements(data: Array | None, elements: object) -> Array:
    """An array of traced numbers: numpy computes with it as these do."""
    assert data is not None
    return np.array(elements, object).reshape(data.shape)
