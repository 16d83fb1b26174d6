"""What `asmdnn bench` says: one record a problem, also as a JSON line, and the summary."""

import json
import math
from dataclasses import asdict
from typing import Any

from asmdnn.bench.driver import AnyCase
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One problem's result; None is what was not measured.

    status: passed (it was checked), mistrusted (it was, and says little: see judge.py), timed, executed and initialized
    (it was not), failed, unimplemented, skipped (it is no problem of the primitive, or too large here),
    invalid_arguments (words that cannot be read) or listed; `reason` says why it is failed, mistrusted, unimplemented,
    skipped or invalid, or has no peer.  ok is False where that is a defect: of an
    unimplemented problem, if the primitive refused it, and not the bench what it knows not to be built.
    max_error is the largest |difference| from the reference on real data, error_ratio the largest |difference| /
    tolerance.
    bandwidth counts every argument once, and dst twice under a sum; peak_fraction is of the peak, measured with these
    threads, of the instructions that multiply, which peak_of names: FMA for f32; copy_us is the time of a copy that
    moves as many bytes, timed in turns with the problem, and copy_fraction is copy_us / us; speedup is peer_us / us.
    These are medians; low_us and so on are 10th percentiles, which move less on a machine with slow phases.  peer_impl
    is "unimplemented" where the peer refuses.
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
    low_us: float | None = None
    gflops: float | None = None
    bandwidth_gbs: float | None = None
    peak_fraction: float | None = None
    peak_of: str | None = None
    copy_us: float | None = None
    copy_fraction: float | None = None
    peer: str | None = None
    peer_impl: str | None = None
    peer_us: float | None = None
    low_peer_us: float | None = None
    speedup: float | None = None
    low_speedup: float | None = None

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
    """The record of words in a file, `where` as file:line, that could not be read, or that are skipped after such."""
    status, ok = ("skipped", None) if is_skipped else ("invalid_arguments", False)
    return Record(where, "", 1, "", "", where, status=status, ok=ok, reason=reason)
