"""What `asmdnn bench` says: one record a problem, also as a JSON line, and the summary."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from asmdnn.bench.driver import AnyCase


@dataclass(frozen=True, slots=True)
class Record:
    """One problem's result; None is what was not measured.

    status: passed (it was checked), timed (it was not), failed, unimplemented (no implementation took it), skipped
    (outside what this version does) or listed; `reason` says why it is failed, unimplemented or skipped, or has no
    peer.  max_error is the largest |difference| from the reference on real data, error_ratio the largest |difference| /
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


def summary(records: Sequence[Record]) -> str:
    """Counts by status; where there are times, the geometric mean of the speedups, the slowest one, and the totals."""
    statuses = [record.status for record in records]
    lines = [", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses)) or "no problems"]
    compared = [(record.speedup, record) for record in records if record.speedup is not None]
    if compared:
        mean = geometric_mean([speedup for speedup, _ in compared])
        least, slowest = min(compared, key=lambda pair: pair[0])
        peers = ", ".join(dict.fromkeys(record.peer or "" for _, record in compared))
        lines.append(f"speedup over {peers}: geometric mean {mean:.3f} of {len(compared)}, ")
        lines[-1] += f"least {least:.3f} ({slowest.title})"
    timed = [record for record in records if record.us is not None]
    if timed:
        total = sum((record.us or 0) * record.count for record in timed)
        lines.append(f"time of all, with repetitions: {total / 1e3:.2f} ms")
        if len(compared) == len(timed):
            peer_total = sum((record.peer_us or 0) * record.count for record in timed)
            lines[-1] += f", peer {peer_total / 1e3:.2f} ms"
    return "\n".join(lines)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))
