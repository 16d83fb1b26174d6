"""The executor's contract (the table in generators/context.py), on an emulated CPU with kernels that write a diary.

A kernel asks the host for a place and copies its frame there, and tells its number and MXCSR; host calls leave garbage
in all that the ABI lets them change, and in the upper half of an int.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from asmdnn.emulator import Emulator
from asmdnn.generators.context import PhaseWord
from asmdnn.generators.executor import ExecutorSpec
from tests.emulator.assembling import Mem, assemble, ins
from tests.generators.codes import code_of
from tests.generators.executors import COUNTS
from tests.support.blob import CODE, Words, blob_of

DATA, DIARY, THREAD_NUM, NUM_THREADS, BARRIER, HOST = 0x1000_0000, 0x2000_0000, 0x3000, 0x3010, 0x3020, 0x3030
GARBAGE = 0xDEAD_BEEF << 32
KERNELS = 3
MODES = (0x1F80, 0x9FC0)
MEET = ("meet",)
TEAMS = [(1, 1), (1, 3), (2, 2), (3, 3), (2, 5), (4, 2)]  # threads, parts

Event = tuple[int | str, ...]


@dataclass(frozen=True, eq=False)
class Phase:
    """records of a round; cuts: where parts begin among the records of all rounds; starts: int64[rounds, arguments]."""

    records: np.ndarray
    cuts: Sequence[int]
    barrier: bool
    bases: Sequence[int]
    mode: int = MODES[0]
    backwards: bool = False
    starts: np.ndarray | None = None
    part_bytes: Sequence[int] | None = None
    table: int = 0  # kernels are numbered from here on


def diarist(number: int, arguments: int) -> bytes:
    """The kernel of that number."""
    copy = [
        line
        for i in range(arguments)
        for line in (ins("MOV_R64_RM64", "rcx", Mem("rbx", 8 * i)), ins("MOV_RM64_R64", Mem("rax", 8 * i), "rcx"))
    ]
    mode = (ins("STMXCSR_M32", Mem("rsp", -8)), ins("MOV_R32_RM32", "esi", Mem("rsp", -8)))
    ask = (ins("MOV_R32_IMM32", "edi", number), ins("MOV_R64_IMM64", "rax", HOST), ins("CALL_RM64", "rax"))
    return assemble(
        ins("PUSH_R64", "rbx"), ins("MOV_R64_RM64", "rbx", "rdi"), *mode, *ask, *copy, ins("POP_R64", "rbx"),
        ins("RETNQ"),
    )  # fmt: skip


def make_phases(arguments: int, parts: int) -> list[Phase]:
    """Of every kind: without a barrier, backwards, in rounds, with memory of the parts' own, of fewer arguments than
    others; some parts are empty, the last phase has no record."""
    most = arguments
    random = np.random.default_rng(arguments * 100 + parts)
    phases: list[Phase] = []
    kinds = [(7, 0, True, False), (7, 0, False, True), (5, 3, True, False), (4, 3, False, True), (3, 1, True, False)]
    for records, rounds, barrier, backwards in (*kinds, (0, 0, True, False)):
        arguments = most if not phases else int(random.integers(1, most + 1))
        kernels = random.integers(KERNELS - 1, size=(records, 1))
        offsets = random.integers(-(1 << 40), 1 << 40, (records, arguments))
        count = records * max(1, rounds)
        inner = sorted(random.integers(count + 1, size=parts - 1).tolist())
        bases = random.integers(1 << 45, size=arguments).tolist()
        starts = random.integers(1 << 20, size=(rounds, arguments)) if rounds else None
        part_bytes = random.integers(1 << 20, size=arguments).tolist() if rounds else None
        mode, table = MODES[len(phases) % 3 == 1], len(phases) % 2
        made = (np.hstack((kernels, offsets)), [0, *inner, count], barrier, bases, mode, backwards, starts, part_bytes)
        phases.append(Phase(*made, table=table))
    return phases


def wanted_events(phases: Sequence[Phase], thread: int, team: int, alone: bool) -> list[Event]:
    """What thread `thread` does: its parts' records in order, and the meetings before phases."""
    events: list[Event] = []
    for i, phase in enumerate(phases):
        events += [MEET] * (i > 0 and phase.barrier and not alone)
        for part in range(thread, len(phase.cuts) - 1, team):
            numbers = range(phase.cuts[part], phase.cuts[part + 1])
            for number in reversed(numbers) if phase.backwards else numbers:
                turn, record = divmod(number, len(phase.records))
                kernel, *offsets = phase.records[record].tolist()
                frame = np.add(phase.bases, offsets)
                if phase.starts is not None and phase.part_bytes is not None:
                    frame += phase.starts[turn] + part * np.array(phase.part_bytes)
                events.append((phase.table + kernel, phase.mode, *frame.tolist()))
    return events


def shares_of(phase: Phase) -> list[int]:
    """The words of every part, from where it begins and ends among the records of all rounds."""
    words, arguments = list[int](), len(phase.bases)
    size, record, turn = max(1, len(phase.records)), 8 * (1 + arguments), 8 * arguments
    for begin, end in pairwise(phase.cuts):
        ways = [-record, record * (size - 1), -record, -turn] if phase.backwards else [record, 0, record * size, turn]
        if begin == end:
            words += [0, 0, 0, 0, *ways]
            continue
        first, last = divmod(begin, size), divmod(end - 1, size)
        if phase.backwards:
            words += [turn * last[0], record * last[1], turn * first[0], record * (first[1] - 1), *ways]
        else:
            words += [turn * first[0], record * first[1], turn * last[0], record * (last[1] + 1), *ways]
    return words


def described(phase: Phase, arguments: int, words: Words, table: Sequence[int]) -> list[int]:
    """The words of a phase for an executor of so many arguments, its arrays added to `words`."""
    found = [0] * len(PhaseWord)
    found[PhaseWord.RECORDS] = words.add(phase.records.ravel())
    found[PhaseWord.SHARES] = words.add(shares_of(phase))
    found[PhaseWord.KERNELS] = words.add(table[phase.table :])
    found[PhaseWord.BARRIER], found[PhaseWord.MXCSR] = int(phase.barrier), phase.mode
    if phase.starts is not None and phase.part_bytes is not None:
        found[PhaseWord.STARTS] = words.add(phase.starts.ravel())
        found[PhaseWord.PART_BYTES] = words.add(phase.part_bytes)
    found[PhaseWord.ARGUMENTS] = len(phase.bases)
    return [*found, *phase.bases, *[0] * (arguments - len(phase.bases))]


def events_of(arguments: int, phases: Sequence[Phase], thread: int, team: int, alone: bool) -> list[Event]:
    """What the generated executor does."""
    blob, addresses = blob_of(
        [code_of(ExecutorSpec(arguments=arguments)).data, *(diarist(k, arguments) for k in range(KERNELS))]
    )
    words, diary = Words(DATA), Words(DIARY)
    described_phases = [word for phase in phases for word in described(phase, arguments, words, addresses[1:])]
    team_functions = (0, 0, 0) if alone else (THREAD_NUM, NUM_THREADS, BARRIER)
    context = words.add([*team_functions, len(phases[0].cuts) - 1, len(phases), *described_phases])
    diary.add(np.zeros(arguments * sum(phase.cuts[-1] for phase in phases), np.int64))
    events: list[Event] = []
    runs: list[int] = []

    def host(number: int, mode: int, *_: int) -> int:
        runs.append(number)
        events.append((number, mode))
        return DIARY + 8 * arguments * (len(runs) - 1)

    callbacks = {
        THREAD_NUM: lambda *_: GARBAGE | thread,
        NUM_THREADS: lambda *_: GARBAGE | team,
        BARRIER: lambda *_: events.append(MEET),
        HOST: host,
    }
    regions = [words.region("data"), diary.region("diary", writable=True)]
    Emulator(regions, callbacks=callbacks).call(blob, CODE, context)
    frames = iter(diary.values[: arguments * len(runs)].reshape(-1, arguments).tolist())
    return [event if event == MEET else (*event, *next(frames)) for event in events]


def assert_seen(events: Sequence[Event], wanted: Sequence[Event]) -> None:
    """Kernels of phases with fewer arguments do not look at the rest of the frame."""
    assert [event[: len(one)] for event, one in zip(events, wanted, strict=True)] == wanted


@pytest.mark.parametrize("team", TEAMS, ids=str)
@pytest.mark.parametrize("arguments", COUNTS)
@pytest.mark.one_in(3)
def test_threads_of_a_team(arguments: int, team: tuple[int, int]) -> None:
    """Every thread runs parts t, t + n, ...: the team may be smaller than the number of parts, or larger."""
    threads, parts = team
    phases = make_phases(arguments, parts)
    everything = []
    for thread in range(threads):
        events = events_of(arguments, phases, thread, threads, alone=False)
        assert_seen(events, wanted_events(phases, thread, threads, alone=False))
        everything += [event for event in events if event != MEET]
    assert len(everything) == sum(phase.cuts[-1] for phase in phases)


@pytest.mark.parametrize("parts", [1, 3])
def test_alone(parts: int) -> None:
    """Without a team the calling thread runs all parts and meets nobody."""
    phases = make_phases(6, parts)
    assert_seen(events_of(6, phases, 0, 1, alone=True), wanted_events(phases, 0, 1, alone=True))
