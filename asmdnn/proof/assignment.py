"""Rule "definite assignment": on every path, what an instruction reads has been written before, each part of it.

Registers of the caller may be saved: PUSH, and a store by rsp of one that must be kept, are no reads of it, and to load
it back gives what it was.  A call leaves what the ABI says.  Functions of one's own save all that they have around a
call, also vectors and masks; what is then in the slots, nobody looks at.  stack_reads.py is about bytes of the stack.
"""

from collections.abc import Set
from typing import Final

from asmdnn.proof.facts import NO_REGISTER, RSP
from asmdnn.proof.kernel import Kernel, PlacedInstruction, followers
from asmdnn.proof.machine import CALLER_SAVED, RAX, Interpreter
from asmdnn.proof.register_parts import ALL_FLAGS, ALL_MASKS, ALL_TILES, ALL_VECTORS, RegisterUse, gp, name_of, vector
from asmdnn.proof.saved_registers import SAVED
from asmdnn.proof.state import WORD_BYTES, State

RULE: Final = "definite assignment"
RDI: Final = 7
EVERYTHING: Final = -1
LOST_BY_CALLS: Final = sum(map(gp, CALLER_SAVED)) | ALL_VECTORS | ALL_MASKS | ALL_TILES | ALL_FLAGS

PLAIN_STORES: Final = ("vmovups", "vmovaps", "vmovdqu", "vmovdqa", "movups", "movaps", "kmovq", "kmovd", "kmovw")


def check(kernel: Kernel, restoring: Set[int]) -> None:
    """Raise BrokenRule at the first read of what some path has not written.

    restoring: offsets of the instructions that load what a register held at the call.  The control flow must be proved.
    """
    blocks = kernel.blocks
    uses = {start: [_use(kernel, step, restoring) for step in block] for start, block in blocks.items()}
    before = {0: _at_call(kernel)}
    waiting = [0]
    while waiting:
        start = waiting.pop()
        written = before[start]
        for _, writes, loses in uses[start]:
            written = written & ~loses | writes
        for target in followers(blocks[start][-1]):
            known = before.get(target, EVERYTHING)
            if target not in before or known & ~written:
                before[target] = known & written
                waiting.append(target)
    for start in sorted(blocks):
        written = before[start]
        for (reads, writes, loses), step in zip(uses[start], blocks[start], strict=True):
            if missing := reads & ~written:
                raise kernel.broken(RULE, f"it reads {name_of(missing)}, which no instruction before it writes", step)
            written = written & ~loses | writes


def restores(machine: Interpreter, step: PlacedInstruction, state: State) -> bool:
    """Whether a register gets what some register held at the call: nothing that the kernel has made."""
    fact = step.fact
    if fact.mnemonic not in ("pop", "mov") or not fact.gp_written or not fact.accesses:
        return False
    if fact.mnemonic == "pop":
        value = machine.load(state, state.registers[RSP], WORD_BYTES)
    else:
        value = machine.read(state, step, fact.operands[1])
    return value.base is not None and value.base.kind == "entry"


def _at_call(kernel: Kernel) -> int:
    entry = kernel.contract.entry
    if entry is None:
        return gp(RSP) | gp(RDI)
    registers = [gp(RSP), *(gp(register) for register, _ in entry.registers), *map(vector, entry.vectors)]
    return sum(registers)


def _use(kernel: Kernel, step: PlacedInstruction, restoring: Set[int]) -> RegisterUse:
    """What its bytes say, and what its place in the kernel makes of it."""
    fact = step.fact
    reads, writes, loses = fact.use
    if fact.flow == "return":
        return RegisterUse(reads | (kernel.contract.entry.result if kernel.contract.entry else 0), writes, loses)
    if fact.flow == "indirect call":
        if fact.calls_kernel:
            return RegisterUse(reads | gp(RDI), writes, LOST_BY_CALLS)
        return RegisterUse(reads, writes | gp(RAX) | vector(0), LOST_BY_CALLS)
    if _saves(step, kernel.contract.entry is not None):
        reads = gp(RSP)
    if step.offset in restoring:
        return RegisterUse(reads, gp(RSP), writes)
    return fact.use if reads == fact.use.reads else RegisterUse(reads, writes, loses)


def _saves(step: PlacedInstruction, of_any_kind: bool) -> bool:
    """Whether a whole register goes to the stack as it is."""
    fact = step.fact
    if fact.mnemonic == "push":
        return fact.operands[0].kind == "gp"
    if len(fact.operands) != 2 or fact.operands[0].kind != "memory" or not fact.accesses:
        return False
    access, saved = fact.accesses[0], fact.operands[1]
    if access.base != RSP or access.index != NO_REGISTER:
        return False
    if fact.mnemonic == "mov":
        return saved.kind == "gp" and saved.bits == 64 and (of_any_kind or saved.number in SAVED)
    return of_any_kind and fact.mnemonic in PLAIN_STORES and access.mask is None
