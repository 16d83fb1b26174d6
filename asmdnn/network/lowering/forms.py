"""Sums of scaled values after a kernel of integers, simplified before a kernel is made of them.

    floats of integers are    scale x - scale zero
    a product of integers is  scale x + bias, scale being that of src times that of each channel's weights
    integers of floats are    y / scale + zero, rounded and saturated by the store

A chain of these, of sums, scales, relu and clip is again one scaled sum between two bounds:

    min(max(sum over i of scale_i x_i + shift, least), most)

whose numbers are computed in double precision and rounded once.  So a convolution with bias, a residual sum, relu and
new integers ends with a multiply-add for each tensor, and relu is the saturation of the store.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from asmdnn.network.graph import Array
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes import functions as f
from asmdnn.records import dataclass, field, replace


@dataclass(frozen=True, eq=False)
class Reading:
    """What a traced function is called with, by name; made: what has been computed of it."""

    tensors: Mapping[str, Any]
    made: dict[int, Any] = field(default_factory=dict)


Emit = Callable[[Reading], Any]


def read(name: str) -> Emit:
    return lambda reading: reading.tensors[name]


@dataclass(frozen=True, eq=False)
class ScaledSum:
    """The sum of scaled terms, and its bounds; numbers are f64 that broadcast to the result."""

    terms: tuple[tuple[Emit, Array], ...]
    shift: Array
    least: Array | None = None
    most: Array | None = None

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def is_bounded(self) -> bool:
        return self.least is not None or self.most is not None

    def times(self, factor: Array) -> "ScaledSum":
        """factor: above 0 where there are bounds."""
        assert not self.is_bounded or (factor > 0).all()
        terms = tuple((emit, scale * factor) for emit, scale in self.terms)
        bounds = (None if x is None else x * factor for x in (self.least, self.most))
        return ScaledSum(terms, self.shift * factor, *bounds)

    def plus(self, number: Array) -> "ScaledSum":
        bounds = (None if x is None else x + number for x in (self.least, self.most))
        return ScaledSum(self.terms, self.shift + number, *bounds)

    def clipped(self, least: float | None, most: float | None) -> "ScaledSum":
        """First not below, then not above."""
        low, high = self.least, self.most
        if least is not None:
            low = np.asarray(least, np.float64) if low is None else np.maximum(low, least)
            high = None if high is None else np.maximum(high, least)
        if most is not None:
            low = None if low is None else np.minimum(low, most)
            high = np.asarray(most, np.float64) if high is None else np.minimum(high, most)
        return replace(self, least=low, most=high)

    def saturated(self, least: float, most: float) -> "ScaledSum":
        """Without bounds that the type of the result keeps by itself."""
        low = None if self.least is None or (self.least <= least).all() else self.least
        high = None if self.most is None or (self.most >= most).all() else self.most
        return replace(self, least=low, most=high)


ONE, ZERO = np.ones(()), np.zeros(())
LARGEST = float(np.finfo(np.float32).max)


def value_of(emit: Emit) -> ScaledSum:
    return ScaledSum(((emit, ONE),), ZERO)


class Sealing:
    """Forms as traced expressions.  arrays: numbers that are no single ones, as tensors c0, c1, ... of the result's
    axes."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def number(self, array: Array) -> float | Emit:
        """Raises Refused for what f32 does not hold, as scales near its ends make: infinity times 0 is no number."""
        if ((np.abs(array) > LARGEST) & np.isfinite(array)).any():
            raise Refused(f"its scales make the number {np.abs(array).max():g}, f32 holds up to {LARGEST:g}")
        if (array == array.ravel()[0]).all():
            return float(np.float32(array.ravel()[0]))
        for i, known in enumerate(self.arrays):
            if known.shape == array.shape and np.array_equal(known, array):
                return read(f"c{i}")
        self.arrays.append(array)
        return read(f"c{len(self.arrays) - 1}")

    def expression(self, form: ScaledSum) -> Emit:
        """Its value; computed once, however often it is asked for."""
        terms = [(emit, self.number(scale)) for emit, scale in form.terms]
        shift = self.number(form.shift)
        bounds = [None if x is None else self.number(x) for x in (form.least, form.most)]

        def emit(reading: Reading) -> Any:
            if id(form) not in reading.made:
                reading.made[id(form)] = summed(reading, terms, shift, *bounds)
            return reading.made[id(form)]

        return emit


def of(reading: Reading, number: float | Emit) -> Any:
    return number(reading) if callable(number) else number


def summed(
    reading: Reading,
    terms: list[tuple[Emit, float | Emit]],
    shift: float | Emit,
    least: float | Emit | None,
    most: float | Emit | None,
) -> Any:
    """The form's value: a multiply-add a term."""
    added, total = of(reading, shift), None
    for emit, scale in terms:
        factor, term = of(reading, scale), emit(reading)
        before = added if total is None else total
        starts_at_0 = isinstance(before, float) and before == 0.0
        if isinstance(factor, float) and factor == 1.0:
            total = term if starts_at_0 else term + before
        else:
            total = term * factor if starts_at_0 else f.multiply_add(term, factor, before)
    total = added if total is None else total
    total = total if least is None else f.maximum(total, of(reading, least))
    return total if most is None else f.minimum(total, of(reading, most))
