"""This machine's measured peaks in f32 FMA and in other multiply-adds: what "percent of peak" is a percentage of."""

from functools import cache
from time import perf_counter

from asmdnn.generators.probes.peak import PeakSpec
from asmdnn.isa.multiply_adds import FMA
from asmdnn.isa.vectors import f32_level
from asmdnn.jit.native import ffi
from asmdnn.planning.host import require_executable
from asmdnn.runtime.kernels import kernel_cache
from asmdnn.runtime.threads import openmp

PASSES = 400_000
SAMPLES = 9


def multiply_add_gflops(isa: str, instruction: str = FMA, threads: int = 1, reached: float = 0.0) -> float:
    """GFLOP/s that `threads` threads reach together on register-only multiply-adds; the best of 9 samples of some ms.

    instruction: one of isa/multiply_adds.py, counted in operations of its own types.  isa: a level that has it.
    The best and not the median: a ceiling that other work on the machine lowers is none.  Measured once a process, and
    again if a result has `reached` more, which may only raise it.  Raises Unimplemented for a level that this machine
    cannot execute.
    """
    require_executable(isa)
    spec = PeakSpec(isa=f32_level(isa) if instruction == FMA else isa, instruction=instruction)
    best = _best(spec, threads)
    if reached > best[0]:
        best[0] = max(best[0], _measured(spec, threads))
    return best[0]


@cache
def _best(spec: PeakSpec, threads: int) -> list[float]:
    """The one number, which may rise."""
    return [_measured(spec, threads)]


def _measured(spec: PeakSpec, threads: int) -> float:
    (kernel,) = kernel_cache().load([spec])
    frame = ffi.new("int64_t[1]", [PASSES])
    entry = ffi.cast("void (*)(void *)", kernel.address)
    runtime = openmp() if threads > 1 else None

    def once() -> float:
        start = perf_counter()
        if runtime:
            runtime.parallel(entry, frame, threads, 0)
        else:
            entry(frame)
        return perf_counter() - start

    once()
    team = threads if runtime else 1
    return 1e-9 * team * spec.flops * PASSES / min(once() for _ in range(SAMPLES))
