"""The second half of a training step: what becomes of parameters and of all that an optimizer keeps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.network.graph import Node
from asmdnn.network.operators.own import OWN
from asmdnn.network.symbols import Symbol
from asmdnn.network.training.options import TrainingOptions
from asmdnn.network.training.rounding import RandomRounding
from asmdnn.optim.optimizer import Optimizer
from asmdnn.records import dataclass, replace

NUMBERS, AVERAGE, SIZE = "numbers of the step", "average of ", "squares of all gradients"


@dataclass(frozen=True, eq=False)
class UpdatedParameter:
    """A parameter as an optimizer's rule sees it: `asmdnn.optim.optimizer.Updating`."""

    graph: Any
    name: str
    dims: tuple[int, ...]
    value: Symbol
    gradient: Symbol
    numbers: Sequence[Symbol]

    def state(self, name: str) -> Symbol:
        made: Symbol = self.graph.state(f"{name} of {self.name}", self.dims)
        return made

    def update(self, state: Symbol, value: Symbol) -> Symbol:
        became: Symbol = self.graph.update(state, value)
        return became

    def apply(self, op: str, *operands: Any) -> Symbol:
        made: Symbol = self.graph.single(op, *operands)
        return made

    def map(self, function: Callable[..., Any], *operands: Any) -> Symbol:
        made: Symbol = self.graph.map(function, *operands)
        return made


def add_updates(
    graph: Any,
    settings: Mapping[str, Optimizer],
    optimizers: Sequence[Optimizer],
    gradients: Sequence[Symbol],
    options: TrainingOptions,
) -> None:
    """Add the optimizers' rules to a graph.  settings: the optimizer of each parameter, in the order of gradients."""
    if options.clip_norm is not None:
        gradients = clipped(graph, gradients, sum_of_squares(graph, gradients), options.clip_norm)
    numbers, rounding = numbers_of(graph, optimizers), RandomRounding(graph) if options.rounding else None
    for (name, each), gradient in zip(settings.items(), gradients, strict=True):
        mine, dims, value = numbers[optimizers.index(each)], graph.parameters[name], Symbol(graph, name)
        p = UpdatedParameter(graph, name, dims, value=value, gradient=gradient, numbers=mine)
        moved = each.moved(p)
        became = graph.update(value, moved if rounding is None else rounding.rounded(moved, dims))
        if options.ema is not None:
            average = graph.state(f"{AVERAGE}{name}", dims, initial=graph._states[name].initial)
            graph.update(average, graph.map(averaging(options.ema), average, became))


def averaging(kept: float) -> Callable[[Any, Any], Any]:
    """The function of an average and of what it takes a share of."""

    def moved(average: Any, value: Any) -> Any:
        return kept * average + (1 - kept) * value

    return moved


def sum_of_squares(graph: Any, gradients: Sequence[Symbol]) -> Symbol:
    """f32[1]."""
    squares = [graph.single("ReduceSumSquare", gradient) for gradient in gradients]
    total, *rest = [graph.apply("Reshape", square, np.array([1])) for square in squares]
    for square in rest:
        total = total + square
    found: Symbol = total
    return found


def clipped(graph: Any, gradients: Sequence[Symbol], total: Symbol, most: float) -> list[Symbol]:
    """Gradients times most / norm, where the Euclidean norm of all together is more (Pascanu et al., 2013)."""
    share = graph.apply("Squeeze", most / graph.apply("Max", graph.apply("Sqrt", total), most))
    return [gradient * share for gradient in gradients]


def guarded(graph: Any, loss: str, gradients: Sequence[Symbol]) -> dict[str, Symbol]:
    """Have the graph write no state where the loss or a gradient is not finite: states become what they were.

    Returns what is finite if they are, as an output."""
    size = sum_of_squares(graph, gradients)
    if loss:
        size = size + graph.apply("Reshape", graph.apply("Abs", Symbol(graph, loss)), np.array([1]))
    fits = graph.apply("Squeeze", graph.apply("Less", size, np.float32(np.inf)))
    nodes, written = list[Node](), list[Node]()
    for node in graph._nodes:
        (written if node.op == "Written" and node.domain == OWN and not node.get("now") else nodes).append(node)
    graph._nodes = nodes
    for node in written:
        (source,) = node.inputs
        kept = graph.apply("Where", fits, Symbol(graph, source), Symbol(graph, node.get("state")))
        graph._nodes.append(replace(node, inputs=(kept.name,)))
    return {SIZE: size}


def numbers_of(graph: Any, optimizers: Sequence[Optimizer]) -> list[list[Symbol]]:
    """For each optimizer its numbers, which lie one after the other in one input."""
    counts = [len(optimizer.numbers(1)) for optimizer in optimizers]
    numbers, found = graph.input(NUMBERS, (sum(counts),)), list[list[Symbol]]()
    for i, count in enumerate(counts):
        start = sum(counts[:i])
        found.append([element(graph, numbers, start + j) for j in range(count)])
    return found


def element(graph: Any, vector: Symbol, at: int) -> Symbol:
    made: Symbol = graph.apply("Squeeze", graph.apply("Slice", vector, np.array([at]), np.array([at + 1])))
    return made


def behind_gradients(nodes: Sequence[Node], start: int) -> list[Node]:
    """The nodes with those from `start` on behind what they read, so that each gradient is done with at once."""
    places, order = {name: i for i, node in enumerate(nodes[:start]) for name in node.outputs}, list[tuple[int, int]]()
    for i, node in enumerate(nodes[start:], start):
        place = max((places[name] for name in node.inputs if name in places), default=0)
        places |= dict.fromkeys(node.outputs, place)
        order.append((place, i))
    found = sorted([*((i, i) for i in range(start)), *order])
    return [nodes[i] for _, i in found]
