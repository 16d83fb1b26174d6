"""What holds before every reachable instruction, on every path: a fixed point over the control-flow graph.

Joining values only ever loses knowledge, and there is little to lose (an offset, then the base), so this ends soon.
"""

from collections.abc import Iterator

from asmdnn.proof.kernel import Kernel, PlacedInstruction, followers
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.state import State


def states(machine: Interpreter) -> Iterator[tuple[PlacedInstruction, State]]:
    """Every reachable instruction with the state before it, which is only valid until the next one is asked for."""
    kernel, blocks = machine.kernel, blocks_of(machine.kernel)
    before: dict[int, State] = {0: State()}
    before[0].enter(kernel.contract.entry)
    waiting = [0]
    while waiting:
        start = waiting.pop()
        state = before[start].copy()
        for step in blocks[start]:
            machine.apply(state, step)
        for target in followers(blocks[start][-1]):
            if target not in before:
                before[target] = state.copy()
                waiting.append(target)
            elif before[target].join(state) and target not in waiting:
                waiting.append(target)
    for start, state in before.items():
        for step in blocks[start]:
            yield step, state
            machine.apply(state, step)


def blocks_of(kernel: Kernel) -> dict[int, list[PlacedInstruction]]:
    """Instructions that run one after the other, by the offset of the first.  The control flow must be proved."""
    starts, waiting = {0}, [0]
    while waiting:  # where jumps go to, and what stands after one
        here = waiting.pop()
        while kernel.steps[here].fact.flow in ("next", "indirect call"):
            here = kernel.steps[here].end
        new = [target for target in followers(kernel.steps[here]) if target not in starts]
        starts.update(new)
        waiting += new
    blocks = {}
    for start in starts:
        block, here = [kernel.steps[start]], kernel.steps[start].end
        while block[-1].fact.flow in ("next", "indirect call") and here not in starts:
            block.append(kernel.steps[here])
            here = block[-1].end
        blocks[start] = block
    return blocks
