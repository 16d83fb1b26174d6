"""Sums over long depths, a range of it a phase: the first starts from the bias, the others continue from dst."""

from collections.abc import Iterator, Sequence

from asmdnn.generators.functions.postops import OLD_DST, PostOp
from asmdnn.records import dataclass


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
