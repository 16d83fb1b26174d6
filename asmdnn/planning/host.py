"""The machine that the library acts for, and the ISA level in use on it.

`host()` is one value, and all defaults come from it: of engines, of caps, of what `asmdnn info` says.  It is the
machine at hand unless another one is given, by ASMDNN_MACHINE or `as_machine`.  Then the library plans, caps and
refuses as it would there; what it executes is still limited to what the CPU at hand has.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from asmdnn import environment
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa import cpu
from asmdnn.isa.levels import LEVELS, Isa, isa_of
from asmdnn.planning.machine import Machine, describe, machine_of
from asmdnn.types import IsaName

_given: ContextVar[Machine | None] = ContextVar("machine", default=None)
_cap: ContextVar[Isa | None] = ContextVar("max_cpu_isa", default=None)
_executable: set[tuple[str, "Setting"]] = set()  # what require_executable has found before


@cache
def detected() -> Machine:
    """The machine at hand; asked for once."""
    return describe(cpu.signature(), cpu.cpu_features(), cpu.cache_sizes(), len(os.sched_getaffinity(0)))


def host() -> Machine:
    """The machine of the innermost `as_machine`, else that of ASMDNN_MACHINE, read now, else the one at hand.

    Raises InvalidArguments for a variable that names no machine.
    """
    if given := _given.get():
        return given
    name = environment.word(environment.MACHINE)
    if not name:
        return detected()
    try:
        return machine_of(name)
    except InvalidArguments as error:
        raise InvalidArguments(f"{environment.MACHINE}={name}: {error}, or unset it") from None


@contextmanager
def as_machine(machine: Machine) -> Iterator[Machine]:
    """Inside the block, in this thread or task, the library acts as if on `machine`."""
    token = _given.set(machine)
    try:
        yield machine
    finally:
        _given.reset(token)


Setting = tuple[Machine | None, Isa | None, tuple[bytes | None, bytes | None]]


def setting() -> Setting:
    """All that `host()` and the cap depend on, as a key: two settings that are equal have the same defaults."""
    return _given.get(), _cap.get(), environment.of_host()


def supported_isas() -> tuple[Isa, ...]:
    """The levels of the host, best last, whatever the cap."""
    return host().isas


def executable_isas() -> tuple[Isa, ...]:
    """The levels of the host, under the cap, that the CPU at hand executes, best last."""
    features, caps = cpu.cpu_features(), _caps()
    return tuple(isa for isa in host().isas if isa.features <= features and all(isa.rank <= cap.rank for cap in caps))


def effective_isa() -> Isa:
    """The best level of the host under the cap; see `best_isa`."""
    return best_isa(host())


def best_isa(machine: Machine) -> Isa:
    """The best level of a machine not above the cap: that of `max_cpu_isa()` and that of ASMDNN_MAX_CPU_ISA, read now.

    Raises Unimplemented when no level is left, which without a cap means a CPU without AVX2, and InvalidArguments for a
    variable that names no level.
    """
    caps = _caps()
    allowed = [level for level in machine.isas if all(level.rank <= cap.rank for cap in caps)]
    if not allowed:
        missing = ", ".join(sorted(LEVELS[0].features - machine.features))
        raise Unimplemented(f"this CPU cannot run {LEVELS[0]}, the lowest level there is: it lacks {missing}")
    return allowed[-1]


def require_executable(name: str) -> None:
    """Raise Unimplemented unless the CPU at hand, as the host and under its cap, executes the level of that name."""
    if (name, setting()) not in _executable:
        _decide(name)
        _executable.add((name, setting()))


def _decide(name: str) -> None:
    wanted, possible = isa_of(name), executable_isas()
    if wanted in possible:
        return
    if not possible:
        effective_isa()  # which says what is missing
    best = possible[-1] if possible else "another machine"
    where = "" if host() is detected() else f" (as if on {host().name})"
    raise Unimplemented(f"isa {name} cannot be executed here{where}, use {best} or a lower level")


@contextmanager
def max_cpu_isa(name: IsaName) -> Iterator[Isa]:
    """No level above `name` is used inside the block, in this thread or task; an inner block can lower it further.

    Raises InvalidArguments for an unknown name.
    """
    wanted, outer = isa_of(name), _cap.get()
    token = _cap.set(wanted if outer is None or wanted.rank < outer.rank else outer)
    try:
        yield wanted
    finally:
        _cap.reset(token)


def _caps() -> list[Isa]:
    return [cap for cap in (_cap.get(), _cap_of_environment()) if cap is not None]


def _cap_of_environment() -> Isa | None:
    name = environment.word(environment.MAX_CPU_ISA)
    if not name:
        return None
    try:
        return isa_of(name)
    except InvalidArguments:
        names = ", ".join(level.name for level in LEVELS)
        message = f"{environment.MAX_CPU_ISA}={name} is not an ISA level: set it to one of {names}, or unset it"
        raise InvalidArguments(message) from None
