"""x^p of two values, as C's pow has it; powers whose exponent is a number are in logarithm.py."""

from asmdnn.generators.functions.eltwise.exponential import SIGN
from asmdnn.generators.functions.eltwise.logarithm import INFINITY, NAN_BITS, positive_power
from asmdnn.generators.functions.eltwise.simple import floor
from asmdnn.generators.functions.expression import Builder, Term


def power_of(build: Builder, x: Term, p: Term) -> Term:
    """x^p: e^(p log |x|) in extra precision, with the sign of x where p is odd.

    A negative finite x has powers of whole numbers alone; x^0 and 1^p are 1, also of NaN; (-1)^p is 1 of infinite p.
    """
    size = abs(x)
    grows = p > 0.0
    result = positive_power(build, size, p, 1.0)
    at_0, at_infinity = build.where(grows, 0.0, INFINITY), build.where(grows, INFINITY, 0.0)
    result = build.where(size < INFINITY, result, build.where(size == INFINITY, at_infinity, x))
    result = build.where(size == 0.0, at_0, result)
    result = build.where(size == 1.0, 1.0, result)
    half = p * 0.5
    is_whole = floor(build, p) == p
    is_odd = is_whole & (floor(build, half) != half)
    signed = build.op("xor", result, build.op("and", x, build.bits(SIGN)))
    result = build.where(is_odd, signed, result)
    has_none = (x < 0.0) & (size < INFINITY) & ~is_whole
    result = build.where(has_none, build.bits(NAN_BITS), result)
    result = build.where(p == p, result, p)
    return build.where(p == 0.0, 1.0, build.where(x == 1.0, 1.0, result))
