"""Random numbers for data of tests, which depend on a test's name alone: `tests/conftest.py` starts them anew for each,
so that no order of tests, and no choice of some, changes what one computes with."""

from typing import Final
from zlib import crc32

import numpy as np

RANDOM: Final = np.random.default_rng(0)


def start_anew(name: str) -> None:
    RANDOM.bit_generator.state = np.random.default_rng(crc32(name.encode())).bit_generator.state
