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

from asmdnn.isa.assembler import Assembler, Pointer, low32, mem, register, rsp

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
PHASE_RECORDS, PHASE_BOUNDS, PHASE_WAITS, BASES_OF_PHASE = range(4)
PHASE_WORDS = BASES_OF_PHASE  # and one for every argument


@dataclass(frozen=True, slots=True)
class ExecutorSpec:
    """An executor of kernels with so many arguments."""

    arguments: int

    @property
    def name(self) -> str:
        return f"executor_{self.arguments}__x86_64"

    def generate(self, asm: Assembler) -> None:
        context, phase, record, end, part, phases_left = (
            asm.gp.claim(register("r64", number), purpose)
            for number, purpose in (
                (3, "context"),
                (5, "phase"),
                (12, "record"),
                (13, "end of part"),
                (14, "part"),
                (15, "phases left"),
            )
        )
        scratch, table = asm.gp.take("scratch"), asm.gp.take("table")
        next_phase, next_part, next_record, part_done, phase_done, no_team, done = map(
            asm.new_label, ("next phase", "next part", "next record", "part done", "phase done", "no team", "done")
        )
        frame_words = self.arguments + self.arguments % 2  # keeps rsp a multiple of 16
        thread, team = (mem(rsp, WORD * (frame_words + i), size=WORD) for i in range(2))

        def word(index: int) -> Pointer:
            return mem(context, WORD * index, size=WORD)

        asm.MOV(context, asm.frame)
        asm.SUB(rsp, WORD * (frame_words + 2))
        alone = asm.new_label("alone")
        asm.MOV(thread, 0)
        asm.MOV(team, 1)
        asm.CMP(word(Context.THREAD_NUM), 0)
        asm.JZ(alone)
        for function, result in ((Context.THREAD_NUM, thread), (Context.NUM_THREADS, team)):
            asm.call(word(function))
            asm.MOV(low32(rax), low32(rax))  # an int: the upper half is undefined
            asm.MOV(result, rax)
        asm.bind(alone)
        asm.LEA(phase, mem(context, WORD * CONTEXT_WORDS))
        asm.MOV(phases_left, word(Context.PHASES))

        asm.bind(next_phase)
        asm.MOV(part, thread)
        asm.bind(next_part)
        asm.CMP(part, word(Context.PARTS))
        asm.JAE(phase_done)
        asm.MOV(table, mem(phase, WORD * PHASE_BOUNDS))
        for pointer, offset in ((record, 0), (end, WORD)):
            asm.IMUL(pointer, mem(table, offset, index=part, scale=8, size=WORD), WORD * (1 + self.arguments))
            asm.ADD(pointer, mem(phase, WORD * PHASE_RECORDS))
        asm.bind(next_record)
        asm.CMP(record, end)
        asm.JAE(part_done)
        for i in range(self.arguments):
            asm.MOV(scratch, mem(record, WORD * (1 + i)))
            asm.ADD(scratch, mem(phase, WORD * (BASES_OF_PHASE + i)))
            asm.MOV(mem(rsp, WORD * i), scratch)
        asm.MOV(asm.frame, rsp)
        asm.MOV(scratch, mem(record))
        asm.MOV(table, word(Context.KERNELS))
        asm.call(mem(table, index=scratch, scale=8, size=WORD))
        asm.ADD(record, WORD * (1 + self.arguments))
        asm.JMP(next_record)
        asm.bind(part_done)
        asm.ADD(part, team)
        asm.JMP(next_part)

        asm.bind(phase_done)
        asm.SUB(phases_left, 1)
        asm.JZ(done)
        asm.ADD(phase, WORD * (PHASE_WORDS + self.arguments))
        asm.CMP(mem(phase, WORD * PHASE_WAITS, size=WORD), 0)
        asm.JZ(no_team)
        asm.CMP(word(Context.THREAD_NUM), 0)
        asm.JZ(no_team)
        asm.call(word(Context.BARRIER))
        asm.bind(no_team)
        asm.JMP(next_phase)
        asm.bind(done)
        asm.ADD(rsp, WORD * (frame_words + 2))
        asm.ret()
