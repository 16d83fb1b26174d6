"""The measured ceilings of a core: clock, multiply-adds, and the bandwidth of each cache and of memory.

Measured once for a CPU and an ISA level, and kept in the cache directory as JSON, by the CPU's name; measured again
when a result exceeds them.  How many CPUs other programs kept busy meanwhile is kept with them.
"""

import json
import math
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

import numpy as np

from asmdnn.files import replace_file
from asmdnn.generators.probes.bandwidth import ADDITIONS, BandwidthSpec, ClockSpec
from asmdnn.isa.cpu import cache_sizes, cpu_name
from asmdnn.isa.vectors import f32_level, vector_class
from asmdnn.jit.native import ffi
from asmdnn.jit.store import default_directory, enabled
from asmdnn.planning.host import require_executable
from asmdnn.records import dataclass, fields, replace
from asmdnn.runtime.kernels import kernel_cache
from asmdnn.runtime.other_work import QUIET_CPUS, OtherWork
from asmdnn.runtime.peak import multiply_add_gflops
from asmdnn.runtime.scratch import aligned_bytes

FILE = "rates.json"
SAMPLES = 7
CLOCK_PASSES = 100_000
BYTES_OF_SAMPLE = 1 << 28  # read in one sample: some ms at any rate
USUAL_L3_BYTES = 32 << 20
LARGEST_BUFFER_BYTES = 1 << 29


@dataclass(frozen=True, slots=True)
class Rates:
    """One core's ceilings.  gbs: 10^9 bytes per second, read only; the best samples, like every ceiling.

    busy_cpus: how many CPUs other programs kept busy while these were measured, on average.
    """

    cpu: str
    isa: str
    clock_ghz: float
    fma_gflops: float
    l1_gbs: float
    l2_gbs: float
    l3_gbs: float
    dram_gbs: float
    busy_cpus: float = 0.0

    @property
    def roofs(self) -> tuple[tuple[str, float], ...]:
        """Memory levels from the core outwards, in GB/s."""
        return ("L1", self.l1_gbs), ("L2", self.l2_gbs), ("L3", self.l3_gbs), ("DRAM", self.dram_gbs)

    @property
    def disturbance(self) -> str:
        """A sentence if these were taken under load, else ""."""
        if self.busy_cpus < QUIET_CPUS:
            return ""
        return f"measured while other programs kept {self.busy_cpus:.1f} CPUs busy, so these may be too low"


def rates(isa: str, again: bool = False, exceeded: Rates | None = None) -> Rates:
    """The kept rates of this CPU, measured now if there are none or `again`; or if a result has `exceeded` those, which
    then only rise.  Raises Unimplemented for an ISA level that this machine cannot execute."""
    require_executable(isa)
    level = f32_level(isa)
    kept = None if again or exceeded or not enabled() else _kept(level)
    if kept:
        return kept
    measured = measure(level)
    if exceeded:
        higher = {f.name: max(getattr(measured, f.name), getattr(exceeded, f.name)) for f in fields(Rates)[2:-1]}
        measured = replace(measured, **higher)
    if enabled():
        _keep(measured)
    return measured


def forget() -> bool:
    """Remove what is kept; whether there was anything."""
    with suppress(OSError):
        _path().unlink()
        return True
    return False


def measure(isa: str) -> Rates:
    """Some seconds of work on the calling thread."""
    sizes = cache_sizes()
    l1, l2, l3 = sizes.l1d_bytes or 32 << 10, sizes.l2_bytes or 512 << 10, sizes.l3_bytes or USUAL_L3_BYTES
    others = OtherWork()
    within = (l1 // 2, (l1 + l2) // 2, min((l2 + l3) // 2, 4 * l2), min(4 * l3, LARGEST_BUFFER_BYTES))
    found = Rates(
        cpu_name(),
        isa,
        round(clock_ghz(), 3),
        round(multiply_add_gflops(isa), 1),
        *(round(bandwidth_gbs(isa, size), 1) for size in within),
    )
    return replace(found, busy_cpus=round(others.cpus, 1))


def clock_ghz() -> float:
    """Cycles per nanosecond while nothing but additions runs: what times are converted to cycles with."""
    return CLOCK_PASSES * ADDITIONS / (1e9 * _best_seconds(ClockSpec(), [CLOCK_PASSES], SAMPLES))


def bandwidth_gbs(isa: str, buffer_bytes: int) -> float:
    """GB/s of reading a buffer over and over."""
    spec = BandwidthSpec(isa=isa)
    block = spec.block_bytes(vector_class(isa).bytes)
    blocks = max(1, buffer_bytes // block)
    data = aligned_bytes(blocks * block)
    data[:] = np.uint8(1)  # pages that were never written are all the same page
    passes = max(1, BYTES_OF_SAMPLE // data.nbytes)
    seconds = _best_seconds(spec, [data.ctypes.data, blocks, passes], SAMPLES)
    return passes * data.nbytes / (1e9 * seconds)


def _best_seconds(spec: BandwidthSpec | ClockSpec, frame: list[int], samples: int) -> float:
    (kernel,) = kernel_cache().load([spec])
    words = ffi.new("int64_t[]", frame)
    entry = ffi.cast("void (*)(void *)", kernel.address)

    def once() -> float:
        start = perf_counter()
        entry(words)
        return perf_counter() - start

    once()
    return min(once() for _ in range(samples))


def _kept(isa: str) -> Rates | None:
    """What the file says of this CPU; None for anything that is not a sane set of rates."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        entry = json.loads(_path().read_text(encoding="utf-8"))[cpu_name()][isa]
        values = [entry[f.name] for f in fields(Rates)]
        *numbers, busy = values[2:]
        sane = all(type(x) in (int, float) and 0 < x < math.inf for x in (*numbers, 1 + busy))
        if values[:2] == [cpu_name(), isa] and sane:
            return Rates(*values)
    return None


def _keep(measured: Rates) -> None:
    """Beside the rates of other CPUs and levels; a directory that cannot be written costs a measurement next time."""
    table: dict[str, dict[str, object]] = {}
    with suppress(OSError, ValueError):
        found = json.loads(_path().read_text(encoding="utf-8"))
        table = found if isinstance(found, dict) else {}
    of_cpu = table.get(measured.cpu)
    table[measured.cpu] = {**(of_cpu if isinstance(of_cpu, dict) else {}), measured.isa: asdict(measured)}
    with suppress(OSError):
        _path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(_path(), json.dumps(table, indent=1).encode())


def _path() -> Path:
    return default_directory() / FILE
