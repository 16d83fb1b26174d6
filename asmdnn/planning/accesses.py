"""Footprints as arrays, so that the proof of a plan works on all accesses of a kernel at once.

A kernel that moves single elements has a range for each, tens of thousands of them.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from asmdnn.generators.contract import Footprint, KernelWords, Range, TapList
from asmdnn.planning.phase import Int64
from asmdnn.records import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Spans:
    """Bytes [begins[i], ends[i]) from one argument's pointer."""

    begins: Int64
    ends: Int64

    def reach(self, argument: int) -> Range:
        """The range from the first byte to the last."""
        return Range(argument, int(self.begins.min()), int(self.ends.max()))

    def are_among(self, others: "Spans | None") -> bool:
        """Whether the bytes of each of them are among those of `others`."""
        if others is None:
            return False
        begins, ends = united(others.begins, others.ends)
        last = np.searchsorted(begins, self.begins, side="right") - 1
        return bool((last >= 0).all() and (self.ends <= ends[last]).all())

    def pairs(self) -> set[tuple[int, int]]:
        return set(zip(self.begins.tolist(), self.ends.tolist(), strict=True))

    def merged(self) -> list[tuple[int, int]]:
        """The same bytes, each once, in as few ranges as there can be."""
        return list(zip(*(numbers.tolist() for numbers in united(self.begins, self.ends)), strict=True))


@dataclass(frozen=True, eq=False, slots=True)
class Accesses:
    """A footprint, by argument."""

    reads: Mapping[int, Spans]
    writes: Mapping[int, Spans]
    taps: TapList | None
    words: KernelWords | None = None
    partial: bool = False

    @classmethod
    def of(cls, footprint: Footprint) -> "Accesses":
        reads, writes = spans_of(footprint.reads), spans_of(footprint.writes)
        return cls(reads, writes, footprint.taps, footprint.words, footprint.partial)

    @property
    def arguments(self) -> int:
        """Of a frame that has all that is touched."""
        taps = (*self.taps.targets, self.taps.argument) if self.taps else ()
        words = (self.words.argument,) if self.words else ()
        return 1 + max((*self.reads, *self.writes, *taps, *words), default=-1)


def spans_of(ranges: Iterable[Range]) -> dict[int, Spans]:
    found: dict[int, tuple[list[int], list[int]]] = {}
    for access in ranges:
        begins, ends = found.setdefault(access.argument, ([], []))
        begins.append(access.begin_bytes)
        ends.append(access.end_bytes)
    return {a: Spans(np.array(begins, np.int64), np.array(ends, np.int64)) for a, (begins, ends) in found.items()}


def united(begins: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """[begins[i], ends[i]) as ranges apart from one another, in order: where they begin, and where they end."""
    order = np.argsort(begins, kind="stable")
    begins, reached = begins[order], np.maximum.accumulate(ends[order])
    starts = np.flatnonzero(np.append(True, begins[1:] > reached[:-1]))
    return begins[starts], np.append(reached[starts[1:] - 1], reached[-1])
