"""The end of a run of `asmdnn bench`: counts, times and failures, taken in record by record."""

import math
from collections import Counter

from asmdnn.bench.report import Record

# In benchdnn's order, and what it counts as passed after, where there are some.
COUNTED = ("passed", "skipped", "mistrusted", "unimplemented", "invalid_arguments", "failed", "listed")
OTHERS = ("timed", "executed", "initialized")
SHOWN_FAILURES = 10  # benchdnn's


class Tally:
    """`add` records; `text()` is what they come to.  Its size does not depend on their number."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._failures: list[Record] = []
        self._unshown = 0
        self._compared, self._logarithms, self._low_logarithms = 0, 0.0, 0.0
        self._slowest: tuple[float, str] = (math.inf, "")
        self._peers: dict[str, None] = {}
        self._timed = 0
        self._us, self._peer_us = 0.0, 0.0

    def add(self, record: Record) -> None:
        self._counts[record.status] += 1
        if record.ok is False:
            self._fail(record)
        if record.us is not None:
            self._timed += 1
            self._us += record.us * record.count
        if record.speedup is not None:
            self._compared += 1
            self._logarithms += math.log(record.speedup)
            self._low_logarithms += math.log(record.low_speedup or record.speedup)
            self._peer_us += (record.peer_us or 0) * record.count
            self._slowest = min(self._slowest, (record.speedup, record.title))
            self._peers[record.peer or ""] = None

    def _fail(self, record: Record) -> None:
        if len(self._failures) < SHOWN_FAILURES:
            self._failures.append(record)
        else:
            self._unshown += 1

    @property
    def has_failed(self) -> bool:
        """Something is wrong, was refused, or could not be read."""
        return bool(self._failures)

    @property
    def has_times(self) -> bool:
        return self._timed > 0

    @property
    def is_list(self) -> bool:
        """Whether nothing but a list was asked for."""
        return set(self._counts) <= {"listed"}

    def text(self, failures: bool = True) -> str:
        """The first failures, if there are more records than that; where there are times, the geometric mean of the
        speedups, the slowest one, and the totals; last, counts by status as benchdnn writes them."""
        return "\n".join([*(self._failure_lines() if failures else ()), *self._time_lines(), self._count_line()])

    def _failure_lines(self) -> list[str]:
        if not self._failures or self._counts.total() <= SHOWN_FAILURES:
            return []
        lines = [f"  {record.status}: {record.args or record.title}: {record.reason}" for record in self._failures]
        return ["failures:", *lines, *([f"  and {self._unshown} more"] if self._unshown else [])]

    def _time_lines(self) -> list[str]:
        lines = []
        if self._compared:
            logarithms, (least, title) = (self._logarithms, self._low_logarithms), self._slowest
            mean, low_mean = (math.exp(total / self._compared) for total in logarithms)
            lines.append(
                f"speedup over {', '.join(self._peers)}: geometric mean {mean:.3f} of {self._compared}, "
                f"at the 10th percentile {low_mean:.3f}, least {least:.3f} ({title})"
            )
        if self._timed:
            peer = f", peer {self._peer_us / 1e3:.2f} ms" if self._compared == self._timed else ""
            lines.append(f"time of all, with repetitions: {self._us / 1e3:.2f} ms{peer}")
        return lines

    def _count_line(self) -> str:
        """tests:3 passed:2 skipped:1 and so on."""
        names = (*COUNTED, *(name for name in OTHERS if self._counts[name]))
        return " ".join((f"tests:{self._counts.total()}", *(f"{name}:{self._counts[name]}" for name in names)))
