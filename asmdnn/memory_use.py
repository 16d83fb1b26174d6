"""What the library holds, by whom, in bytes; limits on it, and how to let it go."""

from typing import Any

from asmdnn.errors import InvalidArguments, resembling, shown
from asmdnn.jit import packs
from asmdnn.ops.calls import calls
from asmdnn.planning.own_row import forget_row
from asmdnn.primitives.core.engine import forget_engines
from asmdnn.primitives.core.implementation import plans
from asmdnn.records import dataclass
from asmdnn.runtime.caches import Cache
from asmdnn.runtime.execution import live_programs, programs
from asmdnn.runtime.kernels import kernel_cache
from asmdnn.runtime.networks import networks
from asmdnn.runtime.scratch import ScratchPool, scratch_pool

LIMITED: dict[str, Cache[Any, Any] | ScratchPool] = {
    "plans": plans, "programs": programs, "calls": calls, "networks": networks, "scratchpads": scratch_pool,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Holding:
    """count: how many; held_bytes: together; limit_bytes: of what is kept for later use, None without a limit."""

    count: int
    held_bytes: int
    limit_bytes: int | None
    what: str


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """plans: kept for equal requests.  programs: kept for equal primitives, with their plans.  primitives: programs in
    use by primitives that the caller holds, beyond those kept.  calls: kept by the functions of ops and blas.
    networks: of models with open dims, a network for each shape, without its weights.
    scratchpads: idle, for the next calls; busy: of calls that run now, or keep their own.  code: mapped kernels.
    packs: loaded files.

    A plan counts where it is kept, with every program of it and every call of those: rows are no sum.
    """

    plans: Holding
    programs: Holding
    primitives: Holding
    calls: Holding
    networks: Holding
    scratchpads: Holding
    busy: Holding
    code: Holding
    packs: Holding

    def __str__(self) -> str:
        lines = [f"{'':12}{'count':>8}{'bytes':>14}{'limit':>14}"]
        for name in self.__slots__:
            holding = getattr(self, name)
            limit = "" if holding.limit_bytes is None else holding.limit_bytes
            lines.append(f"{name:12}{holding.count:8}{holding.held_bytes:14}{limit:>14}  {holding.what}")
        return "\n".join(lines)


def memory_report() -> MemoryReport:
    """What the library holds now; print it for a table."""
    kept = list(programs.entries.values())
    others = {id(program): program for program in live_programs()}
    for program in kept:
        others.pop(id(program), None)
    mappings = {id(kernel.keep_alive): kernel.keep_alive for kernel in kernel_cache().loaded()}
    loaded = packs.loaded()
    return MemoryReport(
        plans=Holding(len(plans.entries), plans.held_bytes, plans.limit_bytes, "kept for equal requests"),
        programs=Holding(len(kept), programs.held_bytes, programs.limit_bytes, "kept for equal primitives"),
        primitives=Holding(
            len(others), sum(p.kept_bytes for p in others.values()), None, "of primitives that you hold"
        ),
        calls=Holding(len(calls.entries), calls.held_bytes, calls.limit_bytes, "kept by ops and blas"),
        networks=Holding(len(networks.entries), networks.held_bytes, networks.limit_bytes, "shapes of open networks"),
        scratchpads=Holding(scratch_pool.idle_count, scratch_pool.idle_bytes, scratch_pool.limit_bytes, "idle"),
        busy=Holding(scratch_pool.busy_count, scratch_pool.busy_bytes, None, "of calls that run or keep their own"),
        code=Holding(
            len(mappings), sum(mapping.size_bytes for mapping in mappings.values()), None, "mapped machine code"
        ),
        packs=Holding(len(loaded), sum(pack.size_bytes for pack in loaded), None, "files loaded"),
    )


def clear_caches() -> None:
    """Let go of everything that is kept for later use.

    Primitives, bound calls and packs stay as they are; code is unmapped when the last primitive that uses it goes.
    """
    for cache in (calls, networks, programs, plans, scratch_pool):
        cache.clear()
    forget_row()
    forget_engines()


def set_memory_limits(**limit_bytes: int) -> None:
    """Limits in bytes, from now on, of what is kept of `plans`, `programs`, `calls`, `networks` and `scratchpads`.

    What is over is let go at once, what has not been used lately first; 0 keeps nothing.  They go before those of
    ASMDNN_MEMORY_LIMITS, such as plans:16M,scratchpads:1G.  Raises InvalidArguments.
    """
    for name, limit in limit_bytes.items():
        if name not in LIMITED:
            raise InvalidArguments(
                f"there is no limit {name[:40]!r}, use one of {', '.join(LIMITED)}{resembling(name, LIMITED)}"
            )
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise InvalidArguments(f"{name} must be a number of bytes, an integer of at least 0, not {shown(limit)}")
    for name, limit in limit_bytes.items():
        LIMITED[name].limit(limit)
