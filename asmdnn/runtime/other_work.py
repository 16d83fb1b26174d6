"""How much other programs keep this machine's CPUs busy while something is timed."""

import os
from contextlib import suppress
from time import perf_counter, process_time
from typing import Final, TextIO

QUIET_CPUS: Final = 0.2  # what a machine at rest does beside a measurement


class OtherWork:
    """From when it is made: what all CPUs work for other programs."""

    def __init__(self) -> None:
        self._start, self._busy = perf_counter(), busy_seconds()

    @property
    def cpus(self) -> float:
        """How many CPUs they kept busy, on average."""
        seconds = perf_counter() - self._start
        return max(0.0, busy_seconds() - self._busy) / seconds if seconds else 0.0

    def warn(self, stream: TextIO) -> None:
        """A line on `stream` if that surely disturbed what was timed: the system's clock may be wrong by a tick for
        each CPU."""
        doubt = (os.cpu_count() or 1) / os.sysconf("SC_CLK_TCK") / max(perf_counter() - self._start, 1e-9)
        cpus = self.cpus - doubt
        if cpus >= QUIET_CPUS:
            print(f"The machine is busy: other programs kept {cpus:.1f} CPUs, so times may be too long.", file=stream)


def busy_seconds() -> float:
    """What all CPUs have worked for others than this process, as far as the system tells; they may lie outside of a
    container, where they share caches and memory all the same.  0 where it tells nothing."""
    with suppress(OSError, ValueError, IndexError), open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, soft_irq, steal = map(int, file.readline().split()[1:9])
        ticks = user + nice + system + irq + soft_irq + steal
        return ticks / os.sysconf("SC_CLK_TCK") - process_time()
    return 0.0
