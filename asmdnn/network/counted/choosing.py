"""Places of a vector of truths: numbers by a running sum, moves by a scatter, and a count that every call looks at.

    number = CumSum(chosen) - 1,    at[number[i]] = i where chosen[i],    count = sum(chosen)

Who comes after the bound, and who is not chosen, goes to a further place that is cut off.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.network.decompositions.indexing import MOST_PLACES
from asmdnn.network.decompositions.words import OPSET, Decomposer, Sentences
from asmdnn.network.graph import Node
from asmdnn.network.limits import COUNTED
from asmdnn.network.operators.own import OWN
from asmdnn.records import replace

INT64 = 7  # ONNX's number


class CountedChoice(NamedTuple):
    """at: i64[most], the chosen places, zeros after the last one; total: how many, i64[1]; of: the value that has the
    bound."""

    at: str
    total: str
    most: int
    of: str


class ChosenResult(NamedTuple):
    """A result of a node with a bound.  axis: that is counted; is_zero: whether zeros are behind what counts; numbers:
    the column that has numbers of counted operands' places."""

    name: str
    axis: int | None = None
    is_zero: bool = False
    numbers: int | None = None


class Chosen(NamedTuple):
    """What a node with a bound makes; without a choice nothing is counted."""

    choice: CountedChoice | None
    results: Sequence[ChosenResult]


class Chooser(Decomposer):
    """Nodes in the place of one that has a bound, or in front of one that reads what is counted.  choices: by what
    chooses, so that those who choose by one value have one count."""

    def __init__(self, folding: Sentences, node: Node, choices: dict[str, CountedChoice] | None = None) -> None:
        super().__init__(folding, node)
        self.result, self.choices = self.prefix, {} if choices is None else choices
        self.prefix = f"{self.prefix}, counted"

    def choice(self, by: str, is_chosen: str) -> CountedChoice:
        """Of truths, bool[size].  by: what chooses.  Raises InvalidArguments for two bounds of one count."""
        (size,) = self.shape(is_chosen)
        most, of = min(self.node.get("most"), size), self.node.get("bound")
        known = self.choices.get(by)
        if known is None:
            known = self.choices[by] = self.new_choice(is_chosen, most, of)
        if known.most != most:
            both = f"{known.most} to {known.of!r} and {most} to {of!r}"
            raise InvalidArguments(f"bounds gives {both}, which have one count: give them one bound")
        return known

    def new_choice(self, is_chosen: str, most: int, of: str) -> CountedChoice:
        """Raises Unimplemented for more places than kernels count."""
        (size,) = self.shape(is_chosen)
        if size > MOST_PLACES:
            why = f"{self.node} chooses among {size} places, a bound is for {MOST_PLACES} at most"
            raise Unimplemented(f"{why}: leave it out of bounds, and load the model with fallback='numpy'")
        ones = self("Cast", is_chosen, to=INT64)
        number = self("Clip", self.numbered(ones), self.integers(0), self.integers(most))
        to = self("Where", is_chosen, number, self.integers(most))
        found = self.put(to, self.integers(np.arange(size)), most + 1)
        count = self.reduced("ReduceSum", ones, 0)
        looked_at = self("Index", count, domain=OWN, limit=most + 1, least=0, axis=COUNTED, of=repr(of))
        return CountedChoice(self.part(found, 0, 0, most), looked_at, most, of)

    def first_of(self, choice: CountedChoice, most: int) -> CountedChoice:
        """The first places of a choice, so many at most; what asks again gets the same one."""
        if most >= choice.most:
            return choice
        by = f"the first {most} of {choice.total}"
        if by not in self.choices:
            total = self("Min", choice.total, self.integers(most))
            self.choices[by] = CountedChoice(self.part(choice.at, 0, 0, most), total, most, choice.of)
        return self.choices[by]

    def numbered(self, ones: str) -> str:
        """How many ones are before each one."""
        return self("Sub", self("CumSum", ones, self.integers(0)), self.integers(1))

    def put(self, to: str, x: str, room: int, reduction: str = "none") -> str:
        """Integers at places, which all are below `room`: i64[room], zeros elsewhere."""
        nowhere, rows = self.integers(np.zeros((room, 1))), self.lifted(x, 1)
        return self.reshaped(self("ScatterRows", nowhere, to, rows, domain=OWN, reduction=reduction), room)

    def coordinate(self, at: str, dims: Sequence[int], axis: int) -> str:
        """Along an axis, of numbers of elements."""
        step = prod(dims[axis + 1 :])
        row = at if step == 1 else self("Div", at, self.integers(step))
        row = row if axis == 0 else self("Mod", row, self.integers(dims[axis]))
        return self("Min", row, self.integers(dims[axis] - 1))  # which it is: so no call looks whether it fits

    def mean(self, node: Node, choice: CountedChoice) -> str:
        """That of a node whose operand has zeros in the places that do not count."""
        name = self.name(node.op)
        self.folding.node(replace(node, outputs=(name,)))
        found = self.folding.known(name)
        total = self("CastLike", self.reshaped(choice.total), found)
        return self("Mul", found, self("Div", self.like(found, choice.most), total))

    def integers(self, data: Any) -> str:
        return self.constant(data, np.int64)

    def filled(self, x: str, axis: int, choice: CountedChoice, number: float = 0) -> str:
        """A value with this number in the places that do not count; of truths false."""
        value = self.value(x)
        places = np.arange(choice.most).reshape(-1, *[1] * (len(value.shape) - 1 - axis))
        counts = self("Less", self.integers(places), choice.total)
        op, inputs = ("And", (x, counts)) if value.dtype == np.bool_ else ("Where", (counts, x, self.like(x, number)))
        return self.named(x, op, *inputs)

    def named(self, x: str, op: str, *inputs: str) -> str:
        """The result of a node that stands for a value, by a name that messages about indices may have."""
        said = f"{x}, counted for {self.result}"
        if said not in self.folding.values:
            self.folding.node(Node(op, inputs, (said,), {}, opset=OPSET))
        return said
