"""What is known of integers that are computed with as f32: what they are from and up to, and what results are then."""

from collections.abc import Callable
from math import inf, log2
from typing import Any, NamedTuple

from asmdnn.primitives.attributes.functions import floor, fmod, mod, trunc, where

EXACT_BITS = 24
EXACT = 1 << EXACT_BITS
WORD, LARGEST_WORD, LARGEST_LONG = 2.0**32, 2.0**31, 2.0**63
FAR = 2.0**40  # remainders are exact while quotients are below 2^46
OF_SUMS = 1 << 9  # what masks and counts may need
FLOORS = {"Mul": 1 << 18, "ReduceSum": OF_SUMS, "CumSum": OF_SUMS, "add": OF_SUMS}  # the first: what ids may need
FLOOR = 1 << 20


def floor_of(op: str, reduction: str | None = None) -> int:
    """Of an operator's results, and of a scatter's by what it does with them."""
    return FLOORS.get(reduction or op, FLOOR)


class IntegerBounds(NamedTuple):
    """What a value is from, and up to."""

    least: float
    most: float

    @property
    def size(self) -> float:
        return max(-self.least, self.most)


ANYTHING, TRUTHS = IntegerBounds(-inf, inf), IntegerBounds(0, 1)
BELOW, ABOVE = IntegerBounds(-inf, -inf), IntegerBounds(inf, inf)  # all others


class Known(NamedTuple):
    """An integer value: the f32 value that it is, its bounds, the inputs whose limits these come from, and what these
    limits may come down to: that of a sum is less, also where something is added to the sum.  origin: the input whose
    elements these are, all of them; "" for others.  has_signs: a 0 of it may be -0, which no integer is."""

    name: str
    bounds: IntegerBounds
    sources: frozenset[str] = frozenset()
    floor: int = FLOOR
    origin: str = ""
    has_signs: bool = False


class TooLarge(Exception):
    """A result may exceed what is exact."""

    def __init__(self, result: str, sources: frozenset[str], floor: int) -> None:
        self.result, self.sources, self.floor = result, sources, floor


def towards_zero(x: Any, most: float) -> Any:
    """Integers of a type that holds numbers from -most to below most; others, and NaN, are -most, as on this CPU."""
    whole = trunc(x)
    return where(whole < most, where(whole < -most, -most, whole), -most)


def without_signs(x: Any) -> Any:
    """The same numbers, with 0 for -0, whose reciprocal would be another one."""
    return x + 0.0


def low_half(x: Any) -> Any:
    """Integers of 64 bits as those of 32: what wraps around has 24 bits from 2^8 on, so each step is exact."""
    rest = x - WORD * floor(x / WORD)
    far = where(rest < LARGEST_WORD, rest, rest - WORD)
    return where(abs(x) < LARGEST_WORD, x, far)


def far_remainder(a: Any, b: Any, is_fmod: bool) -> Any:
    """As Mod's, of numbers up to 2^63: what a remainder by a larger number leaves is near enough for kernels."""
    near = fmod(a, b * FAR)
    return fmod(near, b) if is_fmod else mod(near, b)


def quotient(a: Any, b: Any) -> Any:
    """Exact where |a| + |b| < 2^24: no quotient that is none is rounded to an integer."""
    return trunc(a / b)


def corners(a: IntegerBounds, b: IntegerBounds) -> IntegerBounds:
    found = [x * y for x in a for y in b]
    return IntegerBounds(min(found), max(found))


def held(x: IntegerBounds, least: IntegerBounds, most: IntegerBounds) -> IntegerBounds:
    """Of min(max(x, least), most); an infinite bound is none."""
    ends = zip(x, least, most, strict=True)
    return IntegerBounds(*(min(max(a, b), c) for a, b, c in ends))


def between(a: IntegerBounds, b: IntegerBounds, size: float) -> IntegerBounds:
    """Of a quotient or a remainder that is no larger than that."""
    return IntegerBounds(0, size) if min(a.least, b.least) >= 0 else symmetric(size)


def symmetric(size: float) -> IntegerBounds:
    return IntegerBounds(-size, size)


def summed(old: IntegerBounds, new: IntegerBounds, times: int) -> IntegerBounds:
    """Of a number to which up to so many others are added."""
    return IntegerBounds(old.least + min(0.0, times * new.least), old.most + max(0.0, times * new.most))


def multiplied(old: IntegerBounds, new: IntegerBounds, times: int) -> IntegerBounds:
    """Of a number that is multiplied by up to so many others; steps on the way are no larger."""
    factor = max(1.0, new.size)
    size = old.size * factor**times if times * log2(factor) <= EXACT_BITS else inf
    return IntegerBounds(0, size) if min(old.least, new.least) >= 0 else symmetric(size)


def signs_zeros(op: str, *operands: IntegerBounds) -> bool:
    """Whether a result of 0 may be -0."""
    return op == "Neg" or (op in ("Mul", "Div", "Mod") and min(one.least for one in operands) < 0)


COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
ARITHMETIC: dict[str, Callable[..., IntegerBounds]] = {
    "Add": lambda a, b: IntegerBounds(a.least + b.least, a.most + b.most),
    "Sub": lambda a, b: IntegerBounds(a.least - b.most, a.most - b.least),
    "Mul": corners,
    "Div": lambda a, b: between(a, b, a.size),
    "Mod": lambda a, b: between(a, b, b.size),
    "Neg": lambda a: IntegerBounds(-a.most, -a.least),
    "Abs": lambda a: IntegerBounds(0, a.size),
    "Sign": lambda a: symmetric(1),
    "Min": lambda *a: IntegerBounds(min(x.least for x in a), min(x.most for x in a)),
    "Max": lambda *a: IntegerBounds(max(x.least for x in a), max(x.most for x in a)),
    "Clip": held,
    "Relu": lambda a: IntegerBounds(0, max(0, a.most)),
}
