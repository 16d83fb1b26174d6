"""A function in machine code: what can be asked of it, and calls."""

import functools
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from asmdnn.asm.calls import CallTarget, raise_pending
from asmdnn.asm.footprint import Reaches
from asmdnn.asm.levels import FunctionLevel, best_of
from asmdnn.asm.machine import Body, MachineCode, load_code, written
from asmdnn.asm.prototype import Prototype
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.code import Line
from asmdnn.jit.native import ffi

if TYPE_CHECKING:
    from pathlib import Path

    from asmdnn.asm.comparison import Comparison, Draw, Tolerance
    from asmdnn.asm.converters import Converters
    from asmdnn.asm.emulation import EmulatedCall
    from asmdnn.asm.ports import PortBounds
    from asmdnn.asm.proof import FunctionProof
    from asmdnn.asm.timing import Timing
    from asmdnn.asm.trace import Trace
    from asmdnn.jit.kernels import LoadedKernel


class CFunction:
    """A function in machine code: call it with arrays and numbers, or `raw` with addresses.

    `f(x, y, n)` checks every argument: arrays have the pointer's type, are contiguous, as long as `reads` and `writes`
    say, and writable where that is said.  A pointer of which nothing is stated is refused: use `raw`.
    `f.raw(px, py, n)` takes addresses as integers and checks nothing.  Both release the GIL while the code runs.
    frame_pointer: rbp points to the caller's rbp while the code runs.
    cache: None or False, or what the body depends on besides its file: then the code is kept on disk.
    The function exists once for each level, made when it is first asked for; it lives as long as this object.
    """

    def __init__(
        self,
        body: Body,
        prototype: Prototype,
        levels: tuple[FunctionLevel, ...],
        calls: Mapping[str, CallTarget],
        extents: Reaches,
        *,
        frame_pointer: bool = False,
        cache: object = None,
    ) -> None:
        self._body, self._levels, self._calls = body, levels, calls
        self._prototype = prototype
        self._extents, self._frame_pointer, self._cache = extents, frame_pointer, None if cache is False else cache
        self._made: dict[str, MachineCode] = {}
        self._lock = threading.RLock()
        functools.update_wrapper(self, body)

    @property
    def prototype(self) -> str:
        """In C."""
        return str(self._prototype)

    @property
    def isa(self) -> str:
        """The level whose code runs here, the best that this CPU has.  Raises Unimplemented if it has none."""
        return self._level.name

    @functools.cached_property
    def _level(self) -> FunctionLevel:
        found = self._levels[0] if len(self._levels) == 1 else best_of(self._levels)
        if found is None:
            names = ", ".join(level.name for level in self._levels)
            raise Unimplemented(f"{self._prototype.name} is for {names}: this CPU has none of them.")
        return found

    @functools.cached_property
    def _machine(self) -> MachineCode:
        """The code, written by the body once."""
        with self._lock:
            if self._level.name not in self._made:
                self._made[self._level.name] = written(
                    self._body, self._prototype, self._level, self._calls, frame_pointer=self._frame_pointer
                )
            return self._made[self._level.name]

    def at(self, isa: str) -> "CFunction":
        """This function at one level, whether the CPU has it or not: for listings, proofs and comparisons."""
        found = [level for level in self._levels if level.name == isa]
        if not found:
            names = ", ".join(level.name for level in self._levels)
            said = f"{self._prototype.name} is for {names}: ask for others by isa= of asm.function"
            raise InvalidArguments(f"at({isa!r}): {said}.")
        shared, fp = (self._body, self._prototype, (found[0],), self._calls, self._extents), self._frame_pointer
        other = CFunction(*shared, frame_pointer=fp, cache=self._cache)
        other._made, other._lock = self._made, self._lock
        return other

    @property
    def runs_here(self) -> bool:
        """Whether this CPU has one of the function's levels."""
        return best_of(self._levels) is not None

    @property
    def code(self) -> bytes:
        """The bytes of the best level here: instructions, then constants."""
        return self._machine.code.data

    @property
    def listing(self) -> tuple[Line, ...]:
        """Its instructions: offset, bytes, text, role, and the line of Python that wrote each."""
        found = self._machine.code.listing
        assert found is not None
        return found

    def explain(self) -> str:
        """The listing as text: offset, instruction, who wrote it, and what it does in words of registers' purposes."""
        return "\n".join(
            f"{line.offset:4x}  {line.text:38} {line.source:16} {line.detail.effect}".rstrip() for line in self.listing
        )

    @functools.cached_property
    def address(self) -> int:
        """Where the code lies, as long as this object lives."""
        return self._loaded.address

    @functools.cached_property
    def _loaded(self) -> "LoadedKernel":
        """From the disk, if it is kept there; else the body writes it."""
        if self._cache is None:
            return self._machine.load()
        from asmdnn.asm.stored import StoredFunction

        fp = self._frame_pointer
        stored = StoredFunction(self._body, self._prototype, self._level, self._cache, fp)
        if data := stored.get():
            return load_code(self._prototype, self._level, data, "disk")
        stored.put(self.code)
        return self._machine.load()

    @functools.cached_property
    def raw(self) -> Any:
        """The function with addresses as integers, such as `x.ctypes.data`; nothing is checked."""
        function = ffi.cast(self._prototype.address_type, self.address)
        if not self._calls:
            return function

        def raw(*arguments: Any) -> Any:
            result = function(*arguments)
            raise_pending()
            return result

        return raw

    @functools.cached_property
    def _on_pointers(self) -> Any:
        """The function with cffi's pointers."""
        return ffi.cast(self._prototype.pointer_type, self.address)

    @functools.cached_property
    def _converters(self) -> "Converters":
        from asmdnn.asm.converters import Converters  # and with it numpy

        return Converters(self._prototype, *self._extents)

    def __call__(self, *arguments: Any) -> Any:
        return self._quick(*arguments)

    @functools.cached_property
    def _quick(self) -> Callable[..., Any]:
        """What a call does: `_careful`, with less ado where it has no calls of its own."""
        if self._calls:
            return self._careful
        from asmdnn.asm.quick_call import quick_call

        return quick_call(self._prototype, self._extents, self._on_pointers, self._careful)

    def _careful(self, *arguments: Any) -> Any:
        result = self._on_pointers(*self._converters(arguments))
        if self._calls:
            raise_pending()
        return result

    def prove(self, **values: Any) -> "FunctionProof":
        """Proves ABI, level, stack and control flow, and, for the stated values of all integers, the footprint.

        `dot.prove(n=range(300))`: each combination is walked separately.  Nothing is run, so any level can be proved.
        Raises BrokenRule with the instruction and its line; Unimplemented when iced-x86 is missing.
        """
        from asmdnn.asm.proof import prove

        return prove(self._prototype, self._machine, self._extents, values, calls=bool(self._calls))

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
        from asmdnn.asm.comparison import RandomCases, compare, exact, well_conditioned

        drawn = RandomCases(self._prototype, self._extents, ranges, draw or well_conditioned)
        return compare(self, drawn, reference, cases, exact if tolerance is None else tolerance, seed)

    def emulate(self, *arguments: Any, isa: str = "", most_instructions: int = 10_000_000) -> "EmulatedCall":
        """The call, instruction by instruction in Python, so that any level runs on any machine; arrays are written.

        isa: the level, of those that the function is for; by default as for `listing`.  Every access is held to `reads`
        and `writes`.  Raises EmulationFault, an AsmdnnError, with the instruction: for an access beyond them, for what
        breaks the ABI, for an instruction that the emulator does not know, after most_instructions; Unimplemented where
        iced-x86 is missing, and for a function that calls others.
        """
        from asmdnn.asm.emulation import emulate

        machine = self._emulated("emulate", isa)
        return emulate(self._prototype, machine, self._extents, arguments, most_instructions)

    def trace(self, *arguments: Any, isa: str = "", most_steps: int = 5000) -> "Trace":
        """As `emulate`, and what each instruction did; `.page("t.html")` writes a page that plays the steps.

        Raises EmulationFault after most_steps, too: give a call with less to do.
        """
        from asmdnn.asm.trace import record

        machine = self._emulated("trace", isa)
        return record(self._prototype, machine, self._extents, arguments, most_steps)

    def _emulated(self, what: str, isa: str) -> MachineCode:
        """The code at a level, if it can be emulated."""
        from asmdnn.proof.decoder import require_decoder

        require_decoder(what)
        if self._calls:
            raise Unimplemented(f"{what} of {self._prototype.name!r}: it calls others, which are no emulated code.")
        return (self.at(isa) if isa else self)._machine

    def bench(self, *arguments: Any) -> "Timing":
        """How long a call with these arguments takes, in ns and in ticks; the calls are made in machine code."""
        from asmdnn.asm.timing import time_calls

        return time_calls(self._prototype, self.address, self._converters(arguments))

    def bounds(self, cpu: str = "") -> "PortBounds":
        """What llvm-mca says of each loop: cycles a pass by the busiest port, and with latencies; see `bench`.

        cpu: by LLVM's name, such as "znver4"; by default this one, or a typical one of the level.  Nothing is run.
        Raises Unimplemented where llvm-mca is missing, InvalidArguments for a CPU that it does not know.
        """
        from asmdnn.asm.ports import port_bounds

        return port_bounds(self._machine, cpu)

    def save(self, *paths: "str | Path") -> None:
        """Writes the code by paths' suffixes: .o (ELF object), .s (GNU assembly), .nasm, .h (C header), .bin (bytes).

        Raises InvalidArguments for another suffix, and for functions that call others, whose addresses are of this
        process; OSError.
        """
        from asmdnn.asm.files import save

        if self._calls:
            raise InvalidArguments(f"save of {self._prototype.name!r}: it calls addresses that only this process has.")
        save(self._prototype, self._machine, self.__doc__ or "", paths)

    def __repr__(self) -> str:
        return f"<asm.function {self.prototype!r} for {', '.join(level.name for level in self._levels)}>"
