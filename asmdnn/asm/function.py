"""`@asm.function(...)`: a Python function that writes instructions becomes one that runs them."""

import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from asmdnn.asm.builder import Builder
from asmdnn.asm.calls import CallTarget, call_target, raise_pending
from asmdnn.asm.footprint import extents_of
from asmdnn.asm.prototype import Prototype, parse_prototype
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.code import Code, Line
from asmdnn.isa.cpu import cpu_features
from asmdnn.isa.levels import isa_of
from asmdnn.jit.kernels import Fetched, LoadedKernel, mapped
from asmdnn.jit.native import ffi

if TYPE_CHECKING:
    from pathlib import Path

    from asmdnn.asm.comparison import Comparison, Draw, Tolerance
    from asmdnn.asm.converters import Converters
    from asmdnn.asm.proof import Proof
    from asmdnn.asm.timing import Timing

Body = Callable[..., None]


class Machine:
    """A function at one ISA level: its code, and, on a CPU that has the level, its address."""

    def __init__(self, prototype: Prototype, isa: str, code: Code, keep_alive: object) -> None:
        self.prototype, self.isa, self.code, self.keep_alive = prototype, isa, code, keep_alive
        self._lock = threading.Lock()
        self._loaded: LoadedKernel | None = None

    def load(self) -> LoadedKernel:
        """In executable memory; profilers are told.  Raises Unimplemented on a CPU that lacks the level."""
        with self._lock:
            if self._loaded is None:
                missing = isa_of(self.isa).features - cpu_features()
                if missing:
                    raise Unimplemented(
                        f"{self.prototype.name} at {self.isa} needs {', '.join(sorted(missing))}, "
                        "which this CPU lacks: prove it, or read its listing."
                    )
                (self._loaded,) = mapped([Fetched(self.prototype.name, self.code.data, "generated")])
            return self._loaded


class Function:
    """A function in machine code: call it with arrays and numbers, or `raw` with addresses.

    `f(x, y, n)` checks every argument: arrays have the pointer's type, are contiguous, as long as `reads` and `writes`
    say, and writable where that is said.  A pointer of which nothing is stated is refused: use `raw`.
    `f.raw(px, py, n)` is the cffi function itself.  Both release the GIL while the code runs.
    The function exists once for each level, made when it is first asked for; it lives as long as this object.
    """

    def __init__(
        self, body: Body, prototype: Prototype, levels: tuple[str, ...], calls: Mapping[str, CallTarget], **extents: Any
    ) -> None:
        self._body, self._levels, self._calls = body, levels, calls
        self._prototype = prototype
        self.reads, self.writes = extents["reads"], extents["writes"]
        self._made: dict[str, Machine] = {}
        self._lock = threading.RLock()
        functools.update_wrapper(self, body)

    @property
    def prototype(self) -> str:
        """In C."""
        return str(self._prototype)

    @functools.cached_property
    def isa(self) -> str:
        """The best of the function's levels that this CPU has.  Raises Unimplemented if it has none."""
        usable = [isa_of(name) for name in self._levels if isa_of(name).features <= cpu_features()]
        if not usable:
            raise Unimplemented(f"{self._prototype.name} is for {', '.join(self._levels)}: this CPU has none of them.")
        return max(usable, key=lambda level: level.rank).name

    def machine(self, isa: str | None = None) -> Machine:
        """The code at a level, by default the best one here; made once."""
        name = isa or self.isa
        if name not in self._levels:
            raise InvalidArguments(f"at({name!r}): {self._prototype.name} is for {', '.join(self._levels)}.")
        with self._lock:
            if name not in self._made:
                builder = Builder(self._prototype, name, self._calls)
                self._body(builder, *builder.arguments())
                keep_alive = [target.keep_alive for target in self._calls.values()]
                self._made[name] = Machine(self._prototype, name, builder.asm.finish(), keep_alive)
            return self._made[name]

    def at(self, isa: str) -> "Function":
        """This function at one level, whether the CPU has it or not: for listings, proofs and comparisons."""
        self.machine(isa)
        other = Function(
            self._body, self._prototype, (isa,), self._calls, reads=self.reads, writes=self.writes
        )
        other.isa, other._made = isa, self._made
        return other

    @property
    def code(self) -> bytes:
        """The bytes of the best level here: instructions, then constants."""
        return self.machine().code.data

    @property
    def listing(self) -> tuple[Line, ...]:
        """Its instructions: offset, bytes, text, role, and the line of Python that wrote each."""
        found = self.machine().code.listing
        assert found is not None
        return found

    @functools.cached_property
    def address(self) -> int:
        """Where the code lies, as long as this object lives."""
        return self.machine().load().address

    @functools.cached_property
    def raw(self) -> Any:
        """The cffi function pointer: addresses are cffi pointers, nothing is checked."""
        return ffi.cast(self._prototype.pointer_type, self.address)

    @functools.cached_property
    def _converters(self) -> "Converters":
        from asmdnn.asm.converters import Converters  # and with it numpy

        return Converters(self._prototype, self.reads, self.writes)

    def __call__(self, *arguments: Any) -> Any:
        result = self.raw(*self._converters(arguments))
        if self._calls:
            raise_pending()
        return result

    def prove(self, **values: Any) -> "Proof":
        """Proves ABI, level, stack and control flow, and, for the stated values of all integers, the footprint.

        `dot.prove(n=range(300))`: each combination is walked by itself.  Nothing is run, so any level can be proved.
        Raises BrokenRule with the instruction and its line; Unimplemented when iced-x86 is missing.
        """
        from asmdnn.asm.proof import prove

        isa = self._levels[0] if len(self._levels) == 1 else self.isa
        code = self.machine(isa).code
        return prove(self._prototype, isa, code, (self.reads, self.writes), values, bool(self._calls))

    def compare(
        self,
        reference: Callable[..., Any],
        cases: int = 1000,
        tolerance: "Tolerance | None" = None,
        *,
        seed: int = 0,
        draw: "Draw | None" = None,
        **ranges: Any,
    ) -> "Comparison":
        """Runs this and `reference` on random arguments; raises Mismatch for the first that differ.

        tolerance: asm.ulp(8), asm.within(1e-6), or a function of two arrays; by default equal values.
        ranges: by integer argument the values to draw from, n=range(100); by default sizes around vectors' lengths.
        draw: makes the data from (generator, dtype, size); by default numbers in [0.5, 2).
        reference: a function of Python takes the same arguments, another callable those that are no integers.
        """
        from asmdnn.asm.comparison import Cases, compare, exact, well_conditioned

        drawn = Cases(self._prototype, (self.reads, self.writes), ranges, draw or well_conditioned)
        return compare(self, drawn, reference, cases, tolerance or exact, seed)

    def bench(self, *arguments: Any) -> "Timing":
        """How long a call with these arguments takes, in ns and in ticks; the calls are made in machine code."""
        from asmdnn.asm.timing import time_calls

        return time_calls(self._prototype, self.address, self._converters(arguments))

    def save(self, *paths: "str | Path") -> None:
        """Writes the code: .o (ELF object), .s (GNU assembly), .h (C header), .bin (bytes), by the paths' suffixes.

        Raises InvalidArguments for another suffix, and for functions that call others, whose addresses are of this
        process; OSError.
        """
        from asmdnn.asm.files import save

        if self._calls:
            raise InvalidArguments(f"save of {self._prototype.name!r}: it calls addresses that only this process has.")
        save(self._prototype, self.machine(), self.__doc__ or "", paths)

    def __repr__(self) -> str:
        return f"<asm.function {self.prototype!r} for {', '.join(self._levels)}>"


def function(
    prototype: str,
    isa: str | tuple[str, ...] = "avx2",
    *,
    reads: Mapping[str, object] | None = None,
    writes: Mapping[str, object] | None = None,
    calls: Mapping[str, object] | None = None,
) -> Callable[[Body], Function]:
    """Decorates `def body(f, x, y, n)`, which writes the instructions of `prototype` to the builder `f`.

    prototype: C, "float dot(const float *x, const float *y, size_t n)"; integers, pointers, float, double.
    isa: the levels that the body is written for, such as ("avx2", "avx512_core"); the best one at hand runs.
    reads, writes: by pointer argument the bytes behind it that are touched, as an expression of the integer arguments:
    {"x": "4*n"}.  Calls with arrays check them.
    calls: by name what the body may call: a C type for a function of libc or libm, or (type, address or callable).

    Raises InvalidArguments for a prototype, level or footprint that cannot be; the body runs at the first use.
    """
    parsed = parse_prototype(prototype)
    levels = (isa,) if isinstance(isa, str) else tuple(isa)
    if not levels:
        raise InvalidArguments(f"isa of {parsed.name!r} is empty: name a level, such as 'avx2'.")
    for level in levels:
        isa_of(level)
    found = {
        "reads": extents_of(parsed, reads or {}, "reads"),
        "writes": extents_of(parsed, writes or {}, "writes"),
    }
    targets = {name: call_target(name, stated) for name, stated in (calls or {}).items()}

    def decorate(body: Body) -> Function:
        taken = list(inspect.signature(body).parameters.values())
        if len(taken) != len(parsed.arguments) + 1:
            wanted = ", ".join(("f", *(argument.name for argument in parsed.arguments)))
            raise InvalidArguments(f"the body of {parsed.name!r} takes {len(taken)} parameters: write ({wanted}).")
        return Function(body, parsed, levels, targets, **found)

    return decorate
