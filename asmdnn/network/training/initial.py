"""Initial values of parameters."""

from math import prod, sqrt
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, OutOfMemory, did_you_mean
from asmdnn.memory.allocation import allocated
from asmdnn.network.arrays import Array

# The variance that weights have, for the elements that a result reads and those that an element goes into: He et al.
# (2015), Glorot and Bengio (2010), LeCun et al. (1998).
VARIANCES = {
    "he": lambda reads, goes: 2 / reads,
    "glorot": lambda reads, goes: 2 / (reads + goes),
    "lecun": lambda reads, goes: 1 / reads,
}
CONSTANTS = {"zeros": 0.0, "ones": 1.0}
WORDS = (*CONSTANTS, *(f"{name}_{kind}" for name in VARIANCES for kind in ("normal", "uniform")))


def drawn(name: Any, dims: tuple[Any, ...], word: str, seed: int) -> Array | float:
    """f32 of these dims, the same for the same seed and name; or a number for all.

    Of two dims, the first are inputs, as in `x @ w`; of more, the first are outputs, as in Conv.  Raises
    InvalidArguments, OutOfMemory.
    """
    if word not in WORDS:
        raise InvalidArguments(f"init must be an array, a number or one of these words: {did_you_mean(word, WORDS)}")
    if word in CONSTANTS:
        return CONSTANTS[word]
    if not isinstance(name, str) or not all(isinstance(n, int) and n > 0 for n in dims):
        return 0.0  # whoever declares it says what is wrong
    if len(dims) < 2:
        raise InvalidArguments(f"init {word} needs two dims or more, and {name!r} has {list(dims)}: use 'zeros'")
    first, second = dims[0] * prod(dims[2:]), dims[1] * prod(dims[2:])
    reads, goes = (first, second) if len(dims) == 2 else (second, first)
    family, _, kind = word.partition("_")
    deviation = np.float32(sqrt(VARIANCES[family](reads, goes)))
    random = np.random.default_rng([seed, *name.encode(errors="surrogatepass")])
    try:
        if kind == "normal":
            return allocated(random.standard_normal, dims, np.float32) * deviation
        return (allocated(random.random, dims, np.float32) * 2 - 1) * (deviation * np.float32(sqrt(3)))
    except ValueError:  # numpy's, for more elements than an address counts
        raise OutOfMemory(f"parameter {name!r} has dims {list(dims)}: make them smaller") from None
