"""A native segment step by step, each value in memory of its own: for looking at values and times."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter

import numpy as np

from asmdnn.memory import Memory
from asmdnn.network.calls.running import input_name, native_array
from asmdnn.network.compiled import CompiledSegment, packed
from asmdnn.network.descriptors import row_major
from asmdnn.network.graph import Array
from asmdnn.network.joining.weights import pages
from asmdnn.network.step_list import NetworkStep
from asmdnn.planning.phase import View
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.reordering import reorder
from asmdnn.runtime.execution import program_of


class Stepwise:
    """The steps as calls of their own; `feeds` are arrays for the segment's inputs."""

    def __init__(self, segment: CompiledSegment, engine: Engine, feeds: Mapping[str, Array]) -> None:
        self.segment, self.engine = segment, engine
        plan, layout = segment.joined.plan, segment.layout
        self.memory = {name: pages(size) for name, size in plan.scratch_bytes.items()}
        weights = packed(segment)
        for name, desc in plan.tensors.items():
            start = layout.weights.get(name)
            self.memory[name] = pages(desc.size_bytes) if start is None else weights.part(start, desc.size_bytes)
        segment.check_indices(feeds)
        for name in segment.graph.inputs:
            data, memory = native_array(feeds[name]).reshape(-1).view(np.uint8), self.memory[input_name(name)]
            memory[:] = data[: len(memory)]
        self.calls = [
            self.call(step, views) for step, views in zip(segment.steps, segment.joined.arguments, strict=True)
        ]

    def call(self, step: NetworkStep, views: Mapping[str, View]) -> Callable[[], None]:
        """The primitive of a step on its buffers."""
        call = program_of(step.pd.plan, self.engine.threads)[0].prepare()
        at = {name: self.memory[view.buffer].ctypes.data + view.offset_bytes for name, view in views.items()}
        call.bind([at[name] for name in step.pd.plan.tensors], self.memory)
        return call

    def results(self) -> Iterator[tuple[NetworkStep, str, Array]]:
        """Run all steps; (step, a value that it makes, which is a plain array) for all of each that computes operators,
        its result first."""
        for step, views, call in zip(self.segment.steps, self.segment.joined.arguments, self.calls, strict=True):
            call()
            if step.nodes:
                for name, argument in ((step.result, step.output), *step.further):
                    desc, view = step.pd.plan.tensors[argument], views[argument]
                    stored = self.memory[view.buffer][view.offset_bytes :]
                    plain = reorder(Memory(desc, stored, padding_is_zero=True), row_major(desc.dims), self.engine)
                    yield step, name, np.array(plain.view())

    def times(self, repeats: int) -> list[float]:
        """The least time of each step in seconds, of so many passes over all of them."""
        return least_times(self.calls, repeats)


def least_times(calls: Sequence[Callable[[], None]], repeats: int) -> list[float]:
    """The least seconds of each call, of so many passes over all of them."""
    least = [float("inf")] * len(calls)
    for _ in range(repeats + 1):  # the first one warms up
        for i, call in enumerate(calls):
            start = perf_counter()
            call()
            least[i] = min(least[i], perf_counter() - start)
    return least
