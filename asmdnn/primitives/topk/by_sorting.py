"""The plan of the k best by sorting: of every row a group of calls, one after the other, in memory of the thread's own.

A short row is sorted at once.  Of a longer one the first elements are; what is better than the k-th best of them is
collected, sorted and merged whenever there is no room for more.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from asmdnn.generators.functions.topk_sorted import SortedTopKSpec
from asmdnn.generators.functions.topk_sorted_shape import COPIED, state_bytes
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import lanes_of
from asmdnn.planning.move_tuning import TopKTuning
from asmdnn.planning.phase import Phase, Repeat, View, records_of
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.shapes.nests import Nest
from asmdnn.records import dataclass, replace
from asmdnn.types import F32_BYTES

LEAST = 64  # pairs of a kernel
WHOLE = 256  # rows that are sorted at once: measured on Zen 4, the best 16 of 256 1.24x faster than by 128
FIRST = 128  # pairs that are sorted at a time in longer ones, at least: 16 of 128x1000 1.06x faster than by 256
ROOMS = 2  # of all pairs, in calls: measured on Zen 4, 100 of 16x5000 1.07x faster than 4, 16 of 4x50000 1.16x
CALLS = 1024  # of a row, about: more elements are sorted at a time in longer ones
STEP_CYCLES = 0.8  # of a vector of pairs, for each comparison that it takes part in
COPIED_CYCLES = 2  # of a sorted result


@dataclass(frozen=True, slots=True)
class SortedSizes:
    """Of a row: `size` pairs are sorted at a time; `room` elements are looked at before that may be due."""

    elements: int
    size: int
    room: int

    @property
    def is_whole(self) -> bool:
        return self.elements <= self.size

    def state_bytes(self, isa: str) -> int:
        """Of a row, for kernels of that level."""
        return state_bytes(isa, self.size, waits=not self.is_whole)


def power_of_two(number: int) -> int:
    """The smallest that is no less."""
    return 1 << (number - 1).bit_length()


def sizes_of(elements: int, k: int) -> SortedSizes:
    """Not many calls, and all of a short row."""
    if elements <= WHOLE or power_of_two(k) >= elements:
        size = max(LEAST, power_of_two(elements))
    else:
        of_calls = power_of_two(elements * ROOMS // CALLS + 1)
        size = max(power_of_two(k), of_calls, FIRST)
    return SortedSizes(elements, size, size // ROOMS)


def steps_of_row(sizes: SortedSizes, spec: SortedTopKSpec) -> Iterator[tuple[SortedTopKSpec, int]]:
    """The kernels of a row, in order, and the element from which on each reads; `spec`: what they have in common."""
    if sizes.is_whole:
        yield replace(spec, call="whole", elements=sizes.elements), 0
        return
    yield replace(spec, call="first", elements=sizes.size), 0
    for start in range(sizes.size, sizes.elements, sizes.room):
        count = min(sizes.room, sizes.elements - start)
        yield replace(spec, call="choose", elements=count), start
        if start + count < sizes.elements:
            yield replace(spec, call="merge", room=sizes.room), 0
    yield replace(spec, call="last"), 0


def phase_of_rows(sizes: SortedSizes, spec: SortedTopKSpec, nest: Nest, tuning: TopKTuning) -> Phase:
    """All rows, each a round of one group.  spec: as for `steps_of_row`.  nest: of the rows, in elements of src, dst
    and values, which are all of 4 bytes.  Raises Refused."""
    if COPIED * spec.dst_step_bytes > MAX_OFFSET:
        raise Refused("neighbours along the axis of dst are 512 MiB or more apart")
    if sizes.state_bytes(spec.isa) > MAX_OFFSET:
        raise Refused(f"k is {spec.k}, the pairs of a row would take 2 GiB or more")
    steps = list(steps_of_row(sizes, spec))
    kernels = {kernel: number for number, kernel in enumerate(dict.fromkeys(kernel for kernel, _ in steps))}
    starts = by_argument(nest.starts)
    columns = {name: np.full(len(steps), F32_BYTES * at, np.int64) for name, at in starts.items()}
    columns["src"] += F32_BYTES * np.array([start for _, start in steps])
    records = records_of(spec.frame, columns, np.array([kernels[kernel] for kernel, _ in steps]))
    cycles = np.array([cost(kernel, tuning) for kernel, _ in steps], np.int32)
    loops = [by_argument(loop.strides) for loop in nest.kept]
    repeats = tuple(
        Repeat(loop.extent, tuple(F32_BYTES * strides.get(name, 0) for name in spec.frame))
        for loop, strides in zip(nest.kept, loops, strict=True)
    )
    return Phase(
        tuple(kernels),
        tuple(View(name) for name in spec.frame),
        records,
        cycles,
        repeats=repeats,
        groups=np.array([0, len(records)]),
    )


def by_argument(numbers: tuple[int, ...]) -> Mapping[str, int]:
    """Those of src, dst and values."""
    return dict(zip(("src", "dst", "values"), numbers, strict=False))


def cost(spec: SortedTopKSpec, tuning: TopKTuning) -> int:
    """Expected cycles; pairs that wait are seldom too many."""
    if spec.call == "choose":
        return tuning.call_cycles + spec.elements // lanes_of(spec.isa) * tuning.vector_cycles
    if spec.call == "merge":
        return tuning.call_cycles
    steps = spec.size.bit_length() * (spec.size.bit_length() - 1) // 2
    vectors = spec.size * 2 // lanes_of(spec.isa)
    written = spec.k * COPIED_CYCLES if spec.call in ("whole", "last") else 0
    return tuning.call_cycles + int(steps * vectors * STEP_CYCLES) + written
