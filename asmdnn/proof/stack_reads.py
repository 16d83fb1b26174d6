"""Rule "definite assignment" of the stack: each byte that is read of it has been written on every path.

The walk asks at each of its steps.  Code that is not walked is gone over here; it may ask several times how many of
something there are, as an executor does for each argument of a phase.  So its paths are kept apart by the number that
a register was last found to be, as long as it holds it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from asmdnn.proof.assignment import RULE
from asmdnn.proof.kernel import Kernel, PlacedInstruction, followers
from asmdnn.proof.machine import CALLER_SAVED, is_word
from asmdnn.proof.stack_bytes import StackBytes, StackUse
from asmdnn.proof.values import STACK

Equal = tuple[int, int] | None  # a register, and the number that a comparison has found it to be


def check(kernel: Kernel, uses: Mapping[int, StackUse]) -> None:
    """Raise BrokenRule at a read of what some path has not written.  uses: by the offset of the instruction."""
    blocks = kernel.blocks
    of_stack = {
        start: [(step, uses[step.offset]) for step in block if step.offset in uses] for start, block in blocks.items()
    }
    before: dict[tuple[int, Equal], StackBytes] = {(0, None): StackBytes()}
    waiting = [*before]
    while waiting:
        start, equal = here = waiting.pop()
        written = reduce(StackBytes.after, (use for _, use in of_stack[start]), before[here])
        for there in _ways(blocks[start], equal):
            known = before[there].shared(written) if there in before else written
            if known != before.get(there):
                before[there] = known
                waiting.append(there)
    for (start, _), written in before.items():
        for step, use in of_stack[start]:
            check_use(kernel, step, written, use)
            written = written.after(use)


def check_use(kernel: Kernel, step: PlacedInstruction, written: StackBytes, use: StackUse) -> None:
    """Raise BrokenRule if the instruction reads anything else."""
    if missing := written.missing(use):
        base, begin, end = missing
        rounded = "" if base == STACK else f", rounded down to {base.number}"
        where = f"{end - begin} bytes of the stack, {-begin} below its start{rounded}"
        raise kernel.broken(RULE, f"it reads {where}, which no instruction before it has wholly written", step)


def _ways(block: Sequence[PlacedInstruction], equal: Equal) -> Iterator[tuple[int, Equal]]:
    """Where a block leads, and what a register is then equal to."""
    last = block[-1]
    if equal is not None and any(_changes(step, equal[0]) for step in block):
        equal = None
    tested = _tested(block)
    if tested is None:
        yield from ((target, equal) for target in followers(last))
        return
    if_equal, otherwise = (last.target, last.end) if last.fact.mnemonic == "je" else (last.end, last.target)
    if equal is None or equal[0] != tested[0] or equal == tested:
        yield if_equal, tested
    if equal != tested:
        yield otherwise, equal


def _changes(step: PlacedInstruction, register: int) -> bool:
    is_lost = step.fact.flow == "indirect call" and register in CALLER_SAVED
    return is_lost or register in step.fact.gp_written


def _tested(block: Sequence[PlacedInstruction]) -> Equal:
    """The register and the number that the branch at the end compares."""
    if len(block) < 2 or block[-1].fact.mnemonic not in ("je", "jne") or block[-2].fact.mnemonic != "cmp":
        return None
    fact = block[-2].fact
    known = is_word(fact) and fact.operands[1].kind == "number"
    return (fact.operands[0].number, fact.operands[1].number) if known else None
