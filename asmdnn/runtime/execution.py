"""From a plan to a native call: kernels loaded, constants and scratch in place, one context that the executor walks."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import NoReturn

from asmdnn.errors import InvalidArguments
from asmdnn.generators.context import CONTEXT_WORDS, Context
from asmdnn.jit.kernels import CacheCounts, LoadedKernel
from asmdnn.jit.native import ffi
from asmdnn.planning.plan import Plan
from asmdnn.runtime.buffers import outputs_of, slots_of
from asmdnn.runtime.caches import Cache
from asmdnn.runtime.context import PhaseTables, phase_words
from asmdnn.runtime.kernels import executor_spec, kernel_cache
from asmdnn.runtime.scratch import scratch_pool
from asmdnn.runtime.threads import openmp, threads_usable

PROGRAMS_LIMIT_BYTES = 64 << 20
OBJECTS_BYTES = 4_000  # what Python keeps of a program and its calls beside tables and code, about
Place = tuple[int, int, int]  # a word of a context, the position in plan.tensors of what it points into, bytes after


class ExecutablePlan:
    """A plan that can run on this machine, for up to `threads` threads; `program_of` keeps those used lately.

    pooled: calls take scratchpads from the process's pool; else each is told where its scratch lies.  loaded: `kernels`
    of plan.specs, and the executor after them, if they do not come from the kernel cache.  counts: where they came
    from.  kept_bytes: what goes with it, its plan too; code is counted for the program that loaded it.
    """

    __slots__ = (
        "__weakref__", "_idle", "_slots", "_tables", "again", "arguments", "counts", "entry", "kept_bytes", "kernels",
        "outputs", "parts", "places", "plan", "pooled", "scratch_places", "scratchpad_bytes", "sizes", "used",
    )  # fmt: skip

    def __init__(
        self, plan: Plan, threads: int, pooled: bool = True, loaded: Sequence[LoadedKernel] | None = None
    ) -> None:
        self.plan, self.pooled, self.used = plan, pooled, False
        self.arguments = plan.arguments
        self.parts = plan.parts(threads)
        if loaded is None:
            loaded, self.counts = kernel_cache().load_counted([*plan.specs, executor_spec(plan)])
        else:
            self.counts = CacheCounts(pack_hits=len(loaded))
        (*kernels, executor) = loaded
        self.kernels: Sequence[LoadedKernel] = (*kernels, executor)  # keeps their memory mapped
        self.again = CacheCounts(memory_hits=len(self.kernels))
        self._tables = PhaseTables(plan, self.parts, [kernel.address for kernel in kernels])
        self.entry = ffi.cast("void (*)(void *)", executor.address)
        self.scratchpad_bytes = plan.scratchpad_bytes(self.parts)
        self._slots = slots_of(plan)
        self.scratch_places = tuple(
            (slot, begin + offset)
            for name, begin in plan.scratch_offsets(self.parts).items()
            for slot, offset in self.slots(name)
        )
        self.sizes = {name: desc.size_bytes for name, desc in plan.tensors.items()}
        self.outputs = outputs_of(plan)
        self.places: tuple[Place, ...] = tuple(
            (slot, i, offset) for i, name in enumerate(plan.tensors) for slot, offset in self.slots(name)
        )
        self._idle: list[NativeCall] = []
        code = 0 if self.counts.is_known else sum(kernel.size for kernel in self.kernels)
        self.kept_bytes: int = plan.kept_bytes + self._tables.nbytes + code + OBJECTS_BYTES
        _live.add(self)

    def prepare(self, report: Callable[[float], None] | None = None) -> "NativeCall":
        """A call of one's own, without tensors yet; `report` is told the ms of every run."""
        return ReportedCall(self, report) if report else NativeCall(self)

    def run(self, addresses: Sequence[int], places: Iterable[Place]) -> None:
        """One call on tensors at these addresses; `places` are the program's, if they are in the order of plan.tensors.

        Equal primitives share the contexts, each of which is one call's at a time.  All that a small call costs is here
        and not in functions of its own.
        """
        try:
            call = self._idle.pop()  # atomic: another thread may take the last one
        except IndexError:
            call = NativeCall(self)
        words = call.words
        for slot, i, offset in places:
            words[slot] = addresses[i] + offset
        if call.is_plain:
            self.entry(call.context)
        else:
            call()
        self._idle.append(call)

    def context_words(self) -> list[int]:
        """The executor's context, with zeros where buffers go."""
        runtime = openmp() if self.parts > 1 else None
        words = [0] * CONTEXT_WORDS
        if runtime:
            words[Context.THREAD_NUM] = runtime.thread_num_address
            words[Context.NUM_THREADS] = runtime.num_threads_address
            words[Context.BARRIER] = runtime.barrier_address
        words[Context.PARTS], words[Context.PHASES] = self.parts, len(self.plan.phases)
        for entry in self._tables.phases:
            words += [*phase_words(entry), *[0] * self.arguments]
        return words

    def slots(self, name: str) -> Sequence[tuple[int, int]]:
        """The words of the context that point into a buffer, and how far after its start."""
        return self._slots.get(name, ())


_live: "weakref.WeakSet[ExecutablePlan]" = weakref.WeakSet()
programs: Cache[tuple[Plan, int, bool], ExecutablePlan] = Cache(PROGRAMS_LIMIT_BYTES, "programs")


def program_of(plan: Plan, threads: int, pooled: bool = True) -> tuple[ExecutablePlan, CacheCounts]:
    """The program of a plan, made once as long as it is used, and where its kernels come from this time."""
    key = plan, threads, pooled
    program = programs.get(key)
    if program is not None:
        return program, program.again
    made = ExecutablePlan(plan, threads, pooled)
    return programs.put(key, made), made.counts


def live_programs() -> list[ExecutablePlan]:
    """All that exist, kept by the cache or by primitives."""
    return list(_live)


class NativeCall:
    """One native call of a program: `call()` runs it on the buffers bound last.  Not for two threads at once."""

    __slots__ = (
        "_entry", "_keep", "_parallel", "_program", "_scratch_address", "_scratch_bytes", "context", "is_plain", "words"
    )  # fmt: skip

    def __init__(self, program: ExecutablePlan) -> None:
        self._program, self._entry = program, program.entry
        self.context = ffi.new("int64_t[]", program.context_words())
        self.words = memoryview(ffi.buffer(self.context)).cast("q")  # stores twice as fast as cffi
        self._keep: object = None
        self._scratch_address, self._scratch_bytes = 0, program.scratchpad_bytes if program.pooled else 0
        for name, array in program.plan.constants.items():
            for slot, offset in program.slots(name):
                self.words[slot] = array.ctypes.data + offset
        runtime = openmp() if program.parts > 1 else None
        self._parallel = runtime.parallel if runtime else None
        self.is_plain = self._parallel is None and not self._scratch_bytes

    def __reduce__(self) -> NoReturn:
        """It has addresses of this process.  Raises InvalidArguments."""
        raise InvalidArguments("a bound call has no pickle: bind it again where it is needed")

    def bind(self, addresses: Sequence[int], keep: object) -> None:
        """As `place`; `keep` is held as long as the call."""
        self._keep = keep
        self.place(addresses, self._program.places)

    def place(self, addresses: Sequence[int], places: Iterable[Place]) -> None:
        """Set where the tensors lie; `places` are the program's, if the addresses are in the order of plan.tensors."""
        words = self.words
        for slot, i, offset in places:
            words[slot] = addresses[i] + offset

    def place_scratch(self, address: int) -> None:
        """Set where the scratchpad lies, `scratchpad_bytes` of it, at a multiple of ALIGNMENT_BYTES."""
        self._scratch_address = address
        for slot, offset in self._program.scratch_places:
            self.words[slot] = address + offset

    def keep_scratch(self) -> None:
        """Have a scratchpad of its own from now on, however large.  Raises OutOfMemory."""
        if self._scratch_bytes:
            self._keep = self._keep, (pad := scratch_pool.take(self._scratch_bytes))
            self.place_scratch(pad.address)
            self._scratch_bytes, self.is_plain = 0, self._parallel is None

    def __call__(self) -> None:
        if self.is_plain:
            self._entry(self.context)
        elif self._scratch_bytes:
            pad = scratch_pool.take(self._scratch_bytes)
            if pad.address != self._scratch_address:
                self.place_scratch(pad.address)
            self._run()
            scratch_pool.give(pad)
        else:
            self._run()

    def _run(self) -> None:
        if self._parallel is not None:
            if threads_usable():
                self._parallel(self._entry, self.context, self._program.parts, 0)
                return
            self.words[Context.THREAD_NUM] = 0  # alone; also in a fork()ed child, for good
        self._entry(self.context)


class ReportedProgram:
    """A program whose calls tell their milliseconds; see ExecutablePlan for the rest."""

    __slots__ = ("_program", "_report", "kept_bytes", "places", "sizes")

    def __init__(self, program: ExecutablePlan, report: Callable[[float], None]) -> None:
        self._program, self._report = program, report
        self.places, self.sizes, self.kept_bytes = program.places, program.sizes, program.kept_bytes

    def run(self, addresses: Sequence[int], places: Iterable[Place]) -> None:
        """One call; its context is made anew: whoever listens has time."""
        call = self._program.prepare(self._report)
        call.place(addresses, places)
        call()


class ReportedCall(NativeCall):
    """A call that tells its milliseconds: a class of its own, so that silent calls do not even ask."""

    __slots__ = ("_report",)

    def __init__(self, program: ExecutablePlan, report: Callable[[float], None]) -> None:
        super().__init__(program)
        self._report = report

    def __call__(self) -> None:
        start = perf_counter()
        super().__call__()
        self._report((perf_counter() - start) * 1e3)
