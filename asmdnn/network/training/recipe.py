"""From a graph with a loss to a training step: gradients, clipping, and the optimizer's rule for each parameter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.static import needed
from asmdnn.network.symbols import Symbol
from asmdnn.network.training.step import LOSS, NUMBERS, TrainingStep
from asmdnn.optim.checks import number
from asmdnn.optim.optimizer import Optimizer


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


def step_of(graph: Any, loss: Symbol, optimizer: Any, clip_norm: Any) -> tuple[Mapping[str, Symbol], list[Optimizer]]:
    """Add to a graph what trains it.  Returns its loss, as an output, and the optimizers whose numbers it reads.

    Raises InvalidArguments, Unimplemented.
    """
    dims: dict[str, tuple[int, ...]] = graph.parameters
    if not isinstance(optimizer, Optimizer):
        raise InvalidArguments(f"optimizer must be one of dnn.optim, such as AdamW(lr=1e-3), not {shown(optimizer)}")
    if not dims:
        raise InvalidArguments("the graph has no parameters: make some with graph.parameter(name, shape)")
    settings = optimizer.settings([*dims])
    if not settings:
        raise InvalidArguments("groups freezes all parameters: leave one to be trained")
    check_reached(graph, loss, [*settings])
    values = [Symbol(graph, name) for name in settings]
    gradients = graph.gradients(loss, values)
    if clip_norm is not None:
        gradients = clipped(graph, gradients, number("clip_norm", clip_norm))
    optimizers = list[Optimizer]()
    for each in settings.values():
        if each not in optimizers:
            optimizers.append(each)
    numbers = numbers_of(graph, optimizers)
    for (name, each), value, gradient in zip(settings.items(), values, gradients, strict=True):
        mine = numbers[optimizers.index(each)]
        p = UpdatedParameter(graph, name, dims[name], value=value, gradient=gradient, numbers=mine)
        graph.update(value, each.moved(p))
    return {LOSS: loss}, optimizers


def check_reached(graph: Any, loss: Symbol, names: Sequence[str]) -> None:
    """Raise InvalidArguments for a parameter that the loss does not read."""
    if not isinstance(loss, Symbol) or loss.graph is not graph:
        return  # graph.gradients says what is wrong
    read = {loss.name}.union(*(node.inputs for node in needed(graph.nodes, (loss.name,))))
    for name in names:
        if name not in read:
            raise InvalidArguments(
                f"the loss does not depend on parameter {shown(name)}: use it, or freeze it, groups={{{name!r}: None}}"
            )


def clipped(graph: Any, gradients: Sequence[Symbol], most: float) -> list[Symbol]:
    """Gradients times most / norm, where the Euclidean norm of all together is more (Pascanu et al., 2013)."""
    if most == 0:
        raise InvalidArguments("clip_norm must be more than 0: with it no parameter would change")
    squares = [graph.single("ReduceSumSquare", gradient) for gradient in gradients]
    flat = [graph.apply("Reshape", square, np.array([1])) for square in squares]
    total = flat[0]
    for square in flat[1:]:
        total = total + square
    share = graph.apply("Squeeze", most / graph.apply("Max", graph.apply("Sqrt", total), most))
    return [gradient * share for gradient in gradients]


def numbers_of(graph: Any, optimizers: Sequence[Optimizer]) -> list[list[Symbol]]:
    """For each optimizer its numbers, which lie one behind the other in one input."""
    counts = [len(optimizer.numbers(1)) for optimizer in optimizers]
    numbers, found = graph.input(NUMBERS, (sum(counts),)), list[list[Symbol]]()
    for i, count in enumerate(counts):
        start = sum(counts[:i])
        found.append([element(graph, numbers, start + j) for j in range(count)])
    return found


def element(graph: Any, vector: Symbol, at: int) -> Symbol:
    made: Symbol = graph.apply("Squeeze", graph.apply("Slice", vector, np.array([at]), np.array([at + 1])))
    return made


def checked_outputs(outputs: Any) -> dict[str, Symbol]:
    """Raises InvalidArguments."""
    if outputs is None:
        return {}
    if not isinstance(outputs, Mapping) or not all(isinstance(name, str) and name for name in outputs):
        raise InvalidArguments(f"outputs must be symbols by name, not {shown(outputs)}")
    if "loss" in outputs:
        raise InvalidArguments("outputs has 'loss', which is the loss itself: call it something else")
    return dict(outputs)


def made_step(net: Any, optimizers: Sequence[Optimizer], names: Sequence[str]) -> TrainingStep:
    """Raises InvalidArguments for a network whose dims are not all known."""
    if net.is_open:
        raise InvalidArguments("an input of the graph has dims that are no numbers: a training step needs them")
    return TrainingStep(net, optimizers, names)
