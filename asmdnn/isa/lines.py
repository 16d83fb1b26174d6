"""Cache lines, the sets of L1 that they fall into, and how far code reaches: alike in every x86-64 CPU of today."""

from math import gcd
from typing import Final

LINE_BYTES: Final = 64
MAX_OFFSET: Final = 2**31 - 1  # bytes: displacements and immediate operands are 32 bits
L1_SETS_BYTES: Final = 4096  # of a way: addresses that differ by a multiple share a set of L1


def lines_that_stay(distance_bytes: int, set_lines: int) -> int:
    """How many lines so far apart L1 holds at a time, if it has room for `set_lines` of them in a set."""
    return set_lines * L1_SETS_BYTES // gcd(max(distance_bytes, 1), L1_SETS_BYTES)


def odd_lines(size_bytes: int) -> int:
    """At least so many bytes, an odd number of cache lines."""
    lines = -(-size_bytes // LINE_BYTES)
    return LINE_BYTES * (lines + 1 - lines % 2)
