"""Which axes of values are counted, while a model is folded: their first places count, others are there for the bound.

A node whose operator keeps such places apart (rules.py) is planned as any other.  One that mixes them has dims that
data decide, as it has without a bound: the model is cut there, or the node is refused.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from asmdnn.errors import shown
from asmdnn.network.counted.bounds import is_bounded, without_bound
from asmdnn.network.counted.choosing import Chooser, Chosen, CountedChoice
from asmdnn.network.counted.collecting import FilledPlaces
from asmdnn.network.counted.crossing import crossed
from asmdnn.network.counted.cutting import best, sliced, sliced_to_count, smallest
from asmdnn.network.counted.dims import (
    MOVES_DIMS,
    CountedDims,
    expanding,
    filling,
    moved,
    ranging,
    reshaping,
    seen,
    written,
)
from asmdnn.network.counted.numbers import PlaceNumbers, chooses_along
from asmdnn.network.counted.numbers import moved as moved_numbers
from asmdnn.network.counted.operators import WRITERS, chooses_by
from asmdnn.network.counted.passed import passed_on
from asmdnn.network.counted.putting import SCATTERS, counted_by, scattered
from asmdnn.network.counted.reading import CountedReading
from asmdnn.network.counted.rules import KEEP_ZEROS, RULES
from asmdnn.network.cuts import CountOf
from asmdnn.network.decompositions.words import Sentences
from asmdnn.network.graph import NOTHING, Body, Node, captured
from asmdnn.network.operators.evaluation import raise_own
from asmdnn.network.splitting import DecidedByData
from asmdnn.records import replace

SMALLEST = {"Min", "ReduceMin"}
BY_DIMS = MOVES_DIMS | SMALLEST | {"Shape", "Expand", "ConstantOfShape", "Range", "TopK", "GatherND", *SCATTERS}
GATHERS = {"Gather", "GatherND"}


class CountedAxis(NamedTuple):
    """axis: of a value; choice: what counts its places; is_zero: whether those behind are zeros."""

    axis: int
    choice: CountedChoice
    is_zero: bool


class CountedFolding(Sentences, Protocol):
    """What names values anew, too."""

    def rename(self, name: str, known: str) -> None: ...


def counted_axes(folding: CountedFolding, body: Body) -> "CountedAxes | None":
    """None for a model without bounds."""
    return CountedAxes(folding) if any(map(is_bounded, body.nodes)) else None


class CountedAxes:
    """axes: by value, under the names that folding knows; choices: by the value that chooses; dims: integers of which
    some are a count; places: those of which some number places of a choice, which count where they count themselves;
    crossed: values with two counted axes."""

    def __init__(self, folding: CountedFolding) -> None:
        self.folding = folding
        self.axes: dict[str, CountedAxis] = {}
        self.choices: dict[str, CountedChoice] = {}
        self.dims: dict[str, CountedDims] = {}
        self.places: dict[str, PlaceNumbers] = {}
        self.crossed: dict[str, tuple[CountedAxis, ...]] = {}

    def node(self, node: Node) -> None:
        """Take a node of the model in.  Raises DecidedByData for one that mixes places."""
        inputs = {i: self.axes[name] for i, name in enumerate(node.inputs) if name in self.axes}
        several = [axes for name in node.inputs for axes in self.crossed.get(name, ())]
        inside = [axis for x in captured(node) for axis in self.axes_of(self.folding.known(x))]
        if several and not self.cross(node):
            raise mixing(node, several)
        if several:
            return
        if is_bounded(node):
            if self.folding.values[chooses_by(node)].data is None:
                self.choose(node, inputs)
                return
            node = without_bound(node)
        left = node if inside else self.by_dims(node, inputs)
        if left is None:
            return
        node = left
        if not inputs and not inside:
            self.folding.node(node)
            return
        reading = None if inside else self.reading(node, inputs)
        filled = None if reading is None else passed_on(reading)
        if filled is not None:
            self.compute(node, inputs, filled)
        elif inside or not self.cross(node):
            raise mixing(node, [*inputs.values(), *inside])

    def axes_of(self, name: str) -> tuple[CountedAxis, ...]:
        """All of a value."""
        return (self.axes[name],) if name in self.axes else self.crossed.get(name, ())

    def cross(self, node: Node) -> bool:
        """Whether each counted axis goes through a node by itself; then it is taken in."""
        pairs = [(i, one.axis, one.choice) for i, name in enumerate(node.inputs) for one in self.axes_of(name)]
        found = None if captured(node) else crossed(Chooser(self.folding, node), node, pairs)
        if found is None:
            return False
        known, axes = found
        self.folding.node(known)
        results = tuple(CountedAxis(axis, choice, is_zero=False) for axis, choice in axes.items())
        for name in map(self.folding.known, filter(None, node.outputs)):
            self.axes |= {name: results[0]} if len(results) == 1 else {}
            self.crossed |= {name: results} if len(results) > 1 else {}
        return True

    def by_dims(self, node: Node, inputs: Mapping[int, CountedAxis]) -> Node | None:
        """The node with dims that are known, where a count was among them; None for one that has been taken in."""
        if node.domain or node.op not in BY_DIMS:
            return node
        values = [self.folding.values[name] if name != NOTHING else None for name in node.inputs]
        dims = {i: self.dims[name] for i, name in enumerate(node.inputs) if name in self.dims}
        choices = {one.choice for one in dims.values()} | {one.choice for one in inputs.values()}
        chooser = Chooser(self.folding, node, self.choices)
        try:
            if self.takes_some(node, chooser, inputs, dims):
                return None
            if len(choices) != 1:
                return node
            (choice,) = choices
            if node.op in SMALLEST and dims and not inputs:
                return self.see(node, chooser, smallest(chooser, node, dims))
            if node.op == "Shape" and 0 in inputs:
                return self.see(node, chooser, seen(node, chooser.shape(node.inputs[0]), inputs[0].axis, choice))
            if node.op in MOVES_DIMS and dims and not inputs:
                return self.see(node, chooser, moved(node, values, dims))
            if node.op == "Reshape" and dims.keys() == {1} and 0 in inputs:
                return reshaping(chooser, node, dims[1]) or node
            found = None
            if node.op == "Expand" and dims.keys() == {1}:
                found = expanding(chooser, node, dims[1], inputs[0].axis if 0 in inputs else None)
            elif node.op == "ConstantOfShape" and dims:
                found = filling(chooser, node, dims[0])
            elif node.op == "Range" and dims:
                found = ranging(chooser, node, dims)
        except Exception as error:  # whatever operands that do not fit lead to
            raise_own(error, node, values)
        if found is None:
            return node
        known, axis = found
        self.folding.node(known)
        self.axes[self.folding.known(node.outputs[0])] = CountedAxis(axis, choice, is_zero=False)
        return None

    def takes_some(
        self, node: Node, chooser: Chooser, inputs: Mapping[int, CountedAxis], dims: Mapping[int, CountedDims]
    ) -> bool:
        """Whether it is a node that leaves some of the places that count, or none; then it is taken in."""
        if node.op in SCATTERS and not dims:
            put = scattered(chooser, node, counted_by(inputs))
            if put is not None:
                self.folding.node(put)
            return put is not None
        if node.op == "TopK" and inputs.keys() == {0} and dims.keys() == {1}:
            known = best(chooser, node, *inputs[0][:2], dims[1])
            if known is not None:
                self.take_best(known, inputs[0], dims[1].choice)
            return known is not None
        if node.op == "Slice" and inputs.keys() == {0} and not dims:
            cut = sliced(chooser, node, *inputs[0][:2])
            if cut is not None:
                self.take(node, inputs[0]._replace(choice=cut))
            return cut is not None
        if node.op == "Slice" and dims.keys() == {2} and not inputs:
            to_count = sliced_to_count(chooser, node, dims[2])
            if to_count is not None:
                known, axis, choice = to_count
                self.take(known, CountedAxis(axis, choice, is_zero=False))
            return to_count is not None
        numbers = self.places.get(node.inputs[1]) if inputs.keys() == {0, 1} and node.op in GATHERS else None
        if numbers is not None and numbers.choice == inputs[0].choice:
            is_along = chooses_along(node, len(chooser.shape(node.inputs[0])), inputs[0].axis, numbers)
            before = inputs[0].axis if node.op == "Gather" else 0
            if is_along:
                self.take(node, inputs[1]._replace(axis=before + inputs[1].axis, is_zero=False))
            return is_along
        return False

    def take(self, node: Node, found: CountedAxis) -> None:
        """Take a node in, all of whose results are counted so."""
        self.folding.node(node)
        self.number(node)
        for name in node.outputs:
            if name != NOTHING:
                self.axes[self.folding.known(name)] = found

    def take_best(self, node: Node, given: CountedAxis, choice: CountedChoice) -> None:
        """Take a TopK in, of some of the places that count; what it says of where they are may be gathered by."""
        self.take(node, CountedAxis(given.axis, choice, is_zero=False))
        if len(node.outputs) > 1 and node.outputs[1] != NOTHING and len(self.folding.values[node.inputs[0]].shape) == 1:
            name = self.folding.known(node.outputs[1])
            self.places[name] = PlaceNumbers(np.ones(self.folding.values[name].shape, bool), given.choice)

    def see(self, node: Node, chooser: Chooser, dims: CountedDims | None) -> Node | None:
        """Take a node in that makes dims; the node itself if data decide others."""
        if dims is None:
            return node
        name = written(chooser, dims)
        self.folding.rename(node.outputs[0], name)
        if dims.is_total.any():
            self.dims[name] = dims
        return None

    def compute(self, node: Node, inputs: Mapping[int, CountedAxis], filled: FilledPlaces) -> None:
        """Take a node in whose operands have such numbers in the places that do not count."""
        names, chooser, choice = list(node.inputs), Chooser(self.folding, node), next(iter(inputs.values())).choice
        for i, number in filled.numbers.items():
            if i in inputs and not (number == 0 and inputs[i].is_zero):
                names[i] = chooser.filled(names[i], inputs[i].axis, choice, number)
        node = node if names == [*node.inputs] else replace(node, inputs=tuple(names))
        if filled.axis is None and node.op == "ReduceMean":
            self.folding.rename(node.outputs[0], chooser.mean(node, choice))
            return
        self.folding.node(node)
        self.number(node)
        is_zero = node.op in KEEP_ZEROS and all(one.is_zero for one in inputs.values())
        for name in node.outputs:
            if name != NOTHING and filled.axis is not None:
                self.axes[self.folding.known(name)] = CountedAxis(filled.axis, choice, is_zero)

    def note_places(self, name: str, column: int | None, inputs: Mapping[int, CountedAxis]) -> None:
        """Of a result whose column numbers what is counted of the operands."""
        if column is not None:
            is_place = np.zeros(self.folding.values[name].shape, bool)
            is_place[..., column] = True
            self.places[name] = PlaceNumbers(is_place, next(iter(inputs.values())).choice)

    def number(self, node: Node) -> None:
        """Note which results number places, after a node that may have moved such numbers."""
        given = {i: self.places[name] for i, name in enumerate(node.inputs) if name in self.places}
        values = [self.folding.values[name] if name != NOTHING else None for name in node.inputs]
        for name, numbers in zip(node.outputs, moved_numbers(node, values, given), strict=False):
            if name != NOTHING:
                self.places[self.folding.known(name)] = numbers

    def reading(self, node: Node, inputs: Mapping[int, CountedAxis]) -> CountedReading | None:
        """None where no rule may hold."""
        if node.domain or node.op not in RULES or len({one.choice for one in inputs.values()}) > 1:
            return None
        values = [self.folding.values[name] if name != NOTHING else None for name in node.inputs]
        return CountedReading(node, values, {i: one.axis for i, one in inputs.items()})

    def choose(self, node: Node, inputs: Mapping[int, CountedAxis]) -> None:
        """Take a node with a bound in."""
        found: Chosen | None = None
        if len({one.choice for one in inputs.values()}) < 2:
            chooser = Chooser(self.folding, node, self.choices)
            try:
                found = WRITERS[node.op](chooser, node, counted_by(inputs))
            except Exception as error:  # whatever operands that do not fit lead to
                raise_own(error, node, [self.folding.values[name] for name in node.inputs])
        if found is None:
            raise mixing(node, [*inputs.values()])
        for name, result in zip(node.outputs, found.results, strict=False):
            if name != NOTHING:
                self.folding.rename(name, result.name)
                if result.axis is not None and found.choice is not None:
                    self.axes[result.name] = CountedAxis(result.axis, found.choice, result.is_zero)
                    self.note_places(result.name, result.numbers, inputs)

    def counts(self, outputs: Mapping[str, str]) -> dict[str, str]:
        """What counts places of outputs, as further outputs.  outputs: values by name."""
        known = [(name, axis) for name, value in outputs.items() for axis in self.axes_of(value)]
        return {CountOf(name, one.axis, one.choice.of): one.choice.total for name, one in known}


def mixing(node: Node, counted: Sequence[CountedAxis]) -> DecidedByData:
    """What is raised for a node that mixes places."""
    of = shown(counted[0].choice.of)
    return DecidedByData(
        f"{node} mixes places of {of} that count with others, which bounds has there: leave {of} out of bounds, or "
        "load the model with fallback='numpy'"
    )
