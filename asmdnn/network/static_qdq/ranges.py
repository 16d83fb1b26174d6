"""Ranges of values that inputs have shown, and the integers that stand for them.

    integer = round(x / scale) + zero,   scale = (high - low) / 255,   zero = round(-low / scale), 128 less for int8

with 0 in the range.  low and high are the least and largest values ("minmax"); those that leave a share of the values
outside ("percentile"); or those of a part of the range whose 256 steps say most of how values are distributed, the
least Kullback-Leibler divergence ("entropy"), if there are enough values to say that.
Source: Migacz, 8-bit inference with TensorRT, GTC 2017.
"""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, not_one_of, shown
from asmdnn.network.graph import Array
from asmdnn.records import dataclass

RULES = ("minmax", "percentile", "entropy")
TYPES = {"u8": np.dtype(np.uint8), "s8": np.dtype(np.int8)}
STEPS, BINS, PARTS = 255, 4096, 64  # PARTS: how many parts of a range are compared
LEAST_PART = 1 / 16
ENOUGH = 64 * BINS  # values, to say how they are distributed
LEAST_PERCENTILE = 50


@dataclass(frozen=True)
class Calibration:
    """How `quantize` chooses the ranges of values.

    rule: "minmax", "percentile" or "entropy".  percentile: the share of the values, in percent, that ranges hold;
    of rule "percentile" alone.  activations: "u8" or "s8".  correct_bias: whether a product's bias takes what rounding
    changes of each channel's mean.  Raises InvalidArguments.
    """

    rule: str = "percentile"
    percentile: float = 99.999
    activations: str = "u8"
    correct_bias: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.rule, str) or self.rule not in RULES:
            raise InvalidArguments(not_one_of("rule", self.rule, RULES))
        is_number = isinstance(self.percentile, int | float | np.floating) and not isinstance(self.percentile, bool)
        if not (is_number and LEAST_PERCENTILE < self.percentile <= 100):
            raise InvalidArguments(f"percentile must be above 50 and at most 100, not {shown(self.percentile)}")
        if not isinstance(self.activations, str) or self.activations not in TYPES:
            raise InvalidArguments(not_one_of("activations", self.activations, TYPES))
        if not isinstance(self.correct_bias, bool):
            raise InvalidArguments(f"correct_bias must be True or False, not {shown(self.correct_bias)}")


@dataclass(frozen=True)
class ByteNumbers:
    """x = scale (integer - zero)."""

    scale: float
    zero: int
    dtype: np.dtype[Any]


class Observed:
    """What a value was for some inputs: its least and largest, and later how often it was where."""

    def __init__(self) -> None:
        self.low = self.high = 0.0
        self.counts = np.zeros(BINS)

    def widen(self, x: Array) -> None:
        """Raises InvalidArguments for NaN and infinity."""
        if x.size:
            low, high = float(x.min()), float(x.max())
            if not (np.isfinite(low) and np.isfinite(high)):
                raise InvalidArguments("it is not finite for these feeds: quantise a model that is")
            self.low, self.high = min(self.low, low), max(self.high, high)

    def count(self, x: Array) -> None:
        if self.high > self.low:
            self.counts += np.histogram(x, BINS, (self.low, self.high))[0]

    def numbers(self, calibration: Calibration) -> ByteNumbers:
        low, high = self.low, self.high
        if calibration.rule == "percentile" and self.counts.any():
            low, high = self.holding(calibration.percentile / 100)
        elif calibration.rule == "entropy" and self.counts.sum() >= ENOUGH:
            low, high = self.nearest_part()
        dtype = TYPES[calibration.activations]
        scale = float(np.float32((high - low) / STEPS))
        if scale < np.finfo(np.float32).tiny:
            return ByteNumbers(1.0, 0, dtype)
        first = int(np.iinfo(dtype).min)
        return ByteNumbers(scale, int(np.clip(np.rint(-low / scale), 0, STEPS)) + first, dtype)

    def edge(self, place: float) -> float:
        return self.low + (self.high - self.low) * place / BINS

    def holding(self, share: float) -> tuple[float, float]:
        """Bounds beyond which lie, at each end, half of the other values, with 0 inside."""
        below = np.cumsum(self.counts)
        out = (1 - share) / 2 * below[-1]
        first, last = np.searchsorted(below, out, "right"), np.searchsorted(below, below[-1] - out, "left")
        return min(self.edge(first), 0.0), max(self.edge(min(last + 1, BINS)), 0.0)

    def nearest_part(self) -> tuple[float, float]:
        """The part of the range that loses least: its upper end is chosen first, then its lower one."""
        parts = [float(part) for part in np.linspace(LEAST_PART, 1, PARTS)[::-1]]
        above = min(parts, key=lambda part: self.divergence(1.0, part))
        below = min(parts, key=lambda part: self.divergence(part, above))
        return self.low * below, self.high * above

    def divergence(self, below: float, above: float) -> float:
        """From what the bins hold, with what is outside at the ends, to what 256 steps of the part can say of them."""
        zero = -self.low / (self.high - self.low) * BINS
        first, last = int(np.floor(zero * (1 - below))), int(np.ceil(zero + (BINS - zero) * above))
        inside = self.counts[first:last]
        exact = inside.copy()
        exact[0] += self.counts[:first].sum()
        exact[-1] += self.counts[last:].sum()
        step = np.minimum(np.arange(len(inside)) * (STEPS + 1) // len(inside), STEPS)
        held, bins = np.bincount(step, inside), np.bincount(step, inside > 0)
        said = np.where(inside > 0, (held / np.maximum(bins, 1))[step], 0)
        at_zero = min(max(int(zero) - first, 0), len(inside) - 1)
        exact[at_zero] = said[at_zero] = 0  # which every range says exactly, and many functions give often
        p, q = exact / max(exact.sum(), 1), said / max(said.sum(), 1)
        seen = p > 0
        return float((p[seen] * np.log(p[seen] / np.maximum(q[seen], 1e-12))).sum())
