"""What `asmdnn bench` says: one record a problem, as a JSON line or a table row, and the summary."""

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from asmdnn.bench.driver import AnyCase, AnyDriver

PROBLEM_WIDTH = 42


@dataclass(frozen=True, slots=True)
class Record:
    """One problem's result; None is what was not measured.

    status: passed (it was checked), timed, executed and initialized (it was not), failed, unimplemented, skipped (it is
    no problem of the primitive, or too large here), invalid_arguments (words that cannot be read) or listed; `reason`
    says why it is failed, unimplemented, skipped or invalid, or has no peer.  ok is False where that is a defect: of an
    unimplemented problem, if the primitive refused it, and not the bench what it knows not to be built.
    max_error is the largest |difference| from the reference on real data, error_ratio the largest |difference| /
    tolerance.
    bandwidth counts every argument once, and dst twice under a sum; peak_fraction is of the FMA peak measured with
    these threads; copy_us is the time of a copy that moves as many bytes, timed in turns with the problem, and
    copy_fraction is copy_us / us; speedup is peer_us / us.  peer_impl is "unimplemented" where the peer refuses.
    """

    problem: str
    name: str
    count: int
    args: str
    driver: str
    title: str
    impl: str | None = None
    isa: str | None = None
    threads: int | None = None
    status: str = "listed"
    reason: str = ""
    ok: bool | None = None
    reference: str | None = None
    max_error: float | None = None
    error_ratio: float | None = None
    us: float | None = None
    gflops: float | None = None
    bandwidth_gbs: float | None = None
    peak_fraction: float | None = None
    copy_us: float | None = None
    copy_fraction: float | None = None
    peer: str | None = None
    peer_impl: str | None = None
    peer_us: float | None = None
    speedup: float | None = None

    def to_json(self) -> str:
        """One line; numbers that JSON lacks (an infinite error) become strings."""
        fields: dict[str, Any] = asdict(self)
        for name, value in fields.items():
            if isinstance(value, float) and not math.isfinite(value):
                fields[name] = str(value)
        return json.dumps(fields)


def listed(case: AnyCase) -> Record:
    """The record of a case that is not run."""
    problem = case.problem
    return Record(str(problem), problem.name, problem.count, str(case), case.driver.name, case.driver.title(case))


def unread(where: str, reason: str, is_skipped: bool) -> Record:
    """The record of words in a file, `where` as file:line, that could not be read, or that are skipped behind such."""
    status, ok = ("skipped", None) if is_skipped else ("invalid_arguments", False)
    return Record(where, "", 1, "", "", where, status=status, ok=ok, reason=reason)


def header(driver: AnyDriver) -> str:
    speed, share = ("GB/s", "% copy") if driver.bandwidth_bound else ("GFLOP/s", "% peak")
    return (
        f"{'problem':<{PROBLEM_WIDTH}} {'implementation':<24} {'us':>10} {speed:>8} {share:>6} "
        f"{'peer us':>10} {'speedup':>7} {'error/tol':>9}  result"
    )


def row(record: Record) -> str:
    """The record's table row; a failure adds its reason and the arguments that repeat it."""
    title = record.title
    if len(title) > PROBLEM_WIDTH:
        title = title[: PROBLEM_WIDTH - 3] + "..."
    is_copy = record.copy_fraction is not None
    speed, share = (record.bandwidth_gbs, record.copy_fraction) if is_copy else (record.gflops, record.peak_fraction)
    percent = None if share is None else 100 * share
    cells = (
        f"{title:<{PROBLEM_WIDTH}} {record.impl or '-':<24} {_cell(record.us, 10, 1)} {_cell(speed, 8, 1)} "
        f"{_cell(percent, 6, 0)} {_cell(record.peer_us, 10, 1)} {_cell(record.speedup, 7, 2)} "
        f"{_cell(record.error_ratio, 9, 3)}  {record.status}"
    )
    if record.ok is False and record.args:
        return f"{cells}: {record.reason}\n    asmdnn bench {record.args}"
    return f"{cells}: {record.reason}" if record.reason else cells


def _cell(value: float | None, width: int, digits: int) -> str:
    return f"{'-' if value is None else format(value, f'.{digits}f'):>{width}}"
