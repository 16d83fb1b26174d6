"""What an analysis says, as frozen values; renderers (text, json, chart) only lay it out."""

from asmdnn.records import dataclass
from asmdnn.runtime.rates import Rates


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
    All counts are of one pass, inner loops not included.
    """

    name: str
    depth: int
    trips: float | None
    instructions: int
    mix: dict[str, int]
    flops: int
    loaded_bytes: int
    stored_bytes: int
    bound: Bound | None

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
        if any(part.trips is None and part.flops for part in self.parts):
            return None
        return sum(part.flops * (part.trips or 0) for part in self.parts)

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

    bytes: every tensor once, outputs that are also read twice: what must cross DRAM if nothing is in a cache.
    """

    flops: float
    bytes: int
    seconds: float

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes

    @property
    def gflops(self) -> float:
        return 1e-9 * self.flops / self.seconds

    @property
    def gbs(self) -> float:
        return 1e-9 * self.bytes / self.seconds

    def roof(self, rates: Rates, gbs: float) -> float:
        """What a memory level of that bandwidth allows at this intensity, in GFLOP/s."""
        return min(rates.fma_gflops, self.intensity * gbs)


@dataclass(frozen=True, slots=True)
class Analysis:
    """All of it.  mca: the CPU model, or why there is no bound.  not_measured: why, or ""."""

    problem: str
    implementation: str
    isa: str
    mca: str
    not_measured: str
    kernels: tuple[KernelAnalysis, ...]
    rates: Rates | None
    point: Point | None
