"""`@asm.function(...)`: a Python function that writes instructions becomes one that runs them."""

import inspect
from collections.abc import Callable, Mapping

from asmdnn.asm.calls import call_target
from asmdnn.asm.footprint import extents_of
from asmdnn.asm.function import CFunction
from asmdnn.asm.levels import levels_of
from asmdnn.asm.machine import Body
from asmdnn.asm.prototype import parse_prototype
from asmdnn.errors import InvalidArguments


def function(
    prototype: str,
    isa: str | tuple[str, ...] = "avx2",
    *,
    reads: Mapping[str, object] | None = None,
    writes: Mapping[str, object] | None = None,
    calls: Mapping[str, object] | None = None,
    frame_pointer: bool = False,
    cache: object = None,
) -> Callable[[Body], CFunction]:
    """Decorates `def body(f, x, y, n)`, which writes the instructions of `prototype` to the builder `f`.

    prototype: C, "float dot(const float *x, const float *y, size_t n)"; integers, pointers, float, double.
    isa: the levels that the body is written for, such as ("avx2", "avx512_core+popcnt"); the best one at hand runs.
    reads, writes: by pointer argument the bytes after it that are touched, as an expression of the integer arguments:
    {"x": "4*n"}.  Calls with arrays check them.
    frame_pointer: rbp points to the caller's rbp, for profilers that follow such chains (perf --call-graph fp).
    cache: keeps the code on disk, for as long as the body's file, the numbers and texts that it reads there, the
    assembler, and these values are the same: numbers, texts and tuples that say what the body reads of other files; ()
    if nothing.  Not for functions that call others.
    calls: by name what the body may call: a C type for a function of libc or libm, or (type, address or callable).

    Raises InvalidArguments for a prototype, level or footprint that cannot be; the body runs at the first use.
    """
    parsed = parse_prototype(prototype)
    levels = levels_of(isa, parsed.name)
    extents = extents_of(parsed, reads or {}, "reads"), extents_of(parsed, writes or {}, "writes")
    targets = {name: call_target(name, stated) for name, stated in (calls or {}).items()}

    if cache is not None:
        from asmdnn.asm.stored import check_values

        check_values(parsed.name, cache)
        if targets:
            raise InvalidArguments(f"cache of {parsed.name!r}: it calls addresses that only this process has.")

    def decorate(body: Body) -> CFunction:
        names = ["f", *(argument.name for argument in parsed.arguments)]
        try:
            inspect.signature(body).bind(*names)
        except TypeError:
            raise InvalidArguments(f"the body of {parsed.name!r} must take ({', '.join(names)}).") from None
        return CFunction(body, parsed, levels, targets, extents, frame_pointer=frame_pointer, cache=cache)

    return decorate
