"""A training step: one native call, which reads and writes parameters and an optimizer's moments in place."""

from collections.abc import Callable, Mapping
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.forking import importing
from asmdnn.memory.allocation import within_memory
from asmdnn.network.arrays import Array
from asmdnn.network.calls.in_place import PlacedNetworks
from asmdnn.network.inputs import OTHER_DIMS, as_input, check_feeds, check_named
from asmdnn.network.training.counts import CALLS, START, Counts, counts_from, names_of_counts
from asmdnn.network.training.networks import StepNetworks
from asmdnn.network.training.own_inputs import OwnInputs
from asmdnn.network.training.parameters import Parameters
from asmdnn.network.training.recipe import GRADIENT, LOSS, SUM, StepRecipe
from asmdnn.network.training.state_files import of_bits, read_state, write_state
from asmdnn.network.training.uninterrupted import Uninterrupted
from asmdnn.network.training.updates import AVERAGE, SIZE
from asmdnn.records import replace

F32 = np.dtype(np.float32)
Arrays = Mapping[str, Array]
Inputs = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]


class TrainingStep:
    """What `Graph.train` makes.  One call is one step: a loss, its gradients, and the update of all parameters.

    One call at a time: a second one from another thread raises InvalidArguments.  Equal bits for every number of
    threads of the engine.  recipe: what its networks are made of; nets: those; counts: how far it is.
    """

    def __init__(self, recipe: StepRecipe, nets: StepNetworks, counts: Counts = START) -> None:
        self._recipe, self._nets, self._counts = recipe, nets, counts
        self._states = nets.states()
        self._own = OwnInputs(recipe.optimizers, recipe.seeds, recipe.graph.seed, bool(recipe.options.rounding))
        self._placed = PlacedNetworks(self._states, self._own.arrays)
        self.parameters = Parameters(self._states, recipe.graph.parameters)

    def __repr__(self) -> str:
        return f"<TrainingStep of {', '.join(self.parameters)} after {self.steps} steps>"

    def __copy__(self) -> "TrainingStep":
        """One with parameters and moments of its own."""
        with self._states as states:
            return made_again(self._recipe, self._nets, dict(states), self._counts)

    def __deepcopy__(self, memo: object) -> "TrainingStep":
        """As copy."""
        return self.__copy__()

    def __reduce__(self) -> Any:
        with self._states as states:
            copies = {name: array.copy() for name, array in states.items()}
            return made_again, (self._recipe, None, copies, self._counts)

    @property
    def steps(self) -> int:
        """How many were taken, on which rates and corrections depend; with accumulate, every so many calls are one."""
        return self._counts.steps

    @cached_property
    def inputs(self) -> Inputs:
        """(dims, numpy type) by name."""
        return {name: wanted for name, wanted in self._nets.main.inputs.items() if name not in self._own.arrays}

    @property
    def is_native(self) -> bool:
        """Whether it is one native call, without nodes in numpy."""
        return bool(self._nets.main.is_native)

    @property
    def memory_bytes(self) -> int:
        """What a call takes beside inputs, outputs and states, all threads together: what `memory_limit` limits."""
        return self._nets.fitted.nbytes

    @property
    def averages(self) -> Parameters:
        """The exponential averages of the trained parameters by name.  Raises InvalidArguments without `ema`."""
        if self._recipe.options.ema is None:
            raise InvalidArguments("the step keeps no averages: make it with graph.train(..., ema=0.999)")
        return Parameters(self._states, [*self._recipe.settings], AVERAGE)

    def __call__(self, /, *unnamed: Any, **feeds: Any) -> float:
        """Take a step; the loss, from before it.  Raises as `run`."""
        check_named("a step", unnamed, self.inputs)
        return self.run(feeds)["loss"].item()  # type: ignore[no-any-return]

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Take a step, for inputs by name: "loss" and the outputs that were asked for, from before the update.

        Raises InvalidArguments for inputs that are missing, unknown or do not fit, for a learning rate that is no
        finite number, with check_finite for a loss or a gradient that is not finite, and while another step runs; no
        parameter has changed then.
        """
        given = self._checked(feeds)
        results = self._taken(lambda: self._placed.run(self._nets.main, given))
        return {"loss": results.pop(LOSS), **results}

    @within_memory
    def bind(self, /, *unnamed: Any, **arrays: Array) -> Callable[[], float]:
        """Steps on fixed arrays, dense ones, for each input and each of `outputs`: `take = step.bind(x=x, t=t)`.

        `take()` is a step on what the arrays hold then: it writes the outputs, and returns the loss.  It raises as
        `run`.  For steps that are one native call.  Raises InvalidArguments.
        """
        with importing():
            from asmdnn.network.training.bound import bound_call

        check_named("bind()", unnamed, [*self.inputs, "all outputs"])
        net = self._nets.main
        run = bound_call(net, self._placed.of(net), self.inputs, arrays)
        return lambda: float(self._taken(run)[LOSS].item())

    def gradients(self, /, *unnamed: Any, **feeds: Any) -> dict[str, Array]:
        """The first half of a step: "loss", and the gradient by each trained parameter, by its name.

        Running statistics move, parameters do not.  For steps that several processes take together: `apply` takes their
        mean.  Raises as `run`.
        """
        check_named("a step", unnamed, self.inputs)
        given = self._checked(feeds)
        with self._states, Uninterrupted():
            self._own.draw(self._counts.calls)
            results = self._placed.run(self._nets.forward, given)
            self._counts = replace(self._counts, calls=self._counts.calls + 1)
        found = {name: results[f"{GRADIENT}{name}"] for name in self._recipe.settings}
        return {"loss": results[LOSS], **found}

    def apply(self, gradients: Mapping[str, Any]) -> None:
        """The second half of a step, with gradients as `gradients` returns them; a "loss" among them is not read.

        Raises InvalidArguments for gradients that are missing, unknown or do not fit, and as `run`.
        """
        trained = self._recipe.settings
        given = {x: gradients[x] for x in gradients if x != "loss"} if isinstance(gradients, Mapping) else gradients
        check_feeds(given, trained.keys(), "apply takes gradients by")
        dims = self._recipe.graph.parameters
        found = {
            f"{GRADIENT}{x}": as_input(f"gradient by {x}", gradients[x], dims[x], F32, OTHER_DIMS) for x in trained
        }
        with self._states, Uninterrupted():
            self._own.move(self.steps + 1)
            self._look_at(self._placed.run(self._nets.halves, found))
            self._counts = replace(self._counts, steps=self.steps + 1)

    def check(self) -> None:
        """As `Network.check`: also that every parameter is written after its last reader.  Raises PlanError."""
        for net in self._nets.made():
            net.check()

    def explain(self) -> str:
        """As `Network.explain`, and what of the forward pass is kept for the gradients."""
        fitted = self._nets.fitted
        return f"{self._nets.main.explain()}\n  a call takes {fitted.nbytes} bytes: {fitted.keeping.label}"

    def page(self, feeds: Mapping[str, Any] | None = None, repeats: int = 20) -> str:
        """As `Network.page`.  feeds: of a step that is measured, and not taken."""
        net = self._nets.main
        return str(net.page(None if feeds is None else self._next(net, feeds), repeats))

    def profile(self, feeds: Mapping[str, Any], repeats: int = 20) -> str:
        """As `Network.profile`, for the next step, which is not taken."""
        net = self._nets.main
        return str(net.profile(self._next(net, feeds), repeats))

    def verify(self, feeds: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """As `Network.verify`, for the next step, which is not taken: every gradient and update, too, against
        definitions in double precision.  feeds, more: inputs by name, as `run` and a call of the step take them."""
        net = self._nets.main
        return net.verify(self._next(net, more if feeds is None else feeds))

    @within_memory
    def state_dict(self) -> dict[str, Array]:
        """Copies of all that stays between steps, by name: parameters, moments, the numbers of steps and calls (i64).

        Raises InvalidArguments while a step runs.
        """
        with self._states as states:
            found = {name: array.copy() for name, array in states.items()}
            return found | self._counts.arrays(self._recipe.options.accumulate)

    @within_memory
    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Go on from what `state_dict` of a step with these names and dims returned.

        strict: False takes the names that both have.  All is looked at before anything is written.  Raises
        InvalidArguments.
        """
        if not isinstance(state, Mapping) or type(strict) is not bool:
            raise InvalidArguments(
                f"state must be arrays by name, and strict a bool, not {shown(state)}, {shown(strict)}"
            )
        with self._states as states:
            parts = self._recipe.options.accumulate
            known = {*states, *names_of_counts(parts)}
            differ = sorted(map(str, known ^ ({*state} - {CALLS})))
            if strict and differ:
                raise InvalidArguments(f"state and step differ in {shown(differ)}: strict=False takes what both have")
            given = {name: of_bits(state[name], x.dtype) for name, x in states.items() if name in state}
            found = {
                name: as_input(name, x, states[name].shape, states[name].dtype, OTHER_DIMS) for name, x in given.items()
            }
            counts = counts_from(state, self._counts, parts, [name for name in states if name.startswith(SUM)])
            found = {name: array.copy() for name, array in found.items()}  # one may be a view of another state
            for name, array in found.items():
                states[name][...] = array
            self._counts = counts

    @within_memory
    def save(self, path: str | PathLike[str]) -> None:
        """Write `state_dict`, as a whole or not at all: as safetensors if the name ends so, else as numpy's .npz.

        Raises InvalidArguments.
        """
        write_state(path, self.state_dict())

    @within_memory
    def load(self, path: str | PathLike[str], strict: bool = True) -> None:
        """`load_state_dict` of a file that `save` has written.  Raises InvalidArguments."""
        sizes = [array.nbytes for array in self._states.values()]
        self.load_state_dict(read_state(path, max(sizes), sum(sizes)), strict)

    @within_memory
    def export(self, path: str | PathLike[str]) -> None:
        """Write an ONNX file that computes the outputs `Graph.train` was given, with the parameters as they are now.

        Batch norm takes running statistics in it, and dropout drops nothing.  Raises InvalidArguments.
        """
        with importing():
            from asmdnn.network.training.learned import export_onnx, with_values

        outputs = self._recipe.outputs
        if not outputs:
            raise InvalidArguments("the step has no outputs to export: make it with graph.train(..., outputs={...})")
        graph = with_values(self._recipe.source, self.state_dict(), [*outputs.values()])
        export_onnx(path, graph, outputs, {name: self._nets.main.outputs[name] for name in outputs})

    def _taken(self, call: Callable[[], dict[str, Array]]) -> dict[str, Array]:
        """Take a step by a call of the first network; what it returns."""
        parts = self._recipe.options.accumulate
        with self._states, Uninterrupted():
            counts = self._counts
            is_last = counts.summed + 1 == parts
            self._own.draw(counts.calls)
            if is_last:
                self._own.move(counts.steps + 1)
            results = call()
            self._look_at(results)
            if parts > 1 and is_last:
                self._placed.run(self._nets.update, {})
            summed = 0 if is_last else counts.summed + 1
            self._counts = Counts(counts.steps + is_last, counts.calls + 1, summed)
        return results

    def _look_at(self, results: dict[str, Array]) -> None:
        """Raise InvalidArguments for a step that was refused, as its sizes are not finite."""
        if SIZE in results and not np.isfinite(results.pop(SIZE)).all():
            raise InvalidArguments(
                f"the loss or a gradient of step {self.steps + 1} is not finite: nothing has changed; look at the "
                "inputs, or make the learning rate smaller"
            )

    def _next(self, net: Any, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """The inputs of a step's first network, whose states are set to the step's."""
        with self._states as states:
            self._own.draw(self._counts.calls)
            self._own.move(self.steps + 1)
            given = {**self._checked(feeds), **{name: array.copy() for name, array in self._own.arrays.items()}}
            for name in net.state:
                net.state[name][...] = states[name]
        return {name: given[name] for name in net.inputs}

    def _checked(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        check_feeds(feeds, self.inputs.keys(), "a step takes arrays for")
        return {name: as_input(name, feeds[name], *dims_and_type) for name, dims_and_type in self.inputs.items()}


def made_again(recipe: StepRecipe, nets: StepNetworks | None, arrays: Arrays, counts: Counts) -> TrainingStep:
    """A step with these states; nets: of the step that it is a copy of, else planned anew."""
    step = TrainingStep(recipe, nets or StepNetworks(recipe), counts)
    for name, array in arrays.items():
        step._states[name][...] = array
    return step
