"""Plans that measurements chose for a user's problems: stored by `asmdnn tune`, taken before the planners' own choice.

A plan is kept whole, beside the kernels on disk, under a key of the request (description, attributes, ISA level, CPU
class, size of L2) and of all sources that decide a plan: another version of the library does not find it.  The number
of threads is not in the key, as results must not depend on it.
"""

import hashlib
import os
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.exact import exact
from asmdnn.forking import importing
from asmdnn.jit.pruning import SUFFIX
from asmdnn.jit.store import TUNED_FOLDER, DiskStore
from asmdnn.jit.tuned_folder import look_again, tuned_directory
from asmdnn.planning.host import detected
from asmdnn.planning.machine import machine_of
from asmdnn.planning.own_row import tuning_here
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass


@exact
@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The result of a measurement: the `name` of the fastest plan, that of the planners' choice (`default`), how many
    times as long that took, and with how many threads; problem: as the bench writes it; sources: a digest of those that
    decide plans."""

    problem: str
    name: str
    default: str
    gain: float
    threads: tuple[int, ...]
    sources: str

    def __str__(self) -> str:
        threads = "one thread" if self.threads == (1,) else f"{', '.join(map(str, self.threads))} threads"
        return f"{self.name}: {self.gain:.2f} times as fast as {self.default}, with {threads}"


def store() -> DiskStore:
    return DiskStore(tuned_directory())


def find(plan_key: str, engine: Engine) -> tuple[Plan, Choice] | None:
    """The plan for a request, whose key without L2 is given; None where nothing is stored."""
    of_class = machine_of(engine.machine).tuning_at(engine.isa)
    if engine.tuning != of_class and engine.tuning != tuning_here(detected(), engine.isa):
        return None
    found, key = store(), key_of(plan_key, engine)
    data = found.get(key, TUNED_FOLDER)
    if data is None:
        if os.path.lexists(Path(found.directory, key + SUFFIX)):
            _warn(f"A tuned plan in {found.directory} is damaged and is ignored: run asmdnn tune for it again.")
        return None
    return _decoded(data, found.directory)


def keep(plan_key: str, engine: Engine, plan: Plan, choice: Choice) -> None:
    """Store a plan for all requests of this key.  Raises NotPackable for a plan that has no form as bytes."""
    with importing():
        from asmdnn.planning.codec import encode_plan

    facts = [choice.problem, choice.name, choice.default, choice.gain, list(choice.threads), choice.sources]
    store().put(key_of(plan_key, engine), TUNED_FOLDER, encode_plan(plan, facts))
    look_again()


def forget(plan_key: str, engine: Engine) -> None:
    """Remove what is stored for a request, if anything is."""
    remove([key_of(plan_key, engine)])


def remove(keys: Sequence[str]) -> int:
    """Remove stored plans; how many were there."""
    directory, removed = Path(store().directory), 0
    for key in keys:
        try:
            (directory / (key + SUFFIX)).unlink()
            removed += 1
        except OSError:  # it is gone, or not ours to remove
            continue
    return removed


def choices() -> Iterator[tuple[str, Choice | None]]:
    """(key, content) of every intact file; None for one that only another version can read.

    Decoding builds only classes that are imported already: the caller has imported all kinds of primitives.
    """
    found = store()
    for entry in found.list():
        data = found.get(entry.key, TUNED_FOLDER)
        decoded = _decoded(data, "") if data else None
        yield entry.key, decoded[1] if decoded else None


def key_of(plan_key: str, engine: Engine) -> str:
    return hashlib.sha256(f"{plan_key} {engine.l2_bytes}".encode()).hexdigest()


def _decoded(data: bytes, directory: str) -> tuple[Plan, Choice] | None:
    with importing():
        from asmdnn.planning.codec import decode_plan  # most processes have no tuned plans

    try:
        plan, facts = decode_plan(data, f"the tuned plans of {directory}")
        return plan, _choice_of(facts)
    except (InvalidArguments, TypeError, ValueError):
        if directory:
            _warn(f"A tuned plan in {directory} makes no sense and is ignored: run asmdnn tune for it again.")
        return None


def _choice_of(facts: Any) -> Choice:
    problem, name, default, gain, threads, sources = facts
    return Choice(str(problem), str(name), str(default), float(gain), tuple(map(int, threads)), str(sources))


@cache
def _warn(message: str) -> None:
    """Computed once a process."""
    warnings.warn(message, RuntimeWarning, stacklevel=6)
