"""The executor: one native call that walks a plan's phases and calls a kernel for every record.

    void executor(context *)

| context word (int64) | what it is |
|---|---|
| 0 THREAD_NUM  | address of int omp_get_thread_num(void); 0 to run the whole team's work on the calling thread |
| 1 NUM_THREADS | address of int omp_get_num_threads(void) |
| 2 BARRIER     | address of void GOMP_barrier(void) |
| 3 KERNELS     | address of the table of kernels' addresses |
| 4 PARTS       | number of parts that the records of every phase are split into |
| 5 PHASES      | number of phases, > 0; then for each phase: |
| + 0           | address of its records, int64[.., 1 + arguments]: a kernel's index, the offset of every argument |
| + 1           | address of its bounds, int64[parts + 1]: the first record of each part, and the end |
| + 2           | nonzero if all threads meet before the phase starts |
| + 3 ..        | the base address of every argument |

Thread t of a team of n runs parts t, t + n, ...: the team that OpenMP grants may be smaller than the one asked for.
Kernels may overwrite every caller-saved register; the executor keeps its state in callee-saved ones.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from asmdnn.isa.assembler import Assembler, Pointer, Register, low32, mem, register, rsp

WORD = 8
rax = register("r64", 0)


class Context(IntEnum):
    """Words of the context, see above."""

    THREAD_NUM = 0
    NUM_THREADS = 1
    BARRIER = 2
    KERNELS = 3
    PARTS = 4
    PHASES = 5


CONTEXT_WORDS = len(Context)
ARGUMENTS = tuple(word.name.lower() for word in Context)
PHASE_RECORDS, PHASE_BOUNDS, PHASE_WAITS, BASES_OF_PHASE = range(4)
PHASE_WORDS = BASES_OF_PHASE  # and one for every argument


class State(NamedTuple):
    """Where the executor keeps what it needs across calls: callee-saved registers, and two words behind the frame."""

    context: Register
    phase: Register
    record: Register
    end: Register
    part: Register
    phases_left: Register
    thread: Pointer
    team: Pointer

    def word(self, index: Context) -> Pointer:
        return mem(self.context, WORD * index, size=WORD)


@dataclass(frozen=True, slots=True)
class ExecutorSpec:
    """An executor of kernels with so many arguments."""

    arguments: int

    @property
    def name(self) -> str:
        return f"executor_{self.arguments}__x86_64"

    @property
    def frame(self) -> tuple[str, ...]:
        """What the frame points to, in order."""
        return ARGUMENTS

    def generate(self, asm: Assembler) -> None:
        frame_words = self.arguments + self.arguments % 2  # keeps rsp a multiple of 16
        state = State(
            context=asm.gp.claim(register("r64", 3), "context"),
            phase=asm.gp.claim(register("r64", 5), "phase"),
            record=asm.gp.claim(register("r64", 12), "record"),
            end=asm.gp.claim(register("r64", 13), "end of part"),
            part=asm.gp.claim(register("r64", 14), "part"),
            phases_left=asm.gp.claim(register("r64", 15), "phases left"),
            thread=mem(rsp, WORD * frame_words, size=WORD),
            team=mem(rsp, WORD * (frame_words + 1), size=WORD),
        )
        room = WORD * (frame_words + 2)
        next_phase, done = asm.new_label("next phase"), asm.new_label("done")

        asm.MOV(state.context, asm.frame)
        asm.SUB(rsp, room)
        join_team(asm, state)
        asm.LEA(state.phase, mem(state.context, WORD * CONTEXT_WORDS))
        asm.MOV(state.phases_left, state.word(Context.PHASES))
        asm.bind(next_phase)
        self.run_parts(asm, state)
        asm.SUB(state.phases_left, 1)
        asm.JZ(done)
        asm.ADD(state.phase, WORD * (PHASE_WORDS + self.arguments))
        meet_if_asked(asm, state)
        asm.JMP(next_phase)
        asm.bind(done)
        asm.ADD(rsp, room)
        asm.ret()

    def run_parts(self, asm: Assembler, state: State) -> None:
        """The records of every part that falls to this thread."""
        next_part, next_record, part_done, phase_done = map(
            asm.new_label, ("next part", "next record", "part done", "phase done")
        )
        bounds, record_bytes = asm.gp.take("bounds"), WORD * (1 + self.arguments)
        asm.MOV(state.part, state.thread)
        asm.bind(next_part)
        asm.CMP(state.part, state.word(Context.PARTS))
        asm.JAE(phase_done)
        asm.MOV(bounds, mem(state.phase, WORD * PHASE_BOUNDS))
        for pointer, offset in ((state.record, 0), (state.end, WORD)):
            asm.IMUL(pointer, mem(bounds, offset, index=state.part, scale=8, size=WORD), record_bytes)
            asm.ADD(pointer, mem(state.phase, WORD * PHASE_RECORDS))
        asm.gp.free(bounds)
        asm.bind(next_record)
        asm.CMP(state.record, state.end)
        asm.JAE(part_done)
        self.call_kernel(asm, state)
        asm.ADD(state.record, record_bytes)
        asm.JMP(next_record)
        asm.bind(part_done)
        asm.ADD(state.part, state.team)
        asm.JMP(next_part)
        asm.bind(phase_done)

    def call_kernel(self, asm: Assembler, state: State) -> None:
        """Offsets plus bases make the frame, at the top of the stack; the record's first word chooses the kernel."""
        value, table = asm.gp.take("value"), asm.gp.take("table")
        for i in range(self.arguments):
            asm.MOV(value, mem(state.record, WORD * (1 + i)))
            asm.ADD(value, mem(state.phase, WORD * (BASES_OF_PHASE + i)))
            asm.MOV(mem(rsp, WORD * i), value)
        asm.MOV(asm.frame, rsp)
        asm.MOV(value, mem(state.record))
        asm.MOV(table, state.word(Context.KERNELS))
        asm.call(mem(table, index=value, scale=8, size=WORD))
        asm.gp.free(value, table)


def join_team(asm: Assembler, state: State) -> None:
    """thread, team = this thread's number and the team's size; 0 of 1 without OpenMP."""
    alone = asm.new_label("alone")
    asm.MOV(state.thread, 0)
    asm.MOV(state.team, 1)
    asm.CMP(state.word(Context.THREAD_NUM), 0)
    asm.JZ(alone)
    for function, result in ((Context.THREAD_NUM, state.thread), (Context.NUM_THREADS, state.team)):
        asm.call(state.word(function))
        asm.MOV(low32(rax), low32(rax))  # an int: the upper half is undefined
        asm.MOV(result, rax)
    asm.bind(alone)


def meet_if_asked(asm: Assembler, state: State) -> None:
    """All threads meet, unless the phase continues the one before or there is no team."""
    no_wait = asm.new_label("no wait")
    for condition in (mem(state.phase, WORD * PHASE_WAITS, size=WORD), state.word(Context.THREAD_NUM)):
        asm.CMP(condition, 0)
        asm.JZ(no_wait)
    asm.call(state.word(Context.BARRIER))
    asm.bind(no_wait)
