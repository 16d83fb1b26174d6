"""Plans run by the generated executor under emulation, with a team of threads that meet at real barriers.

The context is the one that asmdnn.runtime builds; only its pointers are moved into the emulated memory.
"""

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from asmdnn.emulator import Emulator, MemoryRegion
from asmdnn.generators.context import CONTEXT_WORDS, PHASE_WORDS, Context, PhaseWord
from asmdnn.generators.executor import ExecutorSpec
from asmdnn.runtime.context import PhaseTables
from asmdnn.runtime.execution import ExecutablePlan
from asmdnn.runtime.kernels import generate
from tests.primitives.conv_case import ConvCase, case_of, proven
from tests.primitives.conv_reference import expected, make_data
from tests.primitives.conv_run import memories_of
from tests.primitives.tensors import assert_within, read
from tests.primitives.test_conv_phases import in_ranges
from tests.support.blob import CODE, Words, blob_of
from tests.support.plans import regions_of
from tests.support.together import at_once

DATA, THREAD_NUM, NUM_THREADS, BARRIER = 0x8000_0000, 0x3000, 0x3010, 0x3020
PATIENCE_SECONDS = 60
PARTS = 3
CASES = [
    case_of("mb1ic17ih5oc33oh5kh3ph1          any   any   bias  relu"),
    in_ranges("mb1ic33ih5oc17oh5kh3ph1        any   any   bias  sum+relu"),
    case_of("mb2ic20ih5oc24oh5kh1ph0          nchw  nchw  -     sum:0.5"),
]


class Team:
    """`size` threads that call the executor's code at once; size 0: the calling thread, without a team."""

    def __init__(self, size: int) -> None:
        self.size, self.barrier = size, threading.Barrier(max(1, size))
        self.failures: list[BaseException] = []

    def run(self, blob: bytes, context: int, regions: list[MemoryRegion]) -> None:
        at_once(lambda t: self.work(t, blob, context, regions), max(1, self.size))
        if self.failures:
            raise self.failures[0]

    def work(self, number: int, blob: bytes, context: int, regions: list[MemoryRegion]) -> None:
        callbacks = {
            THREAD_NUM: lambda *_: number,
            NUM_THREADS: lambda *_: self.size,
            BARRIER: lambda *_: self.barrier.wait(PATIENCE_SECONDS) and None,
        }
        try:
            Emulator(regions, callbacks=callbacks).call(blob, CODE, context)
        except BaseException as failure:
            self.failures.append(failure)
            self.barrier.abort()


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.emulated(isa)) for isa in ("avx2", "avx512_core")])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_team_computes_the_same(isa: str, case: ConvCase) -> None:
    pd, data = proven.__wrapped__(case, isa), make_data(case, integers=True)
    program = ExecutablePlan(pd.plan, threads=1)
    blob, (executor, *kernels) = blob_of(
        [generate(s) for s in (ExecutorSpec(arguments=program.arguments), *pd.plan.specs)]
    )
    assert executor == CODE
    for size in (0, 1, PARTS - 1, PARTS + 1):
        memories = memories_of(pd, data)
        regions, words = regions_of(pd.plan, memories), Words(DATA, 1 << 18)
        base = {r.name: r.address for r in regions}
        context = emulated_context(program, kernels, base, words, with_team=size > 0)
        Team(size).run(blob, context, [*regions, words.region("context")])
        assert_within(read(memories["dst"]), expected(case, data), 0.0)


def emulated_context(
    program: ExecutablePlan, kernels: Sequence[int], base: dict[str, int], words: Words, with_team: bool
) -> int:
    """The program's context with all pointers into emulated memory; its address."""
    context = program.context_words()
    context[Context.THREAD_NUM : Context.BARRIER + 1] = (THREAD_NUM, NUM_THREADS, BARRIER) if with_team else (0, 0, 0)
    context[Context.PARTS] = PARTS
    for i, table in enumerate(PhaseTables(program.plan, PARTS, kernels).phases):
        at = CONTEXT_WORDS + i * (PHASE_WORDS + program.arguments)
        assert context[at + PhaseWord.BARRIER] == table.has_barrier
        assert context[at + PhaseWord.ARGUMENTS] == len(table.phase.arguments)
        context[at + PhaseWord.RECORDS] = words.add(np.ravel(table.phase.records))
        context[at + PhaseWord.SHARES] = words.add(np.ravel(table.shares))
        context[at + PhaseWord.KERNELS] = words.add(table.kernels)
        if table.starts is not None and table.part_bytes is not None:
            context[at + PhaseWord.STARTS] = words.add(np.ravel(table.starts))
            context[at + PhaseWord.PART_BYTES] = words.add(table.part_bytes)
    for name, address in base.items():
        for slot, offset in program.slots(name):
            context[slot] = address + offset
    return words.add(context)
