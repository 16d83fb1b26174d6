"""Times of a primitive and of its kernels, each through its own calls on filled buffers, on one thread."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from asmdnn.analyze.model import Measured
from asmdnn.generators.contract import KernelSpec
from asmdnn.isa.elements import element_of
from asmdnn.memory import Memory
from asmdnn.planning.phase import Int64, Phase
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.records import replace
from asmdnn.runtime.execution import ExecutablePlan

SAMPLES = 7
PRIMITIVE_SAMPLES = 40  # of the one number that stands in the picture
SAMPLE_SECONDS = 4e-3
HOT_RECORDS = 256


class Bench:
    """The buffers of a primitive, filled, and timings on them.  Raises Unimplemented if it cannot run here."""

    def __init__(self, pd: PrimitiveDesc) -> None:
        self.plan = pd.plan
        self.memories = {name: Memory(desc) for name, desc in pd.plan.tensors.items()}
        for number, memory in enumerate(self.memories.values()):
            fill(memory, seed=number)

    def primitive_seconds(self) -> float:
        """One call of all phases."""
        return self._seconds(self.plan, PRIMITIVE_SAMPLES)

    def kernel(self, number: int, clock_ghz: float) -> Measured:
        """Cycles of a call of one kernel; records of the first phase that has it."""
        spec = self.plan.specs[number]
        phase, index = next((x, own) for x in self.plan.phases for used, own in x.by_kernel() if used == spec)

        def cycles(records: Int64) -> float:
            arguments, cycles = phase.arguments, np.ones(len(records), np.int32)
            alone = Phase(phase.kernels, arguments, records, cycles, flushes=phase.flushes)
            return 1e9 * clock_ghz * self._seconds(replace(self.plan, phases=(alone,))) / len(records)

        own = np.ascontiguousarray(phase.records[index])
        hot = sum(len(kind) * cycles(np.repeat(kind[:1], HOT_RECORDS, axis=0)) for kind in kinds_of(spec, own))
        return Measured(round(hot / len(own), 1), round(cycles(own), 1))

    def _seconds(self, plan: Plan, samples: int = SAMPLES) -> float:
        call = ExecutablePlan(plan, threads=1).prepare()
        call.bind([self.memories[name].address for name in plan.tensors], keep=self.memories)
        return seconds_of(call, samples)


def kinds_of(spec: KernelSpec, records: Int64) -> list[Int64]:
    """Records of one kernel by the tap list that they walk, since that is what the work of a call depends on."""
    taps = spec.footprint().taps
    if taps is None:
        return [records]
    lists = records[:, 1 + taps.argument]
    return [records[lists == start] for start in np.unique(lists)]


def seconds_of(call: Callable[[], object], samples: int) -> float:
    """One call: the least of samples of some ms, each of as many calls as that takes; other work only adds to it."""
    call()
    start = perf_counter()
    call()
    repeats = max(1, round(SAMPLE_SECONDS / max(perf_counter() - start, 1e-7)))
    least = float("inf")
    for _ in range(samples):
        start = perf_counter()
        for _ in range(repeats):
            call()
        least = min(least, (perf_counter() - start) / repeats)
    return least


def fill(memory: Memory, seed: int) -> None:
    """From 0 to 1, small integers for integers, any number of 4 bits; no page stays unwritten, no float is denormal."""
    random = np.random.default_rng(seed)
    array = memory.array
    if memory.desc.dtype.in_a_byte > 1:
        array[:] = random.integers(0, 256, array.shape)  # all codes are numbers
    elif memory.desc.dtype.extension:
        one, two = (element_of(memory.desc.dtype).code(number) for number in (1.0, 2.0))
        array[:] = random.integers(one, two, array.shape)
    elif array.dtype.kind == "f":
        array[:] = random.random(array.shape, np.float32)
    else:
        array[:] = random.integers(0, 100, array.shape)
