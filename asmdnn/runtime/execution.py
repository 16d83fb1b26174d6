"""From a plan to a native call: kernels loaded, constants and scratch in place, one context that the executor walks."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn import environment
from asmdnn.forking import importing
from asmdnn.generators.executor import BASES_OF_PHASE, CONTEXT_WORDS, PHASE_WORDS, Context, ExecutorSpec
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.peachpy_forms import PEACHPY_VERSION
from asmdnn.jit.kernels import KernelCache, LoadedKernel
from asmdnn.jit.native import ffi
from asmdnn.jit.store import default_store
from asmdnn.planning.plan import ALIGNMENT_BYTES, KernelSpec, Plan
from asmdnn.runtime.threads import openmp, threads_usable


def generate(spec: KernelSpec | ExecutorSpec) -> bytes:
    """The machine code of a spec; on any machine, whatever the spec's ISA."""
    asm = Assembler(spec.name)
    spec.generate(asm)
    return asm.finish().data


@cache
def kernel_cache() -> KernelCache[Any]:
    """The process's kernels; on disk in ASMDNN_CACHE_DIR unless ASMDNN_CACHE=0; also written to ASMDNN_DUMP if that is
    set.  All three are read at the first use."""
    return KernelCache(generate, default_store(), version=PEACHPY_VERSION, notice=_dumper())


def _dumper() -> Callable[[Any, LoadedKernel], None] | None:
    directory = environment.path(environment.DUMP)
    if directory is None:
        return None
    with importing():
        from asmdnn.dump.run import RunDump  # not above: few runs need it

    dump = RunDump(directory)
    return lambda spec, kernel: dump.write(spec, kernel.code)


def executor_spec(plan: Plan) -> ExecutorSpec:
    """The executor that walks the plan."""
    return ExecutorSpec(len(plan.phases[0].arguments))


class Program:
    """A plan that can run on this machine, for up to `threads` threads; `report` is told the ms of every call.

    counts: where its kernels came from.
    """

    def __init__(self, plan: Plan, threads: int, report: Callable[[float], None] | None = None) -> None:
        self.plan = plan
        self._report = report
        self.arguments = len(plan.phases[0].arguments)
        self.scratch_offsets = plan.scratch_offsets
        self.parts = plan.parts(threads)
        (*kernels, executor), self.counts = kernel_cache().load_counted([*plan.specs, executor_spec(plan)])
        self._kernels: Sequence[LoadedKernel] = (*kernels, executor)  # keeps their memory mapped
        self._table = np.array([kernel.address for kernel in kernels], np.int64)
        self._bounds = plan.split(self.parts)
        self.entry = ffi.cast("void (*)(void *)", executor.address)

    def prepare(self, own_scratch: bool = True) -> "Call":
        """A call without tensors yet; and without scratch, unless it is to have its own."""
        return ReportedCall(self, self._report, own_scratch) if self._report else Call(self, own_scratch)

    def context_words(self) -> list[int]:
        """The executor's context, with zeros where buffers go."""
        runtime = openmp() if self.parts > 1 else None
        words = [0] * CONTEXT_WORDS
        if runtime:
            words[Context.THREAD_NUM] = runtime.thread_num_address
            words[Context.NUM_THREADS] = runtime.num_threads_address
            words[Context.BARRIER] = runtime.barrier_address
        words[Context.KERNELS], words[Context.PARTS] = self._table.ctypes.data, self.parts
        words[Context.PHASES] = len(self.plan.phases)
        for phase, bounds in zip(self.plan.phases, self._bounds, strict=True):
            waits = int(not phase.continues)
            words += [phase.records.ctypes.data, bounds.ctypes.data, waits, *[0] * self.arguments]
        return words

    def slots(self, name: str) -> tuple[int, ...]:
        """The words of the context that hold the address of a buffer."""
        size = PHASE_WORDS + self.arguments
        return tuple(
            CONTEXT_WORDS + p * size + BASES_OF_PHASE + i
            for p, phase in enumerate(self.plan.phases)
            for i, argument in enumerate(phase.arguments)
            if argument == name
        )


class Call:
    """One native call of a program: `call()` runs it on the buffers bound last.  Not for two threads at once."""

    __slots__ = ("_context", "_keep", "_parallel", "_program", "_slots")

    def __init__(self, program: Program, own_scratch: bool = True) -> None:
        plan = program.plan
        self._program, self._parallel = program, None
        self._context = ffi.new("int64_t[]", program.context_words())
        self._slots = {name: program.slots(name) for name in (*plan.tensors, *plan.scratch_bytes)}
        scratch = aligned_bytes(plan.scratchpad_bytes) if own_scratch else None
        self._keep: list[Any] = [scratch, None]
        for name, array in plan.constants.items():
            for slot in program.slots(name):
                self._context[slot] = array.ctypes.data
        if scratch is not None:
            self.place_scratch(scratch.ctypes.data)
        runtime = openmp() if program.parts > 1 else None
        if runtime:
            self._parallel = runtime.parallel

    def bind(self, addresses: Mapping[str, int], keep: object = None) -> None:
        """Set where the tensors lie; `keep` is held until the next bind."""
        self._keep[1] = keep
        for name, address in addresses.items():
            for slot in self._slots[name]:
                self._context[slot] = address

    def place_scratch(self, address: int) -> None:
        """Set where the scratchpad lies, `scratchpad_bytes` of it, at a multiple of ALIGNMENT_BYTES."""
        for name, offset in self._program.scratch_offsets.items():
            for slot in self._slots[name]:
                self._context[slot] = address + offset

    def __call__(self) -> None:
        if self._parallel is not None and threads_usable():
            self._parallel(self._program.entry, self._context, self._program.parts, 0)
            return
        self._context[Context.THREAD_NUM] = 0  # alone; also in a fork()ed child, for good
        self._program.entry(self._context)


class ReportedCall(Call):
    """A call that tells its milliseconds: a class of its own, so that silent calls do not even ask."""

    __slots__ = ("_report",)

    def __init__(self, program: Program, report: Callable[[float], None], own_scratch: bool = True) -> None:
        super().__init__(program, own_scratch)
        self._report = report

    def __call__(self) -> None:
        start = perf_counter()
        super().__call__()
        self._report((perf_counter() - start) * 1e3)


def aligned_bytes(size: int) -> npt.NDArray[np.uint8]:
    """`size` bytes that start at a multiple of 64."""
    raw = np.empty(size + ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + size]
