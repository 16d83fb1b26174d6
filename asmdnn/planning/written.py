"""Which elements of a buffer have been written, as the proof of a plan goes from phase to phase.

Most buffers are flat: each element is looked at, but of a phase only those between the first and the last that it
touches, so that a step of many costs no more than what it does.  Those that rounds of records write, and very large
ones, are folded.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from asmdnn.errors import PlanError
from asmdnn.planning.coverage import Coverage, Runs, cover, spread
from asmdnn.planning.phase import Int64
from asmdnn.records import dataclass

Bools = npt.NDArray[np.bool_]


class Written(Protocol):
    """Of one buffer."""

    def add(self, runs: Sequence[Runs], again: bool, where: str) -> None:
        """A phase writes these elements; `again`: maybe some that an earlier one has written.

        Raises PlanError for an element that is written twice, or that does not belong to the buffer.
        """

    def missing(self, runs: Sequence[Runs]) -> int | None:
        """The first of these elements that is not written; None: all are."""

    @property
    def is_complete(self) -> bool: ...

    @property
    def unwritten(self) -> int:
        """The first element of a buffer that is not complete that is not written."""


@dataclass(eq=False)
class FlatCoverage:
    """Element by element.  whole: which elements belong to the buffer; left: how many of them are not in `done`."""

    name: str
    whole: Bools
    done: Bools
    left: int

    @classmethod
    def of(cls, name: str, whole: Bools) -> "FlatCoverage":
        return cls(name, whole, np.zeros_like(whole), int(whole.sum()))

    def add(self, runs: Sequence[Runs], again: bool, where: str) -> None:
        first, times = counted(runs)
        own = slice(first, first + len(times))
        done = self.done[own]
        together = times if again else times + done
        if together.max(initial=0) > 1:
            worst = int(together.argmax())
            raise PlanError(f"{where}: element {first + worst} of {self.name} is written {together[worst]} times")
        written = times > 0
        if (written & ~self.whole[own]).any():
            raise PlanError(f"{where}: bytes between the elements of {self.name} are written")
        self.left -= int((written & ~done).sum())
        done |= written

    def missing(self, runs: Sequence[Runs]) -> int | None:
        first, times = counted(runs)
        found = np.flatnonzero((times > 0) & ~self.done[first : first + len(times)])
        return first + int(found[0]) if len(found) else None

    @property
    def is_complete(self) -> bool:
        return self.left == 0

    @property
    def unwritten(self) -> int:
        return int((self.whole & ~self.done).argmax())


@dataclass(eq=False)
class Folded:
    """Rows of `period` elements; rows and columns are alike between two cuts."""

    name: str
    period: int
    whole: Coverage
    done: Coverage

    def add(self, runs: Sequence[Runs], again: bool, where: str) -> None:
        new = cover(runs, self.period)
        together = new if again else new + self.done
        if together.times.max(initial=0) > 1:
            worst = int(together.times.argmax())
            times = int(together.times.ravel()[worst])
            raise PlanError(f"{where}: element {together.element(worst)} of {self.name} is written {times} times")
        done = new + self.done
        np.minimum(done.times, 1, out=done.times)
        self.done = done.simplified()
        if (aligned(self.done, self.whole).times > aligned(self.whole, self.done).times).any():
            raise PlanError(f"{where}: bytes between the elements of {self.name} are written")

    def missing(self, runs: Sequence[Runs]) -> int | None:
        return self.first_beyond(cover(runs, self.period))

    @property
    def is_complete(self) -> bool:
        return self.first_beyond(self.whole) is None

    @property
    def unwritten(self) -> int:
        return self.first_beyond(self.whole) or 0

    def first_beyond(self, wanted: Coverage) -> int | None:
        """The first element of `wanted` that is not written."""
        rows = aligned(wanted, self.done)
        found = np.flatnonzero((rows.times > 0) & (aligned(self.done, wanted).times == 0))
        return rows.element(int(found[0])) if len(found) else None


def aligned(coverage: Coverage, other: Coverage) -> Coverage:
    """The same by the rows and columns of both."""
    return coverage + Coverage(other.cuts, other.columns, np.zeros_like(other.times))


def counted(runs: Sequence[Runs]) -> tuple[int, Int64]:
    """(the first element, how often that one and each after it is touched, up to the last); loops are written out."""
    places = [(begins, begins + sizes) for begins, sizes, _ in map(spread, runs) if len(begins)]
    if not places:
        return 0, np.zeros(0, np.int64)
    first, end = min(int(begins.min()) for begins, _ in places), max(int(ends.max()) for _, ends in places)
    changes = np.zeros(end - first + 1, np.int64)
    for begins, ends in places:
        changes += np.bincount(begins - first, minlength=len(changes))
        changes -= np.bincount(ends - first, minlength=len(changes))
    return first, np.cumsum(changes[:-1])
