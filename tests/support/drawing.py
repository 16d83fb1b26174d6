"""Random numbers for data of tests, which depend on a test's name alone: `tests/conftest.py` starts them anew for each,
so that no order of tests, and no choice of some, changes what one computes with."""

from collections.abc import Sequence
from random import Random
from typing import Any, Final
from zlib import crc32

import numpy as np

RANDOM: Final = np.random.default_rng(0)


def floats(*dims: int, kind: Any = np.float32) -> Any:
    """From -1 to 1."""
    return RANDOM.uniform(-1, 1, dims).astype(kind)


def integers(kind: Any, *dims: int) -> Any:
    """Of all that the type has."""
    limits = np.iinfo(kind)
    return RANDOM.integers(limits.min, limits.max, dims, endpoint=True).astype(kind)


def start_anew(name: str) -> None:
    RANDOM.bit_generator.state = np.random.default_rng(crc32(name.encode())).bit_generator.state


def sampled(values: Sequence[Any], count: int, seed: str) -> list[Any]:
    """So many of them in their order, always the same for a seed; all if there are no more, and for a count of 0."""
    chosen = range(len(values))
    if 0 < count < len(values):
        chosen = sorted(Random(seed).sample(chosen, count))
    return [values[i] for i in chosen]
