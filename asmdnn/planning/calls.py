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
    """One phase of all records, or, where there are many, a phase of rounds for each call.

    along_dst: whether the records of one phase are sorted by where they write, so that a line that two calls share,
    such as of padding, is still in the cache.
    """
    index = dict[KernelSpec, int]()
    numbers = [index.setdefault(call.kernel, len(index)) for call in calls]
    kernels = tuple(index)
    if sum(call.count for call in calls) > tuning.written_out:
        found: list[Phase] = []
        for number, call in zip(numbers, calls, strict=True):
            rest = (0,) * (len(arguments) - len(call.starts))
            record = np.array([(number, *call.starts, *rest)], np.int64)
            loops = [(loop.extent, loop.strides + rest) for loop in call.loops]
            made = in_loops(kernels, arguments, record, cycles_of([call]), loops, tuning)
            found += without_barrier(made) if found else made
        return found
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


def cycles_of(calls: Sequence[Call]) -> npt.NDArray[np.int32]:
    """What is expected of each: of a call that takes more than 2^31, as much as a phase can say."""
    return np.array([min(call.cycles, MOST_CYCLES) for call in calls], np.int32)
