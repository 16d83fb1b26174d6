"""From a graph with a loss to the networks of a training step."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from asmdnn import optim
from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.static import needed
from asmdnn.network.symbols import Symbol
from asmdnn.network.training.attention import recognise_attention
from asmdnn.network.training.forward import SEED, make_trainable
from asmdnn.network.training.options import TrainingOptions
from asmdnn.network.training.rounding import round_initial
from asmdnn.network.training.updates import add_updates, behind_gradients, guarded
from asmdnn.optim.optimizer import Optimizer
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass

LOSS, SUM, GRADIENT = "loss of the step", "sum of gradients of ", "gradient by "


@dataclass(frozen=True, eq=False)
class StepRecipe:
    """What a step's networks are made of.  source: the forward pass; graph: the same as training computes it; loss,
    outputs: names of values; settings: the optimizer of each parameter that is trained."""

    source: Any
    graph: Any
    loss: str
    outputs: Mapping[str, str]
    settings: Mapping[str, Optimizer]
    options: TrainingOptions
    engine: Engine

    @cached_property
    def optimizers(self) -> list[Optimizer]:
        """Each once, in the order of parameters."""
        found = list[Optimizer]()
        for each in self.settings.values():
            if each not in found:
                found.append(each)
        return found

    @cached_property
    def seeds(self) -> list[str]:
        """The inputs that dropout draws by."""
        return [name for name in self.graph._inputs if name.startswith(SEED)]

    def whole(self) -> Any:
        """The network of a step: loss, gradients and updates."""
        graph = self.graph._copy()
        gradients, end = self.gradients(graph), len(graph._nodes)
        add_updates(graph, self.settings, self.optimizers, gradients, self.options)
        graph._nodes = behind_gradients(graph._nodes, end)
        made = guarded(graph, self.loss, gradients) if self.options.check_finite else {}
        return self.network(graph, {LOSS: Symbol(graph, self.loss), **made, **self.wanted(graph)})

    def gathering(self) -> Any:
        """The network that adds gradients to sums, of which a step takes the mean."""
        graph = self.graph._copy()
        gradients, end = self.gradients(graph), len(graph._nodes)
        for name, gradient in zip(self.settings, gradients, strict=True):
            total = graph.state(f"{SUM}{name}", graph.parameters[name])
            graph.update(total, total + gradient * (1 / self.options.accumulate))
        graph._nodes = behind_gradients(graph._nodes, end)
        made = guarded(graph, self.loss, gradients) if self.options.check_finite else {}
        return self.network(graph, {LOSS: Symbol(graph, self.loss), **made, **self.wanted(graph)})

    def forward(self) -> Any:
        """The network of a step's first half, whose results are the gradients."""
        graph = self.graph._copy()
        found = dict(zip(self.settings, self.gradients(graph), strict=True))
        ends = {f"{GRADIENT}{name}": gradient * 1.0 for name, gradient in found.items()}
        return self.network(graph, {LOSS: Symbol(graph, self.loss), **ends, **self.wanted(graph)})

    def updating(self, sums: bool) -> Any:
        """The network of a step's second half.  sums: whether gradients are states, which it leaves as zeros."""
        graph = self.graph._with_parameters([*self.settings])
        found = list[Symbol]()
        for name in self.settings:
            dims = graph.parameters[name]
            found.append(graph.state(f"{SUM}{name}", dims) if sums else graph.input(f"{GRADIENT}{name}", dims))
        add_updates(graph, self.settings, self.optimizers, found, self.options)
        made = guarded(graph, "", found) if self.options.check_finite and not sums else {}
        for name, gradient in zip(self.settings, found if sums else (), strict=False):
            graph.update(gradient, np.zeros(graph.parameters[name], np.float32))
        return self.network(graph, made)

    def gradients(self, graph: Any) -> list[Symbol]:
        values = [Symbol(graph, name) for name in self.settings]
        found: list[Symbol] = list(graph.gradients(Symbol(graph, self.loss), values))
        return found

    def wanted(self, graph: Any) -> dict[str, Symbol]:
        return {name: Symbol(graph, value) for name, value in self.outputs.items()}

    def network(self, graph: Any, ends: Mapping[str, Symbol]) -> Any:
        """Raises InvalidArguments for a network whose dims are not all known."""
        net = graph._network(ends, None, self.engine, None, Precision(self.options.precision, trains=True))
        if net.is_open:
            raise InvalidArguments("an input of the graph has dims that are no numbers: a training step needs them")
        return net


def recipe_of(
    graph: Any, loss: Symbol, outputs: Mapping[str, Symbol], optimizer: Any, options: TrainingOptions, engine: Engine
) -> StepRecipe:
    """graph: a copy, which becomes the step's.  Raises InvalidArguments, Unimplemented."""
    if not isinstance(optimizer, Optimizer):
        near = resembling(optimizer, optim.__all__)
        raise InvalidArguments(
            f"optimizer must be one of dnn.optim, such as AdamW(lr=1e-3), not {shown(optimizer)}{near}"
        )
    if not graph.parameters:
        raise InvalidArguments("the graph has no parameters: make some with graph.parameter(name, shape)")
    settings = optimizer.settings([*graph.parameters])
    if not settings:
        raise InvalidArguments("groups freezes all parameters: leave one to be trained")
    check_reached(graph, loss, [*settings])
    if options.rounding:
        round_initial(graph, [*settings])
    source = graph._copy()
    recognise_attention(graph, [*settings], [loss.name, *(symbol.name for symbol in outputs.values())])
    make_trainable(graph, settings)
    names = {name: symbol.name for name, symbol in outputs.items()}
    return StepRecipe(source, graph, loss.name, names, settings, options=options, engine=engine)


def check_reached(graph: Any, loss: Symbol, names: Sequence[str]) -> None:
    """Raise InvalidArguments for a parameter that the loss does not read."""
    read = {loss.name}.union(*(node.inputs for node in needed(graph.nodes, (loss.name,))))
    for name in names:
        if name not in read:
            raise InvalidArguments(
                f"the loss does not depend on parameter {shown(name)}: use it, or freeze it, groups={{{name!r}: None}}"
            )


def checked_outputs(outputs: Any) -> dict[str, Symbol]:
    """Raises InvalidArguments."""
    if outputs is None:
        return {}
    if not isinstance(outputs, Mapping) or not all(isinstance(name, str) and name for name in outputs):
        raise InvalidArguments(f"outputs must be symbols by name, not {shown(outputs)}")
    if "loss" in outputs:
        raise InvalidArguments("outputs has 'loss', which is the loss itself: call it something else")
    return dict(outputs)
