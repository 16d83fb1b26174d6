"""Numbers cut into nearly equal parts."""

from collections.abc import Sequence
from typing import Final

FEW_SHARES: Final = 4  # a share is this part of a whole, or all of it


def balanced(total: int, size: int) -> list[int]:
    """`total` as a sum of the fewest numbers <= size, which differ by at most one."""
    count = -(-total // size)
    return [total // count + (i < total % count) for i in range(count)]


def runs_of(total: int, size: int) -> list[tuple[int, int]]:
    """`balanced(total, size)` as (number, how often), at most two of them."""
    count = -(-total // size)
    if not count:
        return []
    small, more = divmod(total, count)
    return [(number, times) for number, times in ((small + 1, more), (small, count - more)) if times]


def ranges_of(total: int, most: int, unit: int) -> list[tuple[int, int]]:
    """[0, total) in nearly equal ranges of at most `most` units, which begin at multiples of the unit; (0, 0) of 0."""
    if total == 0:
        return [(0, 0)]
    return between(balanced(-(-total // unit), most), total, unit)


def between(parts: Sequence[int], total: int, unit: int) -> list[tuple[int, int]]:
    """(begin, end) of parts that lie one after another, given in units; the last one ends at `total`."""
    found, begin, units = [], 0, 0
    for part in parts:
        units += part
        end = min(total, unit * units)
        found.append((begin, end))
        begin = end
    return found


def share_of_lines(lines: int, parts: int) -> int:
    """How many of some cache lines each part prefetches, so that together they bring all; some more cost nothing.

    It is one of two numbers, so that kernels for other numbers of parts are the same ones.
    """
    few = max(1, lines // FEW_SHARES)
    return few if -(-lines // parts) <= few else lines
