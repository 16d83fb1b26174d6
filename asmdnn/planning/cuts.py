"""Numbers cut into nearly equal parts, and sums into ranges of their depth.

A range is a phase: the first one starts from the bias, the others continue from dst.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from asmdnn.generators.functions.postops import OLD_DST, PostOp
from asmdnn.records import dataclass

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


def ranges_of(total: int, most: int, unit: int, most_ranges: int | None = None) -> list[tuple[int, int]]:
    """[0, total) in nearly equal ranges of at most `most` units, which begin at multiples of the unit; (0, 0) of 0.

    most_ranges: the ranges are longer than asked for if there would be more of them."""
    if total == 0:
        return [(0, 0)]
    longest = max(most, -(-total // (unit * most_ranges))) if most_ranges else most
    return between(balanced(-(-total // unit), longest), total, unit)


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


@dataclass(frozen=True, slots=True)
class Depth:
    """A range of the depth, and what its kernels do before and after summing it."""

    begin: int
    end: int
    bias: bool
    accumulate: bool
    post_ops: tuple[PostOp, ...]


def make_depths(ranges: Sequence[tuple[int, int]], bias: bool, chain: tuple[PostOp, ...]) -> Iterator[Depth]:
    """A leading sum is added with the first range, before dst is overwritten; all else happens to the whole sum."""
    first = 1 if len(ranges) > 1 and chain and OLD_DST in chain[0].operands else 0
    for i, (begin, end) in enumerate(ranges):
        is_first, is_last = i == 0, i == len(ranges) - 1
        post_ops = chain if is_first and is_last else chain[:first] if is_first else chain[first:] if is_last else ()
        yield Depth(begin, end, bias and is_first, not is_first, post_ops)
