"""How often elements of a buffer are written, where rounds of records are not written out.

The buffer is folded: element x is (x // period, x % period).  A write that repeats every `period` elements is a
range of rows there, so that rows between two neighbouring `cuts` are equal, and only one of them is counted.  So are
the columns between two places where any write begins or ends.
"""

from collections.abc import Iterable, Sequence
from math import lcm

import numpy as np

from asmdnn.errors import PlanError
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.planning.phase import Int64
from asmdnn.records import dataclass

MOST_COUNTS = 1 << 26  # of a folded buffer, and accesses of a phase: what a proof may keep in memory
Loop = tuple[int, int]  # (times, elements from one to the next)


@dataclass(frozen=True, eq=False, slots=True)
class Runs:
    """Elements [begins[i], ends[i]), repeated by the loops."""

    begins: Int64
    ends: Int64
    loops: tuple[Loop, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Coverage:
    """times[i, j]: how often elements columns[j] to columns[j + 1] of rows cuts[i] to cuts[i + 1] are written.

    columns begin at 0 and end at the period.
    """

    cuts: Int64
    columns: Int64
    times: Int64

    def __add__(self, other: "Coverage") -> "Coverage":
        cuts, columns = np.union1d(self.cuts, other.cuts), np.union1d(self.columns, other.columns)
        return Coverage(cuts, columns, self.at(cuts, columns) + other.at(cuts, columns))

    def at(self, cuts: Int64, columns: Int64) -> Int64:
        """The same counts over finer rows and columns; 0 outside."""
        row = np.searchsorted(self.cuts, cuts[:-1], side="right") - 1
        column = np.searchsorted(self.columns, columns[:-1], side="right") - 1
        inside = (row >= 0) & (row < len(self.times))
        found = self.times[np.clip(row, 0, max(0, len(self.times) - 1))][:, column]
        found[~inside] = 0
        return found

    def element(self, where: int) -> int:
        """The number of the first element at a flat index of `times`."""
        row, column = divmod(where, self.times.shape[1])
        return int(self.cuts[row]) * int(self.columns[-1]) + int(self.columns[column])

    def simplified(self) -> "Coverage":
        """The same, with equal neighbouring rows and columns merged."""
        rows = np.append(np.append(True, (np.diff(self.times, axis=0) != 0).any(axis=1)), True)
        columns = np.append(np.append(True, (np.diff(self.times, axis=1) != 0).any(axis=0)), True)
        return Coverage(self.cuts[rows], self.columns[columns], self.times[rows[:-1]][:, columns[:-1]])


def period_of(loops: Iterable[Loop], elements: int) -> int:
    """A period that is a multiple of the strides of the loops, those with most repetitions first, if one fits the
    buffer; otherwise the whole buffer.  Loops whose strides do not divide it are written out."""
    found = 1
    for _, stride in sorted(loops, reverse=True):
        together = lcm(found, max(1, stride))
        found = together if 2 * together <= elements else found
    return found if found > 1 else max(1, elements)


def longest(loops: Sequence[Loop]) -> Loop | None:
    """The loop that is worth folding."""
    return max((loop for loop in loops if loop[1] > 0), key=lambda loop: loop[0], default=None)


def cover(runs: Iterable[Runs], period: int) -> Coverage:
    """How often each element is written by all runs together, folded."""
    boxes = np.concatenate([np.zeros((0, 4), np.int64), *(box for x in runs for box in folded(x, period))])
    cuts = np.unique(np.append(boxes[:, :2], (0, 1)))
    columns = np.unique(np.append(boxes[:, 2:], (0, period)))
    rows, places = np.searchsorted(cuts, boxes[:, :2]), np.searchsorted(columns, boxes[:, 2:])
    count, width = len(cuts) - 1, len(columns)
    if count * width > MOST_COUNTS:
        raise PlanError(f"a proof of {count} rows of {width} places takes too much memory")
    changes = np.zeros(count * width, np.int64)
    for sign, row, place in ((1, 0, 0), (-1, 0, 1), (-1, 1, 0), (1, 1, 1)):
        inside = rows[:, row] < count
        changes += sign * np.bincount(rows[inside, row] * width + places[inside, place], minlength=len(changes))
    table = changes.reshape(count, width)
    np.cumsum(table, axis=0, out=table)
    np.cumsum(table, axis=1, out=table)
    return Coverage(cuts, columns, table[:, :-1])


def folded(runs: Runs, period: int) -> Iterable[Int64]:
    """int64[.., 4]: first row, end row, first column, end column of every part of the runs."""
    begins, sizes, times = spread(runs, period)
    row, first = np.divmod(begins, period)
    end = first + sizes
    if ((end > 2 * period) & (times > 1)).any():
        raise PlanError("rounds write elements again that the round before has written")
    yield np.stack((row, row + times, first, np.minimum(end, period)), 1)
    over = end > period
    row, end, times = row[over] + 1, end[over] - period, times[over]
    whole, rest = np.divmod(end, period)
    full = np.full(len(row), period)
    yield np.stack((row, row + whole, full - full, full), 1)[(whole > 0) & (times == 1)]
    yield np.stack((row, row + times, full - full, full), 1)[(whole > 0) & (times > 1)]
    yield np.stack((row + whole, row + whole + times, full - full, rest), 1)[rest > 0]


def spread(runs: Runs, period: int = 0) -> tuple[Int64, Int64, Int64]:
    """Begins, sizes and how often each comes again every `period` elements: all other loops written out."""
    begins, sizes = runs.begins, runs.ends - runs.begins
    times = np.ones(len(begins), np.int64)
    folds = [loop for loop in sorted(runs.loops, reverse=True) if loop[1] > 0 and period % loop[1] == 0]
    fold = folds[0] if folds and period else None
    for loop in runs.loops:
        count, stride = loop
        steps = np.arange(count)
        again = np.ones(count, np.int64)
        if loop is fold:
            together = min(count, period // stride)
            steps = np.arange(together)
            again = -(-(count - steps) // together) if together == period // stride else again
        if len(begins) * len(steps) > MOST_COUNTS:
            raise PlanError(f"a proof of {len(begins) * len(steps)} accesses takes too much memory")
        begins = (begins[:, None] + steps * stride).ravel()
        sizes = np.repeat(sizes, len(steps))
        times = (times[:, None] * again).ravel()
    return begins, sizes, times


def elements_of(desc: MemoryDesc) -> list[Runs]:
    """All elements of a tensor, its zero padding included; and the sums after them, of bytes."""
    sums = []
    if isinstance(desc, SummedDesc):
        first, _ = desc.begins
        sums.append(Runs(np.array([first]), np.array([desc.size_bytes]), ()))
    desc = desc.storage
    block = [1] * desc.ndims
    loops, inner = [], 1
    for dim, size in reversed(desc.inner_blocks):
        loops.append((size, inner))
        block[dim] *= size
        inner *= size
    loops += [(size // b, s) for size, b, s in zip(desc.padded_dims, block, desc.strides, strict=True)]
    run, rest = 1, []
    for times, stride in sorted((loop for loop in loops if loop[0] > 1), key=lambda loop: loop[1]):
        if stride == run:
            run *= times
        else:
            rest.append((times, stride))
    exists = 0 not in desc.padded_dims
    begins = np.full(int(exists), desc.offset0, np.int64)
    return [Runs(begins, begins + run, tuple(rest)), *sums]
