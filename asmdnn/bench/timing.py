"""Times of calls that are compared: their samples alternate in one process, so that a change of clock hits both."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import NamedTuple

Call = Callable[[], object]

SAMPLE_S = 3e-3  # back-to-back calls of a sample: the clock's and the loop's cost vanish, a preemption is one outlier
WARM_UP_S = 30e-3  # longer than the thread pools of numpy and OpenMP spin after their last work
PAUSE_S = 10e-3  # longer than the threads of other libraries spin after a run, on cores that the next one needs
FEWEST_ROUNDS, MOST_ROUNDS = 3, 33
LOW = 0.1  # the share of samples below the low percentile
OVERRUN = 3  # a call that is slower than its budget stops after this many budgets


class Times(NamedTuple):
    """Seconds of a call: the median of the samples, their 10th percentile, which slow phases spare, and the least."""

    median: float
    low: float
    least: float = 0.0


def interleaved(calls: Sequence[Call], budget_s: float, rounds: int = 0, pause_s: float = 0) -> list[Times]:
    """What each of `calls` takes, of samples as `sampled` takes them."""
    samples = sampled(calls, budget_s, rounds, pause_s)
    return [Times(statistics.median(times), sorted(times)[int(LOW * len(times))], min(times)) for times in samples]


def sampled(
    calls: Sequence[Call], budget_s: float, rounds: int = 0, pause_s: float = 0, fewest: int = FEWEST_ROUNDS
) -> list[list[float]]:
    """Seconds of a call in each of `rounds` rounds, in which each of `calls` gives one sample, or of up to 33.

    Calls up to some milliseconds get all rounds; slower ones as many as `budget_s` allows, but `fewest`, or the one
    that fits into three budgets.  The order within a round alternates.  pause_s: before each sample nothing runs for so
    long, and then one call that does not count; for several threads of libraries that do not share them.
    """
    start = time.perf_counter()
    counts = [_calibrate(call) for call in calls]
    samples: list[list[float]] = [[] for _ in calls]
    collecting = gc.isenabled()
    gc.disable()
    try:
        for done in range(rounds or MOST_ROUNDS):
            used = time.perf_counter() - start
            if done and not rounds and used > budget_s * (1 if done >= fewest else OVERRUN):
                break
            order = range(len(calls)) if done % 2 == 0 else reversed(range(len(calls)))
            for index in order:
                if pause_s:
                    time.sleep(pause_s)
                if counts[index] > 1 or pause_s:
                    calls[index]()  # brings the caches back that the other call emptied
                samples[index].append(_seconds(calls[index], counts[index]) / counts[index])
    finally:
        if collecting:
            gc.enable()
    return samples


def _seconds(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, count):
        call()
    return time.perf_counter() - start


def _calibrate(call: Call) -> int:
    """How many calls fill a sample, after the warm-up."""
    spent, count = 0.0, 1
    while True:
        seconds = _seconds(call, count)
        spent += seconds
        per_call = seconds / count
        count = max(1, -int(-SAMPLE_S // max(per_call, 1e-9)))
        if spent >= WARM_UP_S:
            return count
