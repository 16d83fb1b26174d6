"""The part of a graph that learns: parameters, gradients, training steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.forking import importing
from asmdnn.network.declaring import declared
from asmdnn.network.graph import Array, Body, Node, TensorType
from asmdnn.network.states import NetworkState
from asmdnn.network.symbols import Symbol
from asmdnn.primitives.core.engine import Engine, engine_or_default

if TYPE_CHECKING:
    from asmdnn.network.training.step import TrainingStep


class LearnsParameters:
    """What Graph has of parameters."""

    name: str
    seed: int
    _inputs: dict[str, TensorType]
    _constants: dict[str, Array]
    _nodes: list[Node]
    _states: dict[str, NetworkState]
    _parameters: dict[str, tuple[int, ...]]
    _written: dict[str, str]
    _ends: tuple[str, ...]

    if TYPE_CHECKING:

        def state(
            self, name: str, shape: Sequence[int], dtype: Any = ..., initial: Any = ..., trainable: bool = ...
        ) -> Symbol: ...
        def _check_own(self, outputs: Mapping[str, Any]) -> None: ...
        def _copy(self) -> Any: ...

    @classmethod
    def from_onnx(cls, path: Any, shapes: Any = None, train: Any = ()) -> Any:
        """A graph of the nodes in an ONNX file, or in its bytes, to go on from.

        shapes: dims of inputs by name, which gradients need; train: patterns of names (as the shell has them): f32
        weights that match are parameters, as "head.*".  `outputs` are symbols of the file's, `value` of any name in it.
        Raises InvalidArguments for what is no intact model, and for patterns that no weight matches.
        """
        with importing():
            from asmdnn.network.training.tuning import fill_from

        graph = cls()
        fill_from(graph, path, shapes, train)
        return graph

    @property
    def outputs(self) -> dict[str, Symbol]:
        """Of a graph from a file: its outputs by name."""
        return {name: Symbol(self, name) for name in self._ends}

    def value(self, name: str) -> Symbol:
        """A value by its name, as a file has it: an input, a weight, a node's result.  Raises InvalidArguments."""
        made = (output for node in self._nodes for output in node.outputs if output)
        known = [*self._inputs, *self._constants, *made]
        if not isinstance(name, str) or name not in known:
            raise InvalidArguments(f"{shown(name)} is no value of the graph: {did_you_mean(shown(name), known)}")
        return Symbol(self, name)

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """The dims of its parameters by name."""
        return dict(self._parameters)

    def parameter(self, name: str, shape: Sequence[int], init: Any = "he_normal") -> Symbol:
        """A state that `train` learns, `state` with `trainable`, by a word for its initial values.

        init: an array, a number, or a word: zeros, ones, and he, glorot or lecun with _normal or _uniform, which count
        the first of two dims as inputs, as `x @ w` reads them, and the first of more as outputs, as Conv does.  Raises
        InvalidArguments.
        """
        if isinstance(init, str):
            with importing():
                from asmdnn.network.training.initial import drawn

            shape = declared(name, shape, np.float32).shape  # type: ignore[assignment]
            init = drawn(name, shape, init, self.seed)  # type: ignore[arg-type]
        return self.state(name, shape, initial=init, trainable=True)

    def gradients(self, loss: Symbol, wrt: Sequence[Symbol]) -> tuple[Symbol, ...]:
        """The gradients of a loss, one number of f32, by values that it depends on: symbols, each of its value's dims.

        Dims of inputs must be fixed.  Raises InvalidArguments for what is no loss, or does not depend on a value;
        Unimplemented for operators between them that have no rule (docs/gradients.md).
        """
        with importing():
            from asmdnn.network.gradients.backwards import Origin
            from asmdnn.network.gradients.of_graph import gradient_nodes, symbols_of

        values = symbols_of(wrt)
        self._check_own({"loss": loss})
        self._check_own({f"wrt[{i}]": symbol for i, symbol in enumerate(values)})
        body = Body(self.name, self._inputs, (), tuple(self._nodes), self._constants)
        origin = Origin(self._written, self.parameters)
        names, made, constants = gradient_nodes(body, loss.name, [symbol.name for symbol in values], origin)
        self._nodes += made
        self._constants |= constants
        return tuple(Symbol(self, name) for name in names)

    def train(
        self,
        loss: Symbol,
        optimizer: Any,
        outputs: Mapping[str, Symbol] | None = None,
        *,
        clip_norm: float | None = None,
        accumulate: int = 1,
        ema: float | None = None,
        check_finite: bool = False,
        precision: str = "f32",
        rounding: str | None = None,
        memory_limit: int | None = None,
        checkpoints: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> "TrainingStep":
        """A step that computes the loss and its gradients and moves all parameters, as one native call.

        optimizer: of `dnn.optim`; outputs: what `step.run` returns beside the loss; clip_norm: the most that the
        Euclidean norm of all gradients together may be; accumulate: how many calls' mean gradient makes a step; ema:
        how much an exponential average of each parameter keeps of itself, such as 0.999; check_finite: whether a step
        whose loss or gradients are not finite raises InvalidArguments and changes nothing; precision: "bf16" rounds
        what matrix products and convolutions multiply where that is expected to be faster, and the CPU has such
        products: sums, all other values, and parameters stay f32; rounding: with that precision, "stochastic" has
        parameters be numbers of bf16, which each step rounds at random so that small changes add up; memory_limit: the
        most bytes that a call may take beside inputs, outputs and states: as much of the forward pass is made again for
        the gradients as that needs, without a limit only what costs next to nothing; checkpoints: names of nodes, or
        patterns (fnmatch): what lies between their results is made again, always, or where the limit asks for it.  The
        graph stays as it is: each step has parameters of its own.  Raises InvalidArguments, Unimplemented for operators
        without a gradient.
        """
        with importing():
            from asmdnn.network.training.networks import StepNetworks
            from asmdnn.network.training.options import checked_options, with_memory
            from asmdnn.network.training.recipe import checked_outputs, recipe_of
            from asmdnn.network.training.step import TrainingStep

        found = {"loss": loss, **checked_outputs(outputs)}
        self._check_own(found)
        copy: Any = self._copy()
        own = {name: Symbol(copy, symbol.name) for name, symbol in found.items()}
        options = checked_options(clip_norm, accumulate, ema, check_finite, precision, rounding)
        options = with_memory(options, memory_limit, checkpoints, self._nodes)
        recipe = recipe_of(copy, own.pop("loss"), own, optimizer, options, engine_or_default(engine))
        return TrainingStep(recipe, StepNetworks(recipe))

    def _learned(self, values: Any, wanted: Sequence[str]) -> Any:
        """A copy with these values as constants, and the inputs that what is wanted needs.  Raises InvalidArguments."""
        with importing():
            from asmdnn.network.training.learned import with_values
            from asmdnn.network.training.step import TrainingStep

        return with_values(self, values.state_dict() if isinstance(values, TrainingStep) else values, wanted)

    def _with_parameters(self, names: Sequence[str]) -> Any:
        """A graph of these parameters alone."""
        made: Any = type(self)()
        made.name, made.seed = self.name, self.seed
        for name in names:
            made.parameter(name, self._parameters[name], self._states[name].initial)
        return made
