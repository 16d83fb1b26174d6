"""`f.bench(x, y, 4096)`: how long a call takes, in nanoseconds and in cycles of the time stamp counter.

The calls are made by a function of this package, so that no Python stands between them.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from asmdnn.asm.prototype import INTEGER_REGISTERS, WORD_BYTES, Prototype
from asmdnn.errors import Unimplemented
from asmdnn.jit.native import ffi

ROUND_SECONDS: Final = 2e-3
ROUNDS: Final = 15


@dataclass(frozen=True)
class Timing:
    """Of a call, the loop's own 2 ns included.  ticks: of the time stamp counter.  Least round, and the median."""

    ns: float
    median_ns: float
    ticks: float
    calls: int

    def __str__(self) -> str:
        return f"{self.ns:.1f} ns ({self.ticks:.0f} ticks; median {self.median_ns:.1f} ns, {self.calls} calls a round)"


def time_calls(prototype: Prototype, address: int, made: Sequence[Any]) -> Timing:
    """Times the function at `address` with arguments as cffi takes them; Unimplemented for those on the stack."""
    if any(argument.on_stack for argument in prototype.arguments):
        raise Unimplemented(f"bench of {prototype.name!r}: arguments on the stack cannot be timed.")
    integers, floats = ffi.new("uint64_t[]", len(INTEGER_REGISTERS)), ffi.new("double[]", 8)
    for argument, value in zip(prototype.arguments, made, strict=True):
        if argument.type.is_pointer:
            integers[argument.place] = int(ffi.cast("uintptr_t", value))
        elif argument.type.is_float:
            ffi.cast(f"{argument.type.text} *", floats + argument.place)[0] = value
        else:
            integers[argument.place] = int(ffi.cast("uint64_t", value))
    run = _repeat().raw
    count = 1
    while (seconds := _timed(run, integers, floats, address, count)[0]) < ROUND_SECONDS and count < 1 << 30:
        count *= 2 if seconds > ROUND_SECONDS / 8 else 8
    rounds = sorted(_timed(run, integers, floats, address, count) for _ in range(ROUNDS))
    least, median = rounds[0], rounds[ROUNDS // 2]
    ticks = min(ticks for _, ticks in rounds)
    return Timing(least[0] / count * 1e9, median[0] / count * 1e9, ticks / count, count)


def _timed(run: Any, integers: Any, floats: Any, address: int, count: int) -> tuple[float, int]:
    start = perf_counter()
    ticks = run(integers, floats, ffi.cast("void *", address), count)
    return perf_counter() - start, int(ticks)


@functools.cache
def _repeat() -> Any:
    """uint64_t(registers, numbers, function, times): calls it so often; the ticks that took."""
    from asmdnn.asm.function import function
    from asmdnn.isa.assembler import mem, register

    @function("uint64_t repeat(const uint64_t *integers, const double *numbers, void *target, size_t times)")
    def repeat(f: Any, integers: Any, numbers: Any, target: Any, times: Any) -> None:
        held = [f.gp.claim(register("r64", number), "held") for number in (12, 13, 14, 15, 3)]
        for reg, value in zip(held, (integers, numbers, target, times), strict=False):
            f.MOV(reg, value)
        words, reals, callee, left, start = held
        _read_ticks(f, start)
        with f.steps(left, 1, "calls"):
            for place in range(8):
                f.VMOVSD(register("xmm", place), mem(reals, WORD_BYTES * place))
            for place, number in enumerate(INTEGER_REGISTERS):
                f.MOV(register("r64", number), mem(words, WORD_BYTES * place))
            f.asm.call(callee)
        end = register("r64", 10)
        _read_ticks(f, end)
        f.SUB(end, start)
        f.ret(end)

    return repeat


def _read_ticks(f: Any, into: Any) -> None:
    """The time stamp counter, when all before is done."""
    from asmdnn.isa.assembler import register

    rax, rdx = register("r64", 0), register("r64", 2)
    f.LFENCE()
    f.RDTSC()
    f.SHL(rdx, 32)
    f.LEA(into, _both(rax, rdx))


def _both(rax: Any, rdx: Any) -> Any:
    from asmdnn.isa.assembler import mem

    return mem(rax, index=rdx)
