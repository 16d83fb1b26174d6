"""What rounding does to each product by itself: a network with every product twice, of f32 and of rounded operands.

From it come the order in which products are given back to f32, and what a bias takes: the mean of each channel's
difference, which Nagel et al., Data-free quantization through weight equalization and bias correction, 2019, subtract.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.network.graph import Array, Body, Node
from asmdnn.network.static_qdq.qdq import QdqWriter
from asmdnn.network.static_qdq.ranges import ByteNumbers
from asmdnn.network.static_qdq.roles import Roles
from asmdnn.records import dataclass, field, replace


@dataclass
class ProbedStep:
    """Of a product: sums of squares of its results and of their differences, and of the differences by channel."""

    squares: float = 0.0
    error: float = 0.0
    means: list[Array] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The root mean square of the difference over that of the result."""
        return float(np.sqrt(self.error / self.squares)) if self.squares else 0.0


class Probe(QdqWriter):
    """body: f32, and for each product four results: names by product, in `results`."""

    def __init__(self, roles: Roles, opset: int, numbers: Mapping[str, ByteNumbers], most: int) -> None:
        super().__init__(roles, opset, numbers, {}, most)
        self.results: dict[str, tuple[str, ...]] = {}

    def body_of_both(self) -> Body:
        for name in self.given.inputs:
            self.store(name)
        for node in self.given.nodes:
            self.nodes.append(node)
            if id(node) in self.roles.products:
                self.compare(node)
            for name in node.outputs:
                self.store(name)
        outputs = tuple(name for names in self.results.values() for name in names)
        return replace(self.body_with(outputs), outputs=outputs)

    def body_with(self, outputs: Sequence[str]) -> Body:
        self.given = replace(self.given, outputs=tuple(outputs))
        return self.body()

    def compare(self, node: Node) -> None:
        y = node.outputs[0]
        own = self.fresh(f"{y} rounded")
        x = node.inputs[0]
        rounded = replace(node, inputs=(self.floats[x], *node.inputs[1:]), outputs=(own,), name="")
        self.nodes.append(self.product(rounded, x))
        (difference,) = self.add("Sub", (own, y), (f"{y} difference",))
        found = [self.mean_square(name) for name in (y, difference)]
        if node.op == "Conv":
            found += self.add("GlobalAveragePool", (difference,), (f"{y} by channel",))
        elif node.op == "Gemm":
            found.append(difference)
        self.results[y] = tuple(found)

    def mean_square(self, name: str) -> str:
        squared = self.add("Mul", (name, name), (f"{name} squared",))
        return self.add("ReduceMean", squared, (f"{name} square",), keepdims=0)[0]


def collect(steps: dict[str, ProbedStep], results: Mapping[str, tuple[str, ...]], found: Mapping[str, Any]) -> None:
    """Add what a run of the probe says."""
    for name, (squares, error, *means) in results.items():
        step = steps.setdefault(name, ProbedStep())
        step.squares += float(found[squares])
        step.error += float(found[error])
        for mean in means:
            array = np.asarray(found[mean], np.float64)
            step.means.append(array.mean(axis=tuple(i for i in range(array.ndim) if i != 1)))


def corrections(steps: Mapping[str, ProbedStep]) -> dict[str, Array]:
    """What each bias takes, by product."""
    return {name: -np.mean(step.means, axis=0) for name, step in steps.items() if step.means}
