"""Rule "footprint": a call reads and writes what its footprint says, writes all of it, and nothing else.

Plan.check() proves from footprints that every access of a schedule is inside its tensor; here the kernels are held to
them, for every tap list and every value of the data.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from asmdnn.generators.contract import Footprint, Range
from asmdnn.proof import tap_lists
from asmdnn.proof.chosen import is_certain, pieces
from asmdnn.proof.facts import Access
from asmdnn.proof.kernel import Kernel, PlacedInstruction
from asmdnn.proof.values import AbstractValue, Base
from asmdnn.proof.walk import RULE, Walker, WalkState

KNOWN: Final = ("argument", "moved", "indexed")
Intervals = tuple[list[int], list[int]]  # starts and ends, sorted, none touching the next


def check(kernel: Kernel) -> int:
    """Raise BrokenRule for a wrong access; how many accesses had no offset that could be derived, only an argument."""
    footprint = kernel.contract.footprint
    if footprint is None:
        return 0
    judge = Judge(kernel, footprint)
    judge.walk()
    return len(judge.unbounded)


class Judge(Walker):
    """Holds every access of a walk against the footprint."""

    def __init__(self, kernel: Kernel, footprint: Footprint) -> None:
        super().__init__(kernel, footprint.taps, footprint.words)
        self.footprint = footprint
        self.unbounded: set[int] = set()
        again = footprint.writes if footprint.rereads else ()
        reads, writes = by_argument((*footprint.reads, *again)), by_argument(footprint.writes)
        self._allowed: dict[tuple[Base, bool], Intervals] = {
            (Base("argument", argument), is_write): found
            for is_write, side in ((False, reads), (True, writes))
            for argument, found in side.items()
        }
        taps = footprint.taps
        for group, ranges in enumerate(taps.groups if taps else ()):
            for argument, found in by_argument(ranges).items():
                self._allowed[Base("moved", argument, group), False] = found
        self._approved: set[tuple[Base, int, int, bool]] = set()

    def touch(self, state: WalkState, step: PlacedInstruction, access: Access, where: AbstractValue) -> None:
        base = where.base
        if base is None or base.kind in ("frame", "code", "constants"):
            return  # the rule "provenance" is about these
        taps = self.footprint.taps
        if taps and base.kind in ("start", "tuple"):
            self._complain(tap_lists.offence(taps, where, access.size_bytes) if not access.writes else "", step)
            if access.writes:
                self._complain("it stores into the tap list", step)
            return
        if taps and base.kind == "moved":
            self._complain(tap_lists.moved_offence(taps, base), step)
            base = base._replace(word=-1)
        if base.kind not in KNOWN:
            self._complain("the address is derived from a value whose meaning is lost where paths meet", step)
        if base.kind == "indexed":
            self._check_rows(step, access, where)
            return
        for is_write in (False, True):
            if access.writes if is_write else access.reads:
                self._check(state, step, access, AbstractValue(base, where.offset), is_write)

    def _check_rows(self, step: PlacedInstruction, access: Access, where: AbstractValue) -> None:
        """An access to a row whose number is data, bounded by a comparison: to each row that it may be.  Only what may
        stay as it was is written so."""
        base, at = where
        assert base is not None
        is_write = access.writes
        allowed = self._allowed.get((Base("argument", base.number), is_write))
        is_plain = access.mask is None and not (access.reads and access.writes)
        if not is_plain or at is None or allowed is None or (is_write and not self.footprint.partial):
            self._complain("where it goes depends on data: plain reads may, and writes of rows that may stay", step)
            return
        key = (base, at, at + access.size_bytes, is_write)
        if key not in self._approved:
            last = base.group - 1
            for row in range(base.group) if len(allowed[0]) > 1 else (0, last):  # of one range the ends are enough
                begin = at + row * base.word
                if not contains(allowed, begin, begin + access.size_bytes):
                    what = f"bytes [{begin}, {begin + access.size_bytes}) of argument {base.number}"
                    verb = "writes" if is_write else "reads"
                    self._complain(f"it {verb} {what} if an index is {row}, which the footprint does not say", step)
            self._approved.add(key)

    def _check(
        self, state: WalkState, step: PlacedInstruction, access: Access, where: AbstractValue, is_write: bool
    ) -> None:
        assert where.base is not None
        allowed = self._allowed.get((where.base, is_write))
        verb = "stores" if is_write else "reads"
        if allowed is None:
            self._complain(f"it {verb} through argument {where.base.number}, which the footprint does not say", step)
            return
        if where.offset is None:
            if where.base.kind != "argument":
                self._complain("a tap's offset is lost", step)
            self.unbounded.add(step.offset)
            return
        chosen = self.elements(state, access)
        for begin, end in pieces(access, where.offset, chosen):
            key = (where.base, begin, end, is_write)
            if key not in self._approved:
                if not contains(allowed, begin, end):
                    moved = " from a tap's place" if where.base.kind == "moved" else ""
                    ranges = ", ".join(f"[{b}, {e})" for b, e in zip(*allowed, strict=True))[:120]
                    what = f"bytes [{begin}, {end}) of argument {where.base.number}{moved}"
                    self._complain(f"it {verb} {what}; the footprint has {ranges}", step)
                self._approved.add(key)
            if is_write and is_certain(access, chosen):
                state.written.add((where.base.number, begin, end))

    def leave(self, state: WalkState, step: PlacedInstruction) -> None:
        """All that the footprint says is written has been, but for rows that data name.  Of two arguments that are one
        address here, what one reads is in the other, too."""
        if self.footprint.partial:
            return
        there = [Range(b, *rest) for a, b in state.same for rest in self._reads_of(a)]
        done = by_argument([*(Range(*touched) for touched in state.written), *there])
        for (base, is_write), claimed in self._allowed.items():
            if is_write and not self.unbounded:
                for begin, end in zip(*claimed, strict=True):
                    if base.number not in done or not contains(done[base.number], begin, end):
                        self._complain(f"bytes [{begin}, {end}) of argument {base.number} are not all written", step)

    def _reads_of(self, argument: int) -> Iterator[tuple[int, int]]:
        yield from ((x.begin_bytes, x.end_bytes) for x in self.footprint.reads if x.argument == argument)

    def _complain(self, reason: str, step: PlacedInstruction) -> None:
        if reason:
            raise self.kernel.broken(RULE, reason, step)


def by_argument(ranges: Iterable[Range]) -> dict[int, Intervals]:
    """Ranges that touch or overlap as one, for each argument."""
    found: dict[int, Intervals] = {}
    for argument, begin, end in sorted((r.argument, r.begin_bytes, r.end_bytes) for r in ranges):
        begins, ends = found.setdefault(argument, ([], []))
        if ends and begin <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            begins.append(begin)
            ends.append(end)
    return found


def contains(intervals: Intervals, begin: int, end: int) -> bool:
    """Whether one of the intervals has all of [begin, end)."""
    at = bisect_right(intervals[0], begin) - 1
    return at >= 0 and end <= intervals[1][at]
