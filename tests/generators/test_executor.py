"""The executor's contract (the table in generators/executor.py), on an emulated CPU with kernels that write a diary.

A kernel asks the host for a place and copies its frame there; host calls leave garbage in all that the ABI lets them
change, and in the upper half of an int.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from asmdnn.generators.executor import ExecutorSpec
from tests.emulator import Machine
from tests.emulator.assembling import Mem, assemble, ins
from tests.generators.codes import code_of
from tests.generators.executors import COUNTS
from tests.support.blob import CODE, Words, blob_of

DATA, DIARY, THREAD_NUM, NUM_THREADS, BARRIER, HOST = 0x1000_0000, 0x2000_0000, 0x3000, 0x3010, 0x3020, 0x3030
GARBAGE = 0xDEAD_BEEF << 32
KERNELS = 3
MEET = ("meet",)
TEAMS = [(1, 1), (1, 3), (2, 2), (3, 3), (2, 5), (4, 2)]  # threads, parts

Event = tuple[int | str, ...]
Phase = tuple[np.ndarray, Sequence[int], bool, Sequence[int]]  # records, bounds, waits, bases


def diarist(number: int, arguments: int) -> bytes:
    """The kernel of that number."""
    copy = [
        line
        for i in range(arguments)
        for line in (ins("MOV_R64_RM64", "rcx", Mem("rbx", 8 * i)), ins("MOV_RM64_R64", Mem("rax", 8 * i), "rcx"))
    ]
    ask = (ins("MOV_R32_IMM32", "edi", number), ins("MOV_R64_IMM64", "rax", HOST), ins("CALL_RM64", "rax"))
    return assemble(
        ins("PUSH_R64", "rbx"), ins("MOV_R64_RM64", "rbx", "rdi"), *ask, *copy, ins("POP_R64", "rbx"), ins("RETNQ")
    )


def make_phases(arguments: int, parts: int) -> list[Phase]:
    """Three phases: the second does not wait for the first, some parts are empty, the last phase has no record."""
    random = np.random.default_rng(arguments * 100 + parts)
    phases: list[Phase] = []
    for records, waits in ((7, True), (7, False), (5, True), (0, True)):
        kernels = random.integers(KERNELS, size=(records, 1))
        offsets = random.integers(-(1 << 40), 1 << 40, (records, arguments))
        inner = sorted(random.integers(records + 1, size=parts - 1).tolist())
        bases = random.integers(1 << 45, size=arguments).tolist()
        phases.append((np.hstack((kernels, offsets)), [0, *inner, records], waits, bases))
    return phases


def wanted_events(phases: Sequence[Phase], thread: int, team: int, alone: bool) -> list[Event]:
    """What thread `thread` does: its parts' records in order, and the meetings before phases."""
    events: list[Event] = []
    for i, (records, bounds, waits, bases) in enumerate(phases):
        events += [MEET] * (i > 0 and waits and not alone)
        for part in range(thread, len(bounds) - 1, team):
            for kernel, *offsets in records[bounds[part] : bounds[part + 1]].tolist():
                events.append((kernel, *np.add(bases, offsets).tolist()))
    return events


def events_of(arguments: int, phases: Sequence[Phase], thread: int, team: int, alone: bool) -> list[Event]:
    """What the generated executor does."""
    blob, addresses = blob_of([code_of(ExecutorSpec(arguments)).data, *(diarist(k, arguments) for k in range(KERNELS))])
    words, diary = Words(DATA), Words(DIARY)
    table = words.add(addresses[1:])
    described = [
        word
        for records, bounds, waits, bases in phases
        for word in (words.add(records.ravel()), words.add(bounds), int(waits), *bases)
    ]
    team_functions = (0, 0, 0) if alone else (THREAD_NUM, NUM_THREADS, BARRIER)
    context = words.add([*team_functions, table, len(phases[0][1]) - 1, len(phases), *described])
    diary.add(np.zeros(arguments * sum(len(phase[0]) for phase in phases), np.int64))
    events: list[Event] = []
    runs: list[int] = []

    def host(number: int, *_: int) -> int:
        runs.append(number)
        events.append((number,))
        return DIARY + 8 * arguments * (len(runs) - 1)

    callbacks = {
        THREAD_NUM: lambda *_: GARBAGE | thread,
        NUM_THREADS: lambda *_: GARBAGE | team,
        BARRIER: lambda *_: events.append(MEET),
        HOST: host,
    }
    Machine([words.region("data"), diary.region("diary", writable=True)], callbacks=callbacks).call(blob, CODE, context)
    frames = iter(diary.values[: arguments * len(runs)].reshape(-1, arguments).tolist())
    return [event if event == MEET else (*event, *next(frames)) for event in events]


@pytest.mark.parametrize("team", TEAMS, ids=str)
@pytest.mark.parametrize("arguments", COUNTS)
def test_threads_of_a_team(arguments: int, team: tuple[int, int]) -> None:
    """Every thread runs parts t, t + n, ...: the team may be smaller than the number of parts, or larger."""
    threads, parts = team
    phases = make_phases(arguments, parts)
    everything = []
    for thread in range(threads):
        events = events_of(arguments, phases, thread, threads, alone=False)
        assert events == wanted_events(phases, thread, threads, alone=False)
        everything += [event for event in events if event != MEET]
    assert len(everything) == sum(len(records) for records, *_ in phases)


@pytest.mark.parametrize("parts", [1, 3])
def test_alone(parts: int) -> None:
    """Without a team the calling thread runs all parts and meets nobody."""
    phases = make_phases(6, parts)
    assert events_of(6, phases, 0, 1, alone=True) == wanted_events(phases, 0, 1, alone=True)
