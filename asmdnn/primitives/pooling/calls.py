"""Calls of the kernels of a pooling in nested loops, as phases: all records where they are few, else rounds."""

from collections.abc import Sequence
from math import prod

import numpy as np

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.pooling.pixel_words import WORD_BYTES
from asmdnn.generators.pooling.pixels import PoolPixelsSpec
from asmdnn.generators.pooling.window import PixelLoop
from asmdnn.planning.phase import Int64, Phase, views
from asmdnn.planning.rounds import in_loops, without_barrier
from asmdnn.planning.tuning import PhaseTuning
from asmdnn.records import dataclass

Loops = tuple[tuple[PixelLoop, int], ...]  # with what the number of the first position grows by in a step


@dataclass(frozen=True, slots=True, eq=False)
class PoolCall:
    """A kernel, called in every step of the loops; start: of src, dst, and the number of the first position."""

    spec: KernelSpec
    start: tuple[int, int, int]
    loops: Loops
    cycles: int

    @property
    def count(self) -> int:
        return prod(loop.times for loop, _ in self.loops)


def phases_of(
    calls: Sequence[PoolCall], arguments: Sequence[str], tuning: PhaseTuning, smaller: int = 1
) -> tuple[list[Phase], dict[str, Int64]]:
    """All calls in the order of dst, or, of many, rounds of those that share their outer loops; and the constants that
    they read: numbers, and the words of kernels of pixels, where arguments ask for them.

    indices are laid out as dst, `smaller` times as small, those that are carried as src.
    """
    kernels = tuple(dict.fromkeys(call.spec for call in calls))
    many = sum(call.count for call in calls) > tuning.written_out
    shared: dict[Loops, list[PoolCall]] = {}
    for call in calls:
        shared.setdefault(outer_of(call.loops, tuning.round_records) if many else (), []).append(call)
    words, starts = words_of_kernels(kernels)
    phases: list[Phase] = []
    first = np.zeros(0, np.int64)
    for outer, some in shared.items():
        kernel, places, cycles = in_order_of_dst(some, {spec: i for i, spec in enumerate(kernels)}, len(outer))
        numbers, steps = numbered(places[:, 2], outer) if "first" in arguments else (first[:0], [0] * len(outer))
        columns = {
            "src": places[:, 0],
            "dst": places[:, 1],
            "indices": places[:, 1] // smaller,
            "carried": places[:, 0],
        }
        columns |= {"first": WORD_BYTES * (len(first) + np.arange(len(places))), "words": starts[kernel]}
        records = np.stack([kernel, *(columns[name] for name in arguments)], axis=1)
        loops = []
        for (loop, _), step in zip(outer, steps, strict=True):
            moves = {"src": loop[1], "dst": loop[2], "indices": loop[2] // smaller, "carried": loop[1]}
            moves |= {"first": step, "words": 0}
            loops.append((loop.times, tuple(moves[name] for name in arguments)))
        made = in_loops(kernels, views(arguments), records, cycles, loops, tuning)
        phases += without_barrier(made) if phases else made
        first = np.append(first, numbers)
    constants = {"first": first, "words": words}
    return phases, {name: array for name, array in constants.items() if name in arguments}


def words_of_kernels(kernels: Sequence[KernelSpec]) -> tuple[Int64, Int64]:
    """The words of all kernels, each list of them once, and the byte at which those of each begin."""
    words, known, starts = list[int](), dict[tuple[int, ...], int](), list[int]()
    for spec in kernels:
        values = tuple(spec.words.values()) if isinstance(spec, PoolPixelsSpec) else ()
        if values not in known:
            known[values] = WORD_BYTES * len(words)
            words += values
        starts.append(known[values])
    return np.array(words, np.int64), np.array(starts, np.int64)


def outer_of(loops: Loops, most: int) -> Loops:
    """The loops around those that make at most so many records together."""
    size, inside = 1, len(loops)
    while inside and size * loops[inside - 1][0].times <= most:
        inside -= 1
        size *= loops[inside][0].times
    return loops[:inside]


def in_order_of_dst(
    calls: Sequence[PoolCall], index: dict[KernelSpec, int], around: int
) -> tuple[Int64, Int64, np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """(kernel, int64[n, 3] of src, dst and number, cycles) of every call, but for so many loops around all.

    What edges and interior share is then still in a cache.
    """
    made = [grid(call.start, call.loops[around:]) for call in calls]
    times = [len(places) for places in made]
    places = np.concatenate(made)
    order = np.argsort(places[:, 1], kind="stable")
    kernel = np.repeat(np.array([index[call.spec] for call in calls], np.int64), times)
    cycles = np.repeat(np.array([call.cycles for call in calls], np.int32), times)
    return kernel[order], places[order], cycles[order]


def numbered(numbers: Int64, loops: Loops) -> tuple[Int64, list[int]]:
    """The numbers in all steps of the loops that change them, and how far each loop goes in them, in bytes."""
    steps: list[int] = []
    for loop, number in reversed(loops):
        steps.insert(0, 8 * len(numbers) if number else 0)
        if number:
            numbers = (np.arange(loop.times)[:, None] * number + numbers).ravel()
    return numbers, steps


def grid(start: tuple[int, int, int], loops: Loops) -> Int64:
    """int64[n, 3]: every step of the loops, the outermost first."""
    places = np.array([start], np.int64)
    for loop, number in loops:
        steps = np.arange(loop.times)[:, None] * np.array((*loop[1:], number), np.int64)
        places = (places[:, None] + steps).reshape(-1, 3)
    return places
