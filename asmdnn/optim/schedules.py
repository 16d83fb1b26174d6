"""Learning rates by the number of the step, of which the first is 1."""

from collections.abc import Callable
from math import cos, pi
from typing import Any

from asmdnn.exact import exact
from asmdnn.optim.checks import number, whole
from asmdnn.records import dataclass


@exact
@dataclass(frozen=True, eq=False)
class RateSchedule:
    """A rate that rises in equal parts over `warmup` steps, and then goes from peak to least as `falls` says: from 1 to
    0 as the share of the remaining steps goes from 0 to 1.  After all steps it stays what it was at last."""

    peak: float
    steps: int
    warmup: int
    least: float
    falls: Callable[[float], float]

    def __call__(self, step: int) -> float:
        if step <= self.warmup:
            return self.peak * step / (self.warmup + 1)
        done = min(1.0, (step - 1 - self.warmup) / (self.steps - self.warmup))
        return self.least + (self.peak - self.least) * self.falls(done)


def level(done: float) -> float:
    return 1.0


def line(done: float) -> float:
    return 1 - done


def half_wave(done: float) -> float:
    return (1 + cos(pi * done)) / 2


def constant(peak: Any, warmup: Any = 0) -> RateSchedule:
    """The same rate for all steps after the warmup.  Raises InvalidArguments."""
    rising = whole("warmup", warmup, 0)
    return RateSchedule(number("peak", peak), rising + 1, rising, 0.0, level)


def linear(peak: Any, steps: Any, warmup: Any = 0, least: Any = 0.0) -> RateSchedule:
    """From the peak down to `least` on a line.  steps: in all, those of the warmup among them.  Raises
    InvalidArguments."""
    return falling(line, peak, (steps, warmup), least)


def cosine(peak: Any, steps: Any, warmup: Any = 0, least: Any = 0.0) -> RateSchedule:
    """From the peak down to `least` as half a wave of a cosine (Loshchilov and Hutter, 2017).  steps: in all, those of
    the warmup among them.  Raises InvalidArguments."""
    return falling(half_wave, peak, (steps, warmup), least)


def falling(falls: Callable[[float], float], peak: Any, counts: tuple[Any, Any], least: Any) -> RateSchedule:
    """counts: all steps, and those of the warmup.  Raises InvalidArguments."""
    warmup = whole("warmup", counts[1], 0)
    steps = whole(f"steps, with a warmup of {warmup}," if warmup else "steps", counts[0], warmup + 1)
    return RateSchedule(number("peak", peak), steps, warmup, number("least", least), falls)
