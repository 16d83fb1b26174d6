"""An input that may be the memory of an output is read before it is written over: proved, or refused."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from asmdnn.errors import PlanError
from asmdnn.generators.contract import Footprint, Range, TapList
from asmdnn.planning.phase import Phase, Repeat, View
from asmdnn.planning.plan import Plan
from tests.planning.test_schedules import ALL, DESC, DST, KEPT, ROW, ROWS, SRC, phase, plan_of

BETWEEN = "src is read after dst, whose memory it may be, was written"
WITHIN = f"{BETWEEN} by other records"
SCRATCH = {"kept": ROWS * ROW}
MOVED = [(i, (i + 1) % ROWS) for i in range(ROWS)]  # each row to where the next one is read
GROUPS = np.arange(0, 2 * ROWS + 1, 4)


def refuse(plan: Plan, says: str) -> None:
    """With src in dst's place, and not without."""
    plan.check()
    with pytest.raises(PlanError, match=f"{says}$"):
        in_place(plan).check()


def in_place(plan: Plan) -> Plan:
    return replace(plan, in_place=(("src", "dst"),))


def test_rows_where_they_are() -> None:
    in_place(plan_of(phase(ALL, SRC, DST))).check()
    in_place(plan_of(phase(ALL[:16], SRC, DST, repeats=(Repeat(3, (16 * ROW, 16 * ROW)),)))).check()
    in_place(plan_of(phase(ALL, SRC, KEPT), phase(MOVED, KEPT, DST), scratch=SCRATCH)).check()


def test_rows_elsewhere() -> None:
    refuse(plan_of(phase(MOVED, SRC, DST)), WITHIN)
    refuse(plan_of(phase([*ALL[:-2], MOVED[-2], (ROWS - 1, ROWS - 2)], SRC, DST)), WITHIN)


def test_rows_of_which_one_is_read_twice() -> None:
    """By its own record, and by the next."""
    refuse(plan_of(phase([*ALL[:8], (7, 8), *ALL[9:]], SRC, DST)), WITHIN)


def test_rounds_that_read_what_others_write() -> None:
    """The first round reads what it writes, the second does not."""
    refuse(plan_of(phase(ALL[:16], SRC, DST, repeats=(Repeat(3, (0, 16 * ROW)),))), WITHIN)


def test_a_phase_that_reads_later() -> None:
    refuse(plan_of(phase(ALL, SRC, DST), phase(ALL, SRC, KEPT), scratch=SCRATCH), BETWEEN)


def pieces(in_order: bool, further: int = 0) -> Plan:
    """Groups read two rows, `further` on, into scratch, and write two from there; in order: row after row."""
    rows = []
    for first in range(0, ROWS * ROW, 2 * ROW):
        read = [(0, (first + (i + further) * ROW) % (ROWS * ROW), i * ROW, 0) for i in range(2)]
        write = [(1, 0, i * ROW, first + i * ROW) for i in range(2)]
        rows += [read[0], write[0], read[1], write[1]] if in_order else [*read, *write]
    kernels, arguments = (made("read", 0, 1), made("write", 1, 2)), (SRC, View("own"), DST)
    grouped = Phase(kernels, arguments, np.array(rows, np.int64), np.ones(len(rows), np.int32), groups=GROUPS)
    return Plan("pieces", (grouped,), {"src": DESC, "dst": DESC}, {}, {"own": 2 * ROW}, ("dst",), (), ("own",))


@dataclass(frozen=True, slots=True)
class Copy:
    """A kernel that exists only as a footprint."""

    name: str
    accesses: Footprint
    isa: str = "avx2"

    def footprint(self) -> Footprint:
        return self.accesses

    def generate(self, asm: Any) -> None:
        raise NotImplementedError


def made(name: str, source: int, target: int) -> Copy:
    return Copy(name, Footprint((Range(source, 0, ROW),), (Range(target, 0, ROW),)))


def test_groups_read_what_they_write_later() -> None:
    in_place(pieces(in_order=False)).check()
    in_place(pieces(in_order=True)).check()


@pytest.mark.parametrize("further", [1, 2, ROWS - 1])
def test_groups_that_read_what_others_write(further: int) -> None:
    refuse(pieces(in_order=False, further=further), WITHIN)


def test_groups_that_have_written_what_they_read() -> None:
    """The second row of a group is read after it was written: here as its records are in another order."""
    plan = pieces(in_order=False)
    (one,) = plan.phases
    records = one.records.copy()
    records[0::4, 1], records[1::4, 1] = one.records[1::4, 1], one.records[0::4, 1]
    records[1::4], records[2::4] = records[2::4].copy(), records[1::4].copy()  # read b, write a, read a, write b
    refuse(replace(plan, phases=(replace(one, records=records),)), WITHIN)


def test_what_a_list_of_taps_says_is_read() -> None:
    """Maybe all of it."""
    kernel = Copy("taps", Footprint((), (Range(1, 0, ROW),), TapList(2, (0,), ((Range(0, 0, ROW),),))))
    records = np.array([(0, ROW * a, ROW * a, 0) for a, _ in ALL], np.int64)
    one = replace(phase(ALL, SRC, DST), kernels=(kernel,), arguments=(SRC, DST, View("taps")), records=records)
    plan = Plan("taps", (one,), {"src": DESC, "dst": DESC}, {"taps": np.array([1, 0], np.int64)}, {}, ("dst",))
    refuse(plan, WITHIN)
