"""Random numbers for data of tests: `tests/conftest.py` starts them anew for each, so that no order of tests changes
what one computes with."""

from typing import Final

import numpy as np

RANDOM: Final = np.random.default_rng(7)
_START: Final = RANDOM.bit_generator.state


def start_anew() -> None:
    RANDOM.bit_generator.state = _START
