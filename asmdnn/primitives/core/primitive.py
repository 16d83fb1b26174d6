"""Primitives: they own kernels and execute them."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from time import perf_counter
from typing import NoReturn

from asmdnn import verbose
from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory
from asmdnn.memory.allocation import within_memory
from asmdnn.notebook import html_of
from asmdnn.planning.host import require_executable
from asmdnn.planning.plan import ALIGNMENT_BYTES
from asmdnn.primitives.core.checking import checked, is_checking
from asmdnn.primitives.core.descriptor import WAYS_ELSEWHERE, PrimitiveDesc
from asmdnn.primitives.core.engine import Stream
from asmdnn.primitives.core.registry import kind_of
from asmdnn.primitives.core.reports import call_report, report_creation
from asmdnn.runtime.execution import ExecutablePlan, ReportedProgram, program_of


class Primitive:
    """Kernels generated or loaded, ready to run; immutable, and safe to execute from many threads at once.

    With scratchpad_mode="library" a call takes its scratchpad from a pool of the process (runtime/scratch.py) and gives
    it back, so that concurrent calls cost memory, never a race.  With "user" every call passes `scratchpad`, which no
    other call may use at the same time.
    With ASMDNN_CHECK=1 in the environment, checks are made as checking.py describes.
    Raises Unimplemented if this machine, or a cap on the ISA, cannot execute the engine's level, OutOfMemory.
    """

    @within_memory
    def __init__(self, pd: PrimitiveDesc) -> None:
        if not isinstance(pd, PrimitiveDesc):
            raise InvalidArguments(f"pd must be a PrimitiveDesc, not {type(pd).__name__}")
        require_executable(pd.engine.isa)
        start = perf_counter()
        self.pd, plan = pd, pd.plan
        self._checks = is_checking()
        if self._checks:
            plan.check()
        self._takes_scratchpad = pd.attr.scratchpad_mode == "user"
        self._program, counts = program_of(plan, pd.threads, pooled=not self._takes_scratchpad)
        listening = verbose.listening()
        self._report = call_report(pd) if listening and verbose.wants("exec") else None
        if listening and verbose.wants("create"):
            report_creation(pd, counts, (perf_counter() - start) * 1e3)
        self._tensors = plan.tensors
        self._wanted, self._outputs = tuple(plan.tensors.items()), self._program.outputs
        self._defaults = pd.attr.data()
        self._guard = kind_of(pd.desc).guard
        self._is_plain = not (self._checks or self._report or self._takes_scratchpad or self._defaults)

    def __reduce__(self) -> NoReturn:
        """Its code is in the memory of this process.  Raises InvalidArguments."""
        raise InvalidArguments(f"a {type(self).__name__} has no pickle: {WAYS_ELSEWHERE}")

    def __copy__(self) -> "Primitive":
        """Itself, as nothing changes it."""
        return self

    def __deepcopy__(self, memo: object) -> "Primitive":
        """As copy."""
        return self

    def __repr__(self) -> str:
        """For example "<Primitive direct:avx2: convolution forward of ...; 4 kernels, 2 threads>"."""
        counts = f"{len(self.pd.plan.specs)} kernels, {self.pd.engine.threads} threads"
        return f"<{type(self).__name__} {self.pd.implementation}: {self.pd.desc}; {counts}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    def execute(self, stream: Stream | None = None, scratchpad: Memory | None = None, **memories: Memory) -> None:
        """Run on `memories`, one for each argument by name (src, weights, bias, dst, ...); complete when it returns.

        Tensors that post-ops were given together with their data are optional.
        """
        if stream is not None:
            self._check_stream(stream)
        if self._is_plain and scratchpad is None:
            addresses = self._check(memories)
            if self._guard is not None:
                self._guard(self.pd.desc, memories)
            self._program.run(addresses, self._program.places)
        else:
            self.bind(scratchpad=scratchpad, **memories)()

    def _check_stream(self, stream: Stream) -> None:
        if not isinstance(stream, Stream):
            raise InvalidArguments(f"stream must be a Stream or None, not {type(stream).__name__}")
        mine, its = self.pd.engine, stream.engine
        if its is not mine and its != mine:
            pairs = {field.name: (getattr(its, field.name), getattr(mine, field.name)) for field in fields(mine)}
            long = {"tuning": "another tuning"}  # which has hundreds of numbers
            differing = ", ".join(
                long.get(name, f"{name} {a} instead of {b}") for name, (a, b) in pairs.items() if a != b
            )
            raise InvalidArguments(f"stream is of another engine, with {differing}: make it of the primitive's engine")

    def bind(self, *, scratchpad: Memory | None = None, **memories: Memory) -> Callable[[], None]:
        """A call on fixed memories, checked once: `run = primitive.bind(src=..., ...)`, then `run()`.

        The result keeps the memories alive.  Bind once per thread that calls it.
        """
        if self._defaults:
            memories = {**self._defaults, **memories}
        addresses = self._check(memories)
        temporary = self._check_scratchpad(scratchpad, dict(zip(self._tensors, addresses, strict=True)))
        call = self._program.prepare(self._report)
        call.bind(addresses, keep=(self, memories, scratchpad))
        if temporary is not None:
            call.place_scratch(temporary)
        run = checked(call, self.pd.plan, memories) if self._checks else call
        return run if self._guard is None else guarded(run, partial(self._guard, self.pd.desc, memories))

    @property
    def program(self) -> ExecutablePlan | ReportedProgram:
        """The execution, for calls on addresses that the caller has checked."""
        return ReportedProgram(self._program, self._report) if self._report else self._program

    def _check_scratchpad(self, scratchpad: Memory | None, addresses: Mapping[str, int]) -> int | None:
        """The address of the scratchpad that the user passes, None if none is needed."""
        size = self.pd.scratchpad_bytes
        if not self._takes_scratchpad:
            if scratchpad is not None:
                raise InvalidArguments("scratchpad is given, but scratchpad_mode is 'library': use Attr with 'user'")
            return None
        if size == 0 and scratchpad is None:
            return None
        if type(scratchpad) is not Memory:
            raise InvalidArguments(f"scratchpad must be a Memory of {size} bytes, not {type(scratchpad).__name__}")
        begin, room = scratchpad.address, scratchpad.desc.size_bytes
        if room < size:
            raise InvalidArguments(f"scratchpad has {room} bytes, this primitive needs {size}: see scratchpad_desc")
        if size and begin % ALIGNMENT_BYTES:
            raise InvalidArguments(f"scratchpad at {begin:#x} is misaligned, it must start at a multiple of 64")
        if size and not scratchpad.writable:
            raise InvalidArguments("scratchpad is read-only, it must be writable")
        for name, address in addresses.items():
            if address < begin + size and begin < address + self._tensors[name].size_bytes:
                raise InvalidArguments(f"scratchpad overlaps {name}, give it memory of its own")
        return begin if size else None

    def _check(self, memories: Mapping[str, Memory]) -> list[int]:
        """The address of every argument, in the order of the plan's tensors, or InvalidArguments.

        An output is writable, and shares no byte with another argument, unless the plan works in place on it.
        """
        addresses = []
        try:
            for name, desc in self._wanted:
                memory = memories[name]
                if type(memory) is not Memory:
                    raise InvalidArguments(f"{name} must be a Memory, not {type(memory).__name__}")
                if memory.desc is not desc and memory.desc != desc:
                    raise InvalidArguments(f"{name} is {memory.desc}, this primitive takes {desc}: reorder it")
                addresses.append(memory.address)
        except KeyError:
            self._refuse_names(memories)
        if len(memories) != len(addresses):
            self._refuse_names(memories)
        for output in self._outputs:
            if not memories[output.name].writable:
                raise InvalidArguments(f"{output.name} is read-only, it must be writable")
            begin = addresses[output.position]
            end = begin + output.size_bytes
            for position, size in output.others:
                address = addresses[position]
                if address < end and begin < address + size and not (address == begin and position in output.in_place):
                    other, _ = self._wanted[position]
                    raise InvalidArguments(f"{output.name} overlaps {other}, give it memory of its own")
        return addresses

    def _refuse_names(self, memories: Mapping[str, Memory]) -> NoReturn:
        names = ", ".join(self._tensors)
        raise InvalidArguments(f"arguments must be {names}, not {', '.join(memories) or 'none'}")


def guarded(call: Callable[[], None], guard: Callable[[], None]) -> Callable[[], None]:
    """`guard`, which may raise, and then the call."""

    def guard_and_call() -> None:
        guard()
        call()

    return guard_and_call
