"""`f.bench(x, y, 4096)`: how long a call takes, in nanoseconds and in cycles of the time stamp counter.

The calls are made by a function of this package, so that no Python stands between them.  `bench("void f(float *x)",
address, x)` times any other C function in the same way, to compare with.
"""

import functools
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final

from asmdnn.asm.builder import FunctionBuilder
from asmdnn.asm.footprint import extents_of
from asmdnn.asm.levels import level_of
from asmdnn.asm.machine import written
from asmdnn.asm.prototype import INTEGER_REGISTERS, VECTOR_ARGUMENTS, WORD_BYTES, Prototype, parse_prototype
from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.isa.assembler import Register, mem, register
from asmdnn.isa.registers import CALLEE_SAVED
from asmdnn.jit.kernels import LoadedKernel
from asmdnn.jit.native import ffi
from asmdnn.records import dataclass

ROUND_SECONDS: Final = 2e-3
ROUNDS: Final = 15
FIRST_PAGE_BYTES: Final = 4096  # in which no code lies: a symbol that was not found has the address 0
TICKS: Final = register("r64", 0), register("r64", 2)  # rax, rdx: the halves that RDTSC gives
_RUN: Final = "uint64_t(*)(uint64_t *, double *, void *, size_t)"


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
    integers, floats = ffi.new("uint64_t[]", len(INTEGER_REGISTERS)), ffi.new("double[]", VECTOR_ARGUMENTS)
    for argument, value in zip(prototype.arguments, made, strict=True):
        if argument.type.is_pointer:
            integers[argument.place] = int(ffi.cast("uintptr_t", value))
        elif argument.type.is_float:
            ffi.cast(f"{argument.type.text} *", floats + argument.place)[0] = value
        else:
            integers[argument.place] = int(ffi.cast("uint64_t", value))
    run = ffi.cast(_RUN, _repeat().address)
    count = 1
    while (seconds := _timed(run, integers, floats, address, count)[0]) < ROUND_SECONDS and count < 1 << 30:
        count *= 2 if seconds > ROUND_SECONDS / 8 else 8
    rounds = sorted(_timed(run, integers, floats, address, count) for _ in range(ROUNDS))
    least, median = rounds[0], rounds[ROUNDS // 2]
    ticks = min(ticks for _, ticks in rounds)
    return Timing(least[0] / count * 1e9, median[0] / count * 1e9, ticks / count, count)


def bench(prototype: str, address: int, *arguments: Any) -> Timing:
    """As `CFunction.bench`, of the C function at an address, such as a compiler's: `asm.bench("size_t strlen(const char
    *s)", address, text)`.

    address: where the function lies, as long as its library is loaded.
    Types of arrays are checked, not their sizes: nothing is stated of what the function touches.  Raises
    InvalidArguments for a prototype or arguments that do not fit.
    """
    from asmdnn.asm.converters import Converters  # and with it numpy

    parsed = parse_prototype(prototype)
    if not isinstance(address, int) or not FIRST_PAGE_BYTES <= address < 1 << 64:
        raise InvalidArguments(f"address must be an integer, where code of {parsed.name!r} lies, not {shown(address)}.")
    pointers = [argument for argument in parsed.arguments if argument.type.is_pointer]
    reads = extents_of(parsed, {a.name: "0" for a in pointers}, "reads")
    writes = extents_of(parsed, {a.name: "0" for a in pointers if not a.type.is_const}, "writes")
    return time_calls(parsed, address, Converters(parsed, reads, writes)(arguments))


def _timed(run: Any, integers: Any, floats: Any, address: int, count: int) -> tuple[float, int]:
    start = perf_counter()
    ticks = run(integers, floats, ffi.cast("void *", address), count)
    return perf_counter() - start, int(ticks)


@functools.cache
def _repeat() -> LoadedKernel:
    prototype = parse_prototype(
        "uint64_t repeat(const uint64_t *integers, const double *numbers, void *target, size_t times)"
    )
    return written(_repeated, prototype, level_of("avx2"), {}).load()


def _repeated(f: FunctionBuilder, integers: Register, numbers: Register, target: Register, times: Register) -> None:
    """Calls the target so often, with these registers; the ticks that all calls took."""
    kept = [f.gp.claim(register("r64", number), "kept over calls") for number in CALLEE_SAVED[:5]]
    for reg, value in zip(kept, (integers, numbers, target, times), strict=False):
        f.MOV(reg, value)
    words, reals, callee, left, start = kept
    _read_ticks(f, start)
    with f.steps(left, 1, "calls"):
        for place in range(VECTOR_ARGUMENTS):
            f.VMOVSD(register("xmm", place), mem(reals, WORD_BYTES * place))
        for place, number in enumerate(INTEGER_REGISTERS):
            f.MOV(register("r64", number), mem(words, WORD_BYTES * place))
        f.asm.call(callee)
    _read_ticks(f, words)
    f.SUB(words, start)
    f.ret(words)


def _read_ticks(f: FunctionBuilder, into: Register) -> None:
    """The time stamp counter, when all before is done."""
    low, high = TICKS
    f.LFENCE()
    f.RDTSC()
    f.SHL(high, 32)
    f.LEA(into, mem(low, index=high))
