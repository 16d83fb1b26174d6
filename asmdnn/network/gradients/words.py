"""What a rule is written with: nodes after a graph's own, whose values have known dims."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.declaring import shape_of
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.folding.folding import Folding
from asmdnn.network.folding.prepared import prepared
from asmdnn.network.gradients.asked import AskedNode
from asmdnn.network.graph import NOTHING, Array, Body, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.own import OWN

Add = Callable[[Node], None]
AddConstant = Callable[[str, Array], None]


def is_float(dtype: np.dtype[Any]) -> bool:
    """Of whatever size, those of ml_dtypes too."""
    return "float" in dtype.name


class KnownGraph:
    """A graph's nodes as they come, and what is known of their values: rules' Sentences.

    add, add_constant: put a node and a constant into the graph itself; made: the nodes that came.
    """

    def __init__(self, body: Body, add: Add, add_constant: AddConstant) -> None:
        self.add, self.add_constant, self.made = add, add_constant, list[Node]()
        self._folding = Folding(prepared(body))
        for name, declared in body.inputs.items():
            self._folding.values[name] = Value(shape_of(name, declared, None), declared.dtype)
        self._folding.add_all()
        self.values: dict[str, Value] = KnownValues(self._folding)
        self.kept_integers = set[str]()

    def node(self, node: Node) -> None:
        self.add(node)
        self.made.append(node)
        self._folding.node(self._folding.with_known_names(node))

    def known(self, name: str) -> str:
        """The graph's own name: what folding calls it is for planning alone."""
        return name

    def inlined(self, body: Body, inputs: Mapping[str, str]) -> list[str]:
        """Rules have no bodies."""
        raise NotImplementedError

    def maker(self, name: str) -> Node | None:
        """None: what lies where is found out when the whole graph is planned."""
        return None

    def constant(self, name: str, data: Array) -> str:
        data = np.array(data)
        data.setflags(write=False)
        self.add_constant(name, data)
        return self._folding.constant(name, data)


class KnownValues(dict[str, Value]):
    """Of names as the graph has them."""

    def __init__(self, folding: Folding) -> None:
        super().__init__()
        self.folding = folding

    def __missing__(self, name: str) -> Value:
        return self.folding.values[self.folding.known(name)]


class GradientWords(Decomposer):
    """Words of the rule of one node; `number`s names in all rules of a graph.  asked: the node in refusals, which the
    user has written."""

    def __init__(self, known: KnownGraph, node: Node, numbers: "count[int]", asked: AskedNode) -> None:
        super().__init__(known, node)
        self.numbers, self.asked = numbers, asked

    def no_gradient(self, reason: str) -> Unimplemented:
        return self.asked.refused(reason)

    def name(self, what: str) -> str:
        return f"gradient of {self.prefix}/{what} {next(self.numbers)}"

    def own(self, op: str, *inputs: str, results: int = 1, **attributes: Any) -> tuple[str, ...]:
        """The results of one of the library's own operators."""
        return self.results(op, inputs, results, OWN, **attributes)

    def summed_to(self, d: str, shape: Sequence[int]) -> str:
        """The gradient by an operand of these dims that was broadcast to d's."""
        dims, shape = self.shape(d), tuple(shape)
        lead = len(dims) - len(shape)
        axes = [i for i, n in enumerate(dims) if i < lead or (shape[i - lead] == 1 and n != 1)]
        if axes:
            d = self.reduced("ReduceSum", d, *axes)
        return self.reshaped(d, *shape)

    def reshaped(self, x: str, *dims: int) -> str:
        """Scalars too, which have no dims to be said."""
        return x if self.shape(x) == dims else self("Reshape", x, self.constant(dims, np.int64))

    def sum_of(self, parts: Sequence[str]) -> str:
        """In the order that they have."""
        total, *others = parts
        for part in others:
            total = self.add(total, part)
        return total

    def greater(self, a: str, b: float) -> str:
        return self("Greater", a, self.constant(b))

    def data_of(self, node: Node, i: int) -> Array | None:
        """The constant that an input is; None if it is left out or none."""
        return self.data(node.inputs[i]) if i < len(node.inputs) and node.inputs[i] != NOTHING else None
