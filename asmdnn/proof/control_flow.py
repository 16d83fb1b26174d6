"""Rule "control flow": from the first byte on, every path stays on listed instructions and ends in RET."""

from typing import Final

from asmdnn.proof.kernel import Kernel, followers

RULE: Final = "control flow"


def check(kernel: Kernel) -> None:
    """Raise BrokenRule for a path that leaves the code or cannot be followed."""
    assert kernel.code.listing is not None
    starts, reached, waiting = {line.offset for line in kernel.code.listing}, set[int](), [0]
    while waiting:
        here = waiting.pop()
        if here in reached:
            continue
        reached.add(here)
        step = kernel.steps[here]
        flow = step.fact.flow
        lost = flow == "indirect jump" and not step.by_table
        if lost or flow in ("call", "trap") or (flow == "indirect call" and not kernel.contract.calls):
            raise kernel.broken(RULE, f"{flow if flow != 'trap' else 'system instruction'}s are not allowed", step)
        if flow == "return" and step.fact.operands:
            raise kernel.broken(RULE, "RET may not take bytes off the stack", step)
        for target in followers(step):
            if target not in starts or target not in kernel.steps:
                raise kernel.broken(RULE, _where(kernel, target, jumped=target != step.end), step)
            waiting.append(target)


def _where(kernel: Kernel, target: int, jumped: bool) -> str:
    what = "the jump goes to" if jumped else "execution runs on to"
    if not 0 <= target < len(kernel.code.data):
        return f"{what} {target:#x}, outside of the {len(kernel.code.data)} bytes"
    if target >= kernel.pool_start:
        return f"{what} {target:#x}, into the constants"
    if target >= kernel.code_bytes:
        return f"{what} {target:#x}, after the last instruction"
    return f"{what} {target:#x}, into the middle of an instruction"
