"""The last axis of a convolution in elements, not in pixels: with channels last, a row of the kernel is one run of
them, and of a row of src, too.

A position is a group of elements that a multiply takes at once.  At an edge, and at the run's end, a part of it exists.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Int64
from asmdnn.planning.written import Bools
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.records import dataclass

TOGETHER = 2  # elements of a group
KINDS = WHOLE, BEGIN, END = range(3)  # which elements of a group exist


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementAxis(Axis):
    """An axis whose sizes are elements, but for `o`; k, d: groups of the run, and their distance.

    run: elements of a row of the kernel.  Numbers of positions say which elements of a group reach a pixel, too.
    """

    run: int

    @property
    def extent(self) -> int:
        return self.run

    def numbered(self, group: int, kind: int) -> int:
        """A position.  Those of a kind are one after another, and not after those of another kind."""
        return kind * (self.k + 1) + group

    def kind_of(self, position: int) -> tuple[int, int]:
        """(kind, group)."""
        return divmod(position, self.k + 1)

    def reach(self, outputs: Int64) -> Int64:
        """int64[.., 4]: the range of all positions, and the elements [low, high) of the run that are inside."""
        start = self.windows(outputs)
        low, high = np.clip(-start, 0, self.run), np.clip(self.i - start, 0, self.run)
        high = np.maximum(low, high)
        none = np.zeros_like(start)
        return np.stack((none, none + self.numbered(self.k, END), low, high), -1)

    def reached(self, reach: Int64, at: Int64) -> Bools:
        kind, group = np.divmod(at[:, None], self.k + 1)
        first = TOGETHER * group
        begins, ends = ((reach[:, 2] <= x) & (x < reach[:, 3]) for x in (first, first + 1))
        found = np.where(kind == WHOLE, begins & ends, np.where(kind == BEGIN, begins & ~ends, ends & ~begins))
        inside: Bools = found & (group < self.k)
        return inside


def pieces_of_runs(
    axis: ElementAxis, positions: Sequence[tuple[int, ...]], most: int
) -> list[tuple[int, int, tuple[tuple[int, ...], ...]]]:
    """(elements, the first one that exists, where they begin) of the taps for numbered positions, in at most `most`
    groups each: several groups of a row are as one, and a cut one goes with those before it."""
    found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for outer, row in groupby(sorted(positions), lambda position: position[:-1]):
        kinds: dict[int, list[int]] = {kind: [] for kind in KINDS}
        for *_, last in row:
            kind, group = axis.kind_of(last)
            kinds[kind].append(group)
        for begin, elements in runs_of_groups(kinds[WHOLE], kinds[BEGIN]):
            at = begin
            sizes = balanced(-(-elements // TOGETHER), most)
            for i, size in enumerate(sizes):
                here = elements - TOGETHER * (at - begin) if i == len(sizes) - 1 else TOGETHER * size
                found.setdefault((here, 0), []).append((*outer, at))
                at += size
        for group in kinds[END]:
            found.setdefault((TOGETHER, 1), []).append((*outer, group))
    return [(*size, tuple(first)) for size, first in sorted(found.items(), key=order_of)]


def order_of(taps: tuple[tuple[int, int], object]) -> tuple[int, int]:
    """Long ones first."""
    (elements, first), _ = taps
    return -elements, first


def runs_of_groups(whole: Sequence[int], cut: Sequence[int]) -> list[tuple[int, int]]:
    """(first group, elements) of runs of whole groups, each with a cut one if that follows."""
    left = {*cut}
    found = []
    for _, run in groupby(enumerate(whole), lambda each: each[1] - each[0]):
        groups = [group for _, group in run]
        after = groups[-1] + 1
        found.append((groups[0], TOGETHER * len(groups) + (after in left)))
        left.discard(after)
    return [*found, *((group, 1) for group in sorted(left))]
