"""Two normal numbers of two random words, as radius and angle (Box and Muller 1958).

    radius = sqrt(-2 log((a + 1/2) / 2^32)),  angle = 2 pi (b + 1/2) / 2^32:  radius cos(angle), radius sin(angle)

Words are integers of 32 bits, of which f32 has 24, so that nothing is lost where it matters: near 0 a word is exact,
and near 1 the logarithm takes its distance from 1, which is.  The angle's two upper bits, rounded, are the quadrant;
the rest is an integer with a sign, at most pi/4.  Both factors have relative errors of some 2^-24, and so the product.
"""

from functools import lru_cache
from math import pi

from asmdnn.generators.functions.eltwise.exponential import SIGN
from asmdnn.generators.functions.eltwise.logarithm import log_of_1_plus, split_normal
from asmdnn.generators.functions.eltwise.trigonometric import of_remainder
from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.program import Program
from asmdnn.isa.formula import bits_of

HALF_BITS, LOW_HALF = 16, 0xFFFF
UPPER = 46341.0  # 2^16 sqrt(1/2), rounded up: words from here on count from 2^32
QUADRANT_BITS = 30
STEP = pi / 2 / 2.0**QUADRANT_BITS  # of the angle, for a word's last bit


@lru_cache
def box_muller() -> Program:
    """Of words a and b."""
    build = Builder(2)
    radius = radius_of(build, build.inputs[0])
    cosine, sine = of_turn(build, build.inputs[1])
    return build.finish(radius * cosine, radius * sine)


def radius_of(build: Builder, word: Term) -> Term:
    all_bits = build.bits(0xFFFFFFFF)
    is_upper = build.op("to_float", build.op("shr", word, immediate=HALF_BITS)) >= UPPER
    word = build.op("xor", word, build.where(is_upper, all_bits, 0.0))
    high = build.op("to_float", build.op("shr", word, immediate=HALF_BITS))
    low = build.op("to_float", build.op("and", word, build.bits(LOW_HALF))) + 0.5
    x = build.fma(high, 2.0**HALF_BITS, low) * 2.0**-32  # rounded once
    parts = split_normal(build, x)
    f, exponent = build.where(is_upper, -x, parts.f), build.where(is_upper, 0.0, parts.exponent)
    return build.op("sqrt", log_of_1_plus(build, f, exponent) * -2.0)


def of_turn(build: Builder, word: Term) -> tuple[Term, Term]:
    """cos and sin of a turn's part."""
    rounded = build.op("iadd", word, build.bits(1 << QUADRANT_BITS - 1))
    k = build.op("shr", rounded, immediate=QUADRANT_BITS)
    rest = build.op("isub", word, build.op("shl", k, immediate=QUADRANT_BITS))
    sine, cosine = of_remainder(build, build.fma(build.op("to_float", rest), STEP, STEP / 2))
    odd = build.op("or", build.op("shl", k, immediate=31), build.bits(bits_of(1.0)))  # -1 or 1
    next_k = build.op("iadd", k, build.bits(1))
    found = build.where(odd < 0.0, sine, cosine), build.where(odd < 0.0, cosine, sine)
    signs = (build.op("and", build.op("shl", n, immediate=30), build.bits(SIGN)) for n in (next_k, k))
    cos, sin = (build.op("xor", x, sign) for x, sign in zip(found, signs, strict=True))
    return cos, sin
