"""Calls of kernels in nested loops, as phases: all records where they are few, else rounds."""

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from asmdnn.generators.contract import KernelSpec
from asmdnn.planning.loops import DST, Loop, grid
from asmdnn.planning.phase import MOST_CYCLES, Phase, View
from asmdnn.planning.rounds import in_loops, without_barrier
from asmdnn.planning.tuning import PhaseTuning
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A kernel, called in every step of the loops from `starts`, in bytes; a call is expected to take `cycles`.

    Arguments of the phase after those that `starts` has are at 0.
    """

    kernel: KernelSpec
    starts: tuple[int, ...]
    loops: tuple[Loop, ...]
    cycles: int

    @property
    def count(self) -> int:
        return prod(loop.extent for loop in self.loops)


def phases_of(
    calls: Sequence[Call], arguments: tuple[View, ...], tuning: PhaseTuning, along_dst: bool = False
) -> list[Phase]:
    """One phase of all records, or, where there are many, phases of rounds, one for all calls in the same loops.

    along_dst: whether the records of one phase are sorted by where they write, so that a line that two calls share,
    such as of padding, is still in the cache.
    """
    index = dict[KernelSpec, int]()
    numbers = [index.setdefault(call.kernel, len(index)) for call in calls]
    kernels = tuple(index)
    if sum(call.count for call in calls) > tuning.written_out:
        return in_rounds(calls, numbers, kernels, arguments, tuning)
    counts = [call.count for call in calls]
    records, at = np.zeros((sum(counts), 1 + len(arguments)), np.int64), 0
    for number, call, count in zip(numbers, calls, counts, strict=True):
        rows = records[at : at + count]
        rows[:, 0] = number
        rows[:, 1 : 1 + len(call.starts)] = grid(call.starts, call.loops)
        at += count
    cycles = np.repeat(cycles_of(calls), counts)
    if along_dst:
        order = np.argsort(records[:, 1 + DST], kind="stable")
        records, cycles = np.ascontiguousarray(records[order]), cycles[order]
    return [Phase(kernels, arguments, records, cycles)]


def in_rounds(
    calls: Sequence[Call],
    numbers: Sequence[int],
    kernels: tuple[KernelSpec, ...],
    arguments: tuple[View, ...],
    tuning: PhaseTuning,
) -> list[Phase]:
    """The calls in each step of their loops; numbers: those of their kernels."""
    together: dict[tuple[Loop, ...], list[tuple[int, Call]]] = {}
    for number, call in zip(numbers, calls, strict=True):
        together.setdefault(call.loops, []).append((number, call))
    found: list[Phase] = []
    for nest, some in together.items():
        rest = (0,) * (len(arguments) - len(some[0][1].starts))
        records = np.array([(number, *call.starts, *rest) for number, call in some], np.int64)
        loops = [(loop.extent, loop.strides + rest) for loop in nest]
        made = in_loops(kernels, arguments, records, cycles_of([call for _, call in some]), loops, tuning)
        found += without_barrier(made) if found else made
    return found


def cycles_of(calls: Sequence[Call]) -> npt.NDArray[np.int32]:
    """What is expected of each: of a call that takes more than 2^31, as much as a phase can say."""
    return np.array([min(call.cycles, MOST_CYCLES) for call in calls], np.int32)
