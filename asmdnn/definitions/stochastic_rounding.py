"""Stochastic rounding to the numbers of a smaller type, by the random numbers of dropout.

Source: Gupta and others, Deep Learning with Limited Numerical Precision, 2015.  oneDNN adds 8 random bits where 16 are
cut off, so that its results lean towards 0; here all bits that are cut off an f32 are random.
"""

import numpy as np

from asmdnn.definitions.dropout import philox_words
from asmdnn.definitions.rounding import FORMS, UPPER, Array

WORD_BITS = 32
MANTISSA_BITS = 23  # of an f32
BITS_OF_WHOLE = 16  # random ones that decide about the next whole number


def stochastically_rounded(x: Array, seed: int, first: int = 0, kind: str = UPPER) -> Array:
    """f32 of x's dims: each number becomes one of its two neighbours in the type, away from 0 with the chance that is
    the share of the way there, as far as random bits count it.  Infinity and NaN stay.

    kind: a float, or s8 or u8, which are whole numbers; f32 becomes the numbers of its upper half.  What is beyond the
    largest number of the type is not cut.  first: the index of the first element; random numbers depend on the seed and
    the element's index alone."""
    numbers = np.ascontiguousarray(x, np.float32)
    known = np.where(np.isfinite(numbers), numbers, np.float32(0)).astype(np.float64)
    size, step, bits = np.abs(known), np.ones(known.shape), BITS_OF_WHOLE
    kind = UPPER if kind == "f32" else kind
    if kind in FORMS:
        mantissa, least = FORMS[kind]
        step, bits = np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 1, least) - mantissa), MANTISSA_BITS - mantissa
    words = philox_words(first, numbers.size, seed).reshape(numbers.shape) >> np.uint64(WORD_BITS - bits)
    steps = np.floor((np.floor(size / step * 2.0**bits) + words) / 2.0**bits)
    with np.errstate(over="ignore"):
        rounded = np.copysign(steps * step, known).astype(np.float32)
    return np.where(np.isfinite(numbers), rounded, numbers)
