"""Numbers of 4 and 8 bits as rows of bytes, in the order in which products take them; any 2 dims (k, n)."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asmdnn.isa.small_floats import TABLES as TABLES  # of floats whose codes numbers are
from asmdnn.memory.allocation import within_memory
from asmdnn.primitives.quantized.description import BLOCK

QUAD: Final = 4  # rows whose nibbles are in the same half
NIBBLE_BITS: Final = 4


@within_memory
def in_octets(numbers: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """u8 (k, n), or of 4 bits (k / 2, n): of eight rows the first four in lower halves, the last in upper ones.

    numbers: whole, from 0 on; k is a multiple of 8.
    """
    octets = numbers.astype(np.uint8)
    if bits > NIBBLE_BITS:
        return octets
    k, n = octets.shape
    rows = octets.reshape(k // BLOCK, 2, QUAD, n)
    return np.asarray(rows[:, 0] | rows[:, 1] << NIBBLE_BITS, np.uint8).reshape(k // 2, n)


@within_memory
def numbers_in(octets: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """The numbers (k, n) again."""
    if bits > NIBBLE_BITS:
        return octets
    half, n = octets.shape
    rows = octets.reshape(half // QUAD, 1, QUAD, n) >> np.array([0, NIBBLE_BITS], np.uint8)[:, None, None]
    return np.asarray(rows & 15, np.uint8).reshape(2 * half, n)
