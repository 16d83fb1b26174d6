"""What an analysis says, as frozen values; renderers (text, json, chart) only lay it out."""

from collections.abc import Iterable, Mapping

from asmdnn.isa.multiply_adds import FMA
from asmdnn.records import dataclass
from asmdnn.runtime.rates import Rates

MultiplyAdds = Mapping[str, float]  # flops, by the instruction whose peak they are compared with


def added(weighted: Iterable[tuple[MultiplyAdds, float]]) -> dict[str, float]:
    """The sums of flops, each times its number."""
    found: dict[str, float] = {}
    for flops, times in weighted:
        for name, count in flops.items():
            found[name] = found.get(name, 0) + count * times
    return {name: count for name, count in found.items() if count}


def peak_of_all(flops: MultiplyAdds, peaks: Mapping[str, float]) -> float:
    """GFLOP/s of these one after the other, each at its peak; FMA's, if there are none."""
    seconds = sum(count / peaks[name] for name, count in flops.items())
    return sum(flops.values()) / seconds if seconds else peaks[FMA]


@dataclass(frozen=True, slots=True)
class Bound:
    """What llvm-mca says of one pass through some instructions, in cycles.

    ports: the busiest execution resource, or the issue width if that is more.  simulated: with latencies and
    dependencies, pass after pass.
    """

    ports: float
    ports_limit: str
    simulated: float


@dataclass(frozen=True, slots=True)
class KernelPart:
    """A loop of a kernel, or its instructions outside of all loops (name "", trips 1).

    trips: passes in a call, on average over the kernel's calls; None if it cannot be told from the code and the plan.
    multiply_adds: the flops by the instruction whose peak they are compared with, FMA's for all but dot products.
    All counts are of one pass, inner loops not included.
    """

    name: str
    depth: int
    trips: float | None
    instructions: int
    mix: dict[str, int]
    multiply_adds: dict[str, int]
    loaded_bytes: int
    stored_bytes: int
    bound: Bound | None

    @property
    def flops(self) -> int:
        return sum(self.multiply_adds.values())

    @property
    def intensity(self) -> float | None:
        """flops for each byte that moves between registers and L1; None where nothing moves."""
        moved = self.loaded_bytes + self.stored_bytes
        return self.flops / moved if moved else None


@dataclass(frozen=True, slots=True)
class Measured:
    """Cycles of one call on this machine.

    hot: the same call over and over, one for each tap list, their average over all calls.  in_order: all its calls of
    one phase, in the plan's order.
    """

    hot: float
    in_order: float


@dataclass(frozen=True, slots=True)
class KernelAnalysis:
    """A kernel; expected: the planner's own model, cycles of a call on average."""

    number: int
    name: str
    calls: int
    parts: tuple[KernelPart, ...]
    expected: float
    measured: Measured | None

    @property
    def flops(self) -> float | None:
        """Of one call on average; None where the trips of a loop with arithmetic are unknown."""
        found = self.multiply_adds
        return None if found is None else sum(found.values())

    @property
    def multiply_adds(self) -> dict[str, float] | None:
        """The flops by instruction, as of a part; None where they are unknown."""
        if any(part.trips is None and part.flops for part in self.parts):
            return None
        return added((part.multiply_adds, part.trips or 0) for part in self.parts)

    def bound_cycles(self, simulated: bool) -> float | None:
        """Of one call: every part's bound times its trips; None where either is unknown."""
        total = 0.0
        for part in self.parts:
            if part.bound is None or part.trips is None:
                return None
            total += part.trips * (part.bound.simulated if simulated else part.bound.ports)
        return total


@dataclass(frozen=True, slots=True)
class Point:
    """The primitive in the roofline: one call on one thread.

    multiply_adds: its flops by instruction, none where they cannot be told.  bytes: every tensor once, outputs that are
    also read twice: what must cross DRAM if nothing is in a cache.  peak_gflops: `peak_of_all` of the flops.
    """

    multiply_adds: MultiplyAdds
    bytes: int
    seconds: float
    peak_gflops: float

    @property
    def flops(self) -> float:
        return sum(self.multiply_adds.values())

    @property
    def share(self) -> float:
        """Of the peak."""
        return self.gflops / self.peak_gflops

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes

    @property
    def gflops(self) -> float:
        return 1e-9 * self.flops / self.seconds

    @property
    def gbs(self) -> float:
        return 1e-9 * self.bytes / self.seconds

    def roof(self, gbs: float) -> float:
        """What a memory level of that bandwidth allows at this intensity, in GFLOP/s."""
        return min(self.peak_gflops, self.intensity * gbs)


@dataclass(frozen=True, slots=True)
class Analysis:
    """All of it.  mca: the CPU model, or why there is no bound.  not_measured: why, or "".

    peaks: GFLOP/s of a core in each multiply-add that the kernels have, and in FMA; none where nothing was measured.
    """

    problem: str
    implementation: str
    isa: str
    mca: str
    not_measured: str
    kernels: tuple[KernelAnalysis, ...]
    rates: Rates | None
    peaks: dict[str, float]
    point: Point | None
