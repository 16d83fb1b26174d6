"""Rule "control flow": from the first byte on, every path stays on listed instructions; each leads to a RET."""

from collections.abc import Mapping, Sequence
from typing import Final

from asmdnn.proof.kernel import Kernel, followers

RULE: Final = "control flow"


def check(kernel: Kernel) -> None:
    """Raise BrokenRule for a path that leaves the code, cannot be followed, or is in a loop that nothing leaves."""
    assert kernel.code.listing is not None
    starts, reached, waiting = {line.offset for line in kernel.code.listing}, dict[int, list[int]](), [0]
    while waiting:
        here = waiting.pop()
        if here in reached:
            continue
        step = kernel.steps[here]
        reached[here] = [*followers(step)]
        flow = step.fact.flow
        lost = flow == "indirect jump" and not step.by_table
        if lost or flow in ("call", "trap") or (flow == "indirect call" and not kernel.contract.calls):
            raise kernel.broken(RULE, f"{flow if flow != 'trap' else 'system instruction'}s are not allowed", step)
        if flow == "return" and step.fact.operands:
            raise kernel.broken(RULE, "RET may not take bytes off the stack", step)
        for target in reached[here]:
            if target not in starts or target not in kernel.steps:
                raise kernel.broken(RULE, _where(kernel, target, jumped=target != step.end), step)
            waiting.append(target)
    _check_returns(kernel, reached)


def _check_returns(kernel: Kernel, reached: Mapping[int, Sequence[int]]) -> None:
    """reached: by the offset of each instruction those of the next ones."""
    before: dict[int, list[int]] = {here: [] for here in reached}
    for here, targets in reached.items():
        for target in targets:
            before[target].append(here)
    waiting = [here for here in reached if kernel.steps[here].fact.flow == "return"]
    returns = set(waiting)
    while waiting:
        new = [here for here in before[waiting.pop()] if here not in returns]
        returns.update(new)
        waiting += new
    if lost := reached.keys() - returns:
        raise kernel.broken(RULE, "no path from here leads to RET", kernel.steps[min(lost)])


def _where(kernel: Kernel, target: int, jumped: bool) -> str:
    what = "the jump goes to" if jumped else "execution runs on to"
    if not 0 <= target < len(kernel.code.data):
        return f"{what} {target:#x}, outside of the {len(kernel.code.data)} bytes"
    if target >= kernel.pool_start:
        return f"{what} {target:#x}, into the constants"
    if target >= kernel.code_bytes:
        return f"{what} {target:#x}, after the last instruction"
    return f"{what} {target:#x}, into the middle of an instruction"
