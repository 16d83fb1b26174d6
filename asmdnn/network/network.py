"""Networks: what users load, run, look at and check."""

from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.compiled import Compiled, Runner, compiled, native_array
from asmdnn.network.folding import specialise
from asmdnn.network.graph import NOTHING, Array, Model
from asmdnn.network.onnx.reader import read_model
from asmdnn.network.operators.definition import Value, listed
from asmdnn.network.operators.table import operator_of
from asmdnn.network.report import explanation, profile
from asmdnn.network.segments import Segment, fused, result_name, segments_of
from asmdnn.network.stepwise import Stepwise
from asmdnn.network.verification import Difference, differences
from asmdnn.planning.host import require_executable
from asmdnn.primitives.engine import Engine, engine_or_default
from asmdnn.primitives.primitive import guarded

MOST_REPEATS = 100_000


class Network:
    """A model for inputs of fixed shapes, planned as a whole; `load_onnx` and `Graph.compile` make it.

    Planning is done when it is made; kernels are generated and weights packed with the first run.  Equal bits for every
    number of threads; safe to run from many threads at once.  inputs, outputs: (dims, numpy type) by name.
    """

    def __init__(self, model: Model, shapes: Any, constants: Any, engine: Engine | None, fallback: str | None) -> None:
        if not (fallback is None or (isinstance(fallback, str) and fallback == "numpy")):
            raise InvalidArguments(f"fallback must be None or 'numpy', not {shown(fallback)}")
        self.engine, self.model = engine_or_default(engine), model
        self.graph = fused(specialise(model, mapping("shapes", shapes), mapping("constants", constants)))
        segments, self.refused = segments_of(self.graph, self.engine, fallback)
        self.segments: tuple[Segment | Compiled, ...] = tuple(
            compiled(self.graph, segment, self.engine) if segment.is_native else segment for segment in segments
        )
        self.inputs = {name: (self.graph.shape(name), self.graph.values[name].dtype) for name in self.graph.inputs}
        self.outputs = {
            name: (self.graph.shape(value), self.graph.values[value].dtype)
            for name, value in self.graph.outputs.items()
        }
        self._runners: dict[int, Runner] = {}

    def __repr__(self) -> str:
        native = [segment for segment in self.segments if isinstance(segment, Compiled)]
        steps = sum(len(segment.steps) for segment in native)
        return f"<Network {self.model.body.name!r}: {len(self.model.body.nodes)} nodes, {steps} primitives>"

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs by name, new arrays, for inputs by name: arrays of the network's dims and types.

        Raises InvalidArguments for inputs that are missing, unknown or do not fit.
        """
        values = self._checked(feeds)
        for i, segment in enumerate(self.segments):
            if isinstance(segment, Compiled):
                self._run_native(i, segment, values)
            else:
                computed(self.graph.values, segment, values)
        return {name: self._result(value, values) for name, value in self.graph.outputs.items()}

    def __call__(self, x: Any) -> Array:
        """The output of a network that has a single one, for its single input.  Raises InvalidArguments."""
        if len(self.inputs) != 1 or len(self.outputs) != 1:
            names = f"{', '.join(self.inputs)} to {', '.join(self.outputs)}"
            raise InvalidArguments(f"the network goes from {names}, not from one input to one output: use run()")
        (result,) = self.run({next(iter(self.inputs)): x}).values()
        return result

    def bind(self, **arrays: Array) -> Callable[[], None]:
        """A call on fixed arrays, dense ones, one for each input and output: `run = net.bind(x=x, y=y)`, `run()`.

        For networks that are native throughout.  Bind once per thread that calls it.  Raises InvalidArguments.
        """
        segment = self._only_native("bound")
        wanted = {**self.inputs, **self.outputs}
        if arrays.keys() != wanted.keys():
            raise InvalidArguments(f"arrays must be {', '.join(wanted)}, not {', '.join(arrays) or 'none'}")
        for name, (shape, dtype) in wanted.items():
            if dtype == np.bool_:
                raise InvalidArguments(f"{name} is bool, which kernels read as f32: use run()")
            check_bound(name, arrays[name], shape, dtype, name in self.outputs)
        values = self.graph.outputs
        addresses = {
            result_name(values[name]) if name in values else name: array.ctypes.data for name, array in arrays.items()
        }
        call = self._runner(0, segment).bind(addresses, arrays)
        return guarded(call, partial(segment.check_indices, arrays)) if segment.limits else call

    def check(self) -> None:
        """Prove, without running anything, that no step leaves its buffers, that everything that is read has been
        written, and that no value is overwritten before its last reader.  Raises PlanError."""
        for segment in self.segments:
            if isinstance(segment, Compiled):
                segment.check()

    def explain(self) -> str:
        """Which operators became which primitives and kernels, with layouts, reorders, and memory."""
        return explanation(self.graph, self.segments, self.refused)

    def profile(self, feeds: Mapping[str, Any], repeats: int = 20) -> str:
        """A line for each primitive of a native network: its least time of `repeats` runs (1 to 100000), in
        microseconds, and its share.  Each is a call of its own here: the sum is a little more than what run() takes."""
        if type(repeats) is not int or not 1 <= repeats <= MOST_REPEATS:
            raise InvalidArguments(f"repeats must be an integer from 1 to {MOST_REPEATS}, not {shown(repeats)}")
        run = Stepwise(self._only_native("profiled"), self.engine, self._checked(feeds))
        return profile(run.segment.steps, run.times(repeats))

    def verify(self, feeds: Mapping[str, Any]) -> list[Difference]:
        """Compare every primitive of a native network with its operators in double precision, on the operands that it
        got.  Returns the differences in order; those that do not `fit` their bound name what is wrong."""
        values = self._checked(feeds)
        return differences(self.graph, Stepwise(self._only_native("verified"), self.engine, values), values)

    def _only_native(self, what: str) -> Compiled:
        """The segment of a network that has no other."""
        if len(self.segments) != 1 or not isinstance(self.segments[0], Compiled):
            raise InvalidArguments(f"only a network without nodes in numpy can be {what}, use run()")
        require_executable(self.engine.isa)
        return self.segments[0]

    def _runner(self, number: int, segment: Compiled) -> Runner:
        if number not in self._runners:
            require_executable(self.engine.isa)
            self._runners[number] = Runner(segment, self.engine)
        return self._runners[number]

    def _run_native(self, number: int, segment: Compiled, values: dict[str, Array]) -> None:
        results = {name: np.empty(self.graph.shape(name), np.float32) for name in segment.segment.makes}
        segment.check_indices(values)
        taken = {name: native_array(values[name]) for name in segment.graph.inputs}
        addresses = {name: array.ctypes.data for name, array in taken.items()}
        addresses |= {result_name(name): array.ctypes.data for name, array in results.items()}
        self._runner(number, segment).run(addresses)
        values |= results

    def _checked(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        if not isinstance(feeds, Mapping) or feeds.keys() != self.inputs.keys():
            given = ", ".join(map(str, feeds)) if isinstance(feeds, Mapping) else shown(feeds)
            raise InvalidArguments(f"feeds must be arrays for {', '.join(self.inputs)}, not {given or 'none'}")
        return {name: as_input(name, feeds[name], *wanted) for name, wanted in self.inputs.items()}

    def _result(self, value: str, values: Mapping[str, Array]) -> Array:
        known = self.graph.values[value]
        return np.array(known.data) if known.data is not None else values[value]


def load_onnx(
    path: str | PathLike[str] | bytes,
    shapes: Mapping[str, Any] | None = None,
    *,
    constants: Mapping[str, Any] | None = None,
    engine: Engine | None = None,
    fallback: str | None = None,
) -> Network:
    """The network in an ONNX file, or in its bytes, of operator sets 7 to 24, for inputs of fixed shapes.

    shapes: dims of inputs by name, needed where the model leaves some open; constants: data of inputs that is always
    the same, such as a sampling rate; it chooses branches, and is no input any more.  Nodes without a kernel are
    refused, all at once with their reasons; with fallback="numpy" they are computed by numpy between native parts.
    Raises InvalidArguments for what is no intact model, or shapes that do not fit it; Unimplemented.
    """
    return Network(read_model(path), shapes, constants, engine, fallback)


def mapping(name: str, given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArguments(f"{name} must map names of inputs to values, not {shown(given)}")
    return given


def as_input(name: str, given: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array of these dims and this type; no copy if it is one.  Raises InvalidArguments."""
    try:
        array = given if isinstance(given, np.ndarray) else np.asarray(given)
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"{name} must be an array, not {shown(given)}") from None
    if array.shape != shape or array.dtype != dtype:
        raise InvalidArguments(
            f"{name} is {array.dtype.name}{list(array.shape)}, the network takes {dtype.name}{list(shape)}: "
            "convert it, or load the model for other shapes"
        )
    return array


def check_bound(name: str, array: Any, shape: tuple[int, ...], dtype: np.dtype[Any], is_output: bool) -> None:
    """Raise InvalidArguments unless kernels can work on the array itself."""
    array = as_input(name, array, shape, dtype)
    if not (array.flags.c_contiguous and array.flags.aligned) or (is_output and not array.flags.writeable):
        raise InvalidArguments(f"{name} must be dense, aligned and, if it is an output, writable: use numpy.empty")


def computed(known: Mapping[str, Value], segment: Segment, values: dict[str, Array]) -> None:
    """Nodes without a kernel, by their definitions."""
    for group in segment.groups:
        for node in group.nodes:
            operator = operator_of(node)
            assert operator is not None, "folding refuses unknown operators"
            inputs = [
                None if x == NOTHING else known[x].data if known[x].data is not None else values[x] for x in node.inputs
            ]
            with np.errstate(all="ignore"):
                results = listed(operator.evaluate(node, *inputs))
            for name, array in zip(node.outputs, results, strict=False):
                values[name] = np.asarray(array)
