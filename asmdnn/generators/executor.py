"""The executor: one native call that walks a plan's phases and calls a kernel for every record.

    void executor(context *)

`generators/context.py` has the words of the context: phases, their records, and the shares of the parts.  Thread t of
a team of n runs parts t, t + n, ...: the team that OpenMP grants may be smaller than the one asked for.  Kernels may
overwrite every caller-saved register; the executor keeps its state in callee-saved ones, and what it needs once a part
or a round on the stack.  MXCSR is put back as it was found.  Streaming stores of kernels are made visible when a thread
is through its parts of a phase.  No kernel has a fence of its own: every call would wait until all is written, and
calls that share lines would write them in pieces.
"""

from collections.abc import Iterator
from typing import NamedTuple

from asmdnn.generators.context import ARGUMENTS, CONTEXT_WORDS, PHASE_WORDS, WORD, Context, PhaseWord, ShareWord
from asmdnn.isa.assembler import Assembler, Label, Pointer, Register, low32, mem, register, rsp
from asmdnn.isa.levels import ANY_CPU
from asmdnn.records import dataclass

rax = register("r64", 0)
STATUS_BITS = 0x3F  # of MXCSR: what happened, not what is to happen


class ExecutorSlots(NamedTuple):
    """Words of the stack after the frame and the bases of a round."""

    thread: Pointer
    team: Pointer
    context: Pointer
    part: Pointer
    phases_left: Pointer
    round: Pointer
    share: Pointer
    found_mxcsr: Pointer
    mxcsr: Pointer


class ExecutorState(NamedTuple):
    """Where the executor keeps what it needs across calls: callee-saved registers, and slots."""

    phase: Register
    table: Register
    record: Register
    end: Register
    step: Register
    arguments: Register
    slots: ExecutorSlots

    def word(self, index: PhaseWord) -> Pointer:
        return mem(self.phase, WORD * index, size=WORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSpec:
    """An executor of phases with up to so many arguments."""

    arguments: int
    frame = ARGUMENTS

    @property
    def name(self) -> str:
        return f"executor_{self.arguments}__{ANY_CPU}"

    @property
    def isa(self) -> str:
        return ANY_CPU

    def footprint(self) -> None:
        """Not claimed: the context has no fixed size, and what kernels touch is theirs."""

    def generate(self, asm: Assembler) -> None:
        words = 2 * self.arguments + len(ExecutorSlots._fields)
        words += words % 2  # keeps rsp a multiple of 16
        slots = ExecutorSlots(
            *(mem(rsp, WORD * (2 * self.arguments + i), size=WORD) for i in range(len(ExecutorSlots._fields)))
        )
        names = ("phase", "kernel table", "record", "end of share", "step", "arguments")
        kept = [asm.gp.claim(register("r64", n), name) for n, name in zip((3, 5, 12, 13, 14, 15), names, strict=True)]
        phase, table, record, end, step, arguments = kept
        state = ExecutorState(phase, table, record, end=end, step=step, arguments=arguments, slots=slots)
        next_phase, done = asm.new_label("next phase"), asm.new_label("done")

        asm.SUB(rsp, WORD * words)
        enter(asm, state)
        asm.bind(next_phase)
        switch_mxcsr(asm, state)
        asm.MOV(state.table, state.word(PhaseWord.KERNELS))
        asm.MOV(state.arguments, state.word(PhaseWord.ARGUMENTS))
        self.run_parts(asm, state)
        asm.SUB(slots.phases_left, 1)
        asm.JZ(done)
        asm.ADD(state.phase, WORD * (PHASE_WORDS + self.arguments))
        emit_barrier(asm, state)
        asm.JMP(next_phase)
        asm.bind(done)
        asm.LDMXCSR(half(slots.found_mxcsr))
        asm.ADD(rsp, WORD * words)
        asm.ret()

    def run_parts(self, asm: Assembler, state: ExecutorState) -> None:
        """The records of every part that falls to this thread."""
        next_part, next_round, walk, walked, phase_done = map(
            asm.new_label, ("next part", "next round", "walk", "walked", "phase done")
        )
        slots, part, context = state.slots, asm.gp.take("part"), asm.gp.take("context")
        asm.MOV(part, slots.thread)
        asm.MOV(slots.part, part)
        asm.bind(next_part)
        asm.MOV(part, slots.part)
        asm.MOV(context, slots.context)
        asm.CMP(part, mem(context, WORD * Context.PARTS, size=WORD))
        asm.JAE(phase_done)
        asm.gp.free(context)
        self.take_share(asm, state, part)
        asm.gp.free(part)
        asm.CMP(state.word(PhaseWord.STARTS), 0)
        asm.JNZ(next_round)
        self.take_bases(asm, state)
        asm.JMP(walk)

        asm.bind(next_round)
        self.start_round(asm, state)
        asm.bind(walk)
        self.walk(asm, state)
        asm.CMP(state.word(PhaseWord.STARTS), 0)
        asm.JZ(walked)
        go_to_next_round(asm, state, next_round)
        asm.bind(walked)
        following = asm.gp.take("following part")
        asm.MOV(following, slots.part)
        asm.ADD(following, slots.team)
        asm.MOV(slots.part, following)
        asm.gp.free(following)
        asm.JMP(next_part)
        asm.bind(phase_done)
        asm.SFENCE()

    def take_share(self, asm: Assembler, state: ExecutorState, part: Register) -> None:
        """Where a part begins and ends."""
        slots, share, value = state.slots, asm.gp.take("share"), asm.gp.take("value")
        asm.MOV(share, part)
        asm.SHL(share, 6)
        asm.ADD(share, state.word(PhaseWord.SHARES))
        asm.MOV(slots.share, share)
        asm.MOV(value, of_share(share, ShareWord.FIRST_ROUND))
        asm.MOV(slots.round, value)
        asm.MOV(state.step, of_share(share, ShareWord.STEP))
        asm.MOV(state.end, state.word(PhaseWord.RECORDS))
        asm.MOV(state.record, state.end)
        asm.ADD(state.record, of_share(share, ShareWord.FIRST))
        asm.ADD(state.end, of_share(share, ShareWord.LAST_END))
        asm.gp.free(share, value)

    def take_bases(self, asm: Assembler, state: ExecutorState) -> None:
        """The bases of a phase without rounds."""
        value = asm.gp.take("value")
        for i in self.each_argument(asm, state):
            asm.MOV(value, mem(state.phase, WORD * (PHASE_WORDS + i)))
            asm.MOV(mem(rsp, WORD * (self.arguments + i)), value)
        asm.gp.free(value)

    def start_round(self, asm: Assembler, state: ExecutorState) -> None:
        """The bases of a round, and where its records end."""
        slots, last, has_end = state.slots, asm.new_label("last round"), asm.new_label("end of round")
        starts, strides, value = (asm.gp.take(name) for name in ("starts", "part bytes", "value"))
        asm.MOV(starts, state.word(PhaseWord.STARTS))
        asm.ADD(starts, slots.round)
        asm.MOV(strides, state.word(PhaseWord.PART_BYTES))
        for i in self.each_argument(asm, state):
            asm.MOV(value, slots.part)
            asm.IMUL(value, mem(strides, WORD * i, size=WORD))
            asm.ADD(value, mem(starts, WORD * i, size=WORD))
            asm.ADD(value, mem(state.phase, WORD * (PHASE_WORDS + i), size=WORD))
            asm.MOV(mem(rsp, WORD * (self.arguments + i)), value)
        share = strides
        asm.MOV(share, slots.share)
        asm.MOV(state.end, state.word(PhaseWord.RECORDS))
        asm.MOV(value, slots.round)
        asm.CMP(value, of_share(share, ShareWord.LAST_ROUND))
        asm.JZ(last)
        asm.ADD(state.end, of_share(share, ShareWord.END))
        asm.JMP(has_end)
        asm.bind(last)
        asm.ADD(state.end, of_share(share, ShareWord.LAST_END))
        asm.bind(has_end)
        asm.gp.free(starts, strides, value)

    def walk(self, asm: Assembler, state: ExecutorState) -> None:
        """All records from the first to the end."""
        next_record, done = asm.new_label("next record"), asm.new_label("share done")
        asm.CMP(state.record, state.end)
        asm.JZ(done)
        asm.bind(next_record)
        self.call_kernel(asm, state)
        asm.ADD(state.record, state.step)
        asm.CMP(state.record, state.end)
        asm.JNZ(next_record)
        asm.bind(done)

    def call_kernel(self, asm: Assembler, state: ExecutorState) -> None:
        """Offsets plus bases make the frame, at the top of the stack; the record's first word chooses the kernel."""
        value = asm.gp.take("value")
        for i in self.each_argument(asm, state):
            asm.MOV(value, mem(state.record, WORD * (1 + i)))
            asm.ADD(value, mem(rsp, WORD * (self.arguments + i), size=WORD))
            asm.MOV(mem(rsp, WORD * i), value)
        asm.MOV(asm.frame, rsp)
        asm.MOV(value, mem(state.record))
        asm.call(mem(state.table, index=value, scale=8, size=WORD))
        asm.gp.free(value)

    def each_argument(self, asm: Assembler, state: ExecutorState) -> Iterator[int]:
        """Every argument, for code that is left after the last one of the phase: records of each phase have the width
        of its own kernels, and a branch that always goes one way costs less than copying what they do not read."""
        done = asm.new_label("arguments done")
        for i in range(self.arguments):
            if i:
                asm.CMP(state.arguments, i)
                asm.JZ(done)
            yield i
        asm.bind(done)


def of_share(share: Register, word: ShareWord) -> Pointer:
    return mem(share, WORD * word, size=WORD)


def half(slot: Pointer) -> Pointer:
    """The low 32 bits of a slot."""
    return mem(rsp, slot.displacement, size=4)


def enter(asm: Assembler, state: ExecutorState) -> None:
    """The context's place, the first phase, this thread's number and the team's size (0 of 1 without OpenMP)."""
    slots, alone = state.slots, asm.new_label("alone")
    phases, functions = asm.gp.take("phases"), state.phase
    asm.MOV(functions, asm.frame)
    asm.MOV(slots.context, functions)
    asm.MOV(phases, mem(functions, WORD * Context.PHASES))
    asm.MOV(slots.phases_left, phases)
    asm.gp.free(phases)
    asm.STMXCSR(half(slots.found_mxcsr))
    asm.STMXCSR(half(slots.mxcsr))
    asm.MOV(slots.thread, 0)
    asm.MOV(slots.team, 1)
    asm.CMP(mem(functions, WORD * Context.THREAD_NUM, size=WORD), 0)
    asm.JZ(alone)
    for function, result in ((Context.THREAD_NUM, slots.thread), (Context.NUM_THREADS, slots.team)):
        asm.call(mem(functions, WORD * function, size=WORD))
        asm.MOV(low32(rax), low32(rax))  # an int: the upper half is undefined
        asm.MOV(result, rax)
    asm.bind(alone)
    asm.ADD(state.phase, WORD * CONTEXT_WORDS)


def switch_mxcsr(asm: Assembler, state: ExecutorState) -> None:
    """The phase's control word, loaded if it says something else than the one in force."""
    same, wanted, found = asm.new_label("same mode"), asm.gp.take("wanted"), asm.gp.take("in force")
    asm.MOV(wanted, state.word(PhaseWord.MXCSR))
    asm.MOV(low32(found), half(state.slots.mxcsr))
    asm.XOR(found, wanted)
    asm.AND(low32(found), 0xFFFF & ~STATUS_BITS)
    asm.JZ(same)
    asm.MOV(state.slots.mxcsr, wanted)
    asm.LDMXCSR(half(state.slots.mxcsr))
    asm.bind(same)
    asm.gp.free(wanted, found)


def go_to_next_round(asm: Assembler, state: ExecutorState, next_round: Label) -> None:
    """The next round of a share, unless this was its last one."""
    slots, last = state.slots, asm.new_label("was last round")
    share, value = asm.gp.take("share"), asm.gp.take("value")
    asm.MOV(share, slots.share)
    asm.MOV(value, slots.round)
    asm.CMP(value, of_share(share, ShareWord.LAST_ROUND))
    asm.JZ(last)
    asm.ADD(value, of_share(share, ShareWord.NEXT))
    asm.MOV(slots.round, value)
    asm.MOV(state.record, state.word(PhaseWord.RECORDS))
    asm.ADD(state.record, of_share(share, ShareWord.BEGIN))
    asm.JMP(next_round)
    asm.bind(last)
    asm.gp.free(share, value)


def emit_barrier(asm: Assembler, state: ExecutorState) -> None:
    """The barrier before a phase, unless it has none or there is no team."""
    no_wait, context = asm.new_label("no wait"), asm.gp.take("context")
    asm.MOV(context, state.slots.context)
    for condition in (state.word(PhaseWord.BARRIER), mem(context, WORD * Context.THREAD_NUM, size=WORD)):
        asm.CMP(condition, 0)
        asm.JZ(no_wait)
    asm.call(mem(context, WORD * Context.BARRIER, size=WORD))
    asm.bind(no_wait)
    asm.gp.free(context)
