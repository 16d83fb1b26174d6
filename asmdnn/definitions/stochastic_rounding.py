"""Stochastic rounding to the numbers of bf16, by the random numbers of dropout.

Source: Gupta and others, Deep Learning with Limited Numerical Precision, 2015.  oneDNN adds 8 random bits where 16 are
cut off, so that its results lean towards 0; here all 16 are random.
"""

import numpy as np

from asmdnn.definitions.dropout import philox_words
from asmdnn.definitions.rounding import Array

CUT_BITS = 16  # of an f32, that bf16 does not have


def rounded_to_bf16(x: Array, seed: int, first: int = 0) -> Array:
    """f32 of x's dims: each number becomes one of its two neighbours in bf16, away from 0 with the chance that is the
    share of the way there, to 2^-16.  Infinity and NaN stay.

    first: the index of the first element; random numbers depend on the seed and the element's index alone."""
    numbers = np.ascontiguousarray(x, np.float32)
    bits = numbers.view(np.uint32).astype(np.uint64)
    words = philox_words(first, numbers.size, seed).reshape(numbers.shape)
    moved = bits + (words >> np.uint64(CUT_BITS)) >> np.uint64(CUT_BITS) << np.uint64(CUT_BITS)
    rounded = moved.astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(numbers), rounded, numbers)
