"""What holds before every reachable instruction, on every path: a fixed point over the control-flow graph.

Joining values only ever loses knowledge, and there is little to lose (an offset, then the base), so this ends soon.
"""

from collections.abc import Iterator

from asmdnn.proof.kernel import PlacedInstruction, followers
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.state import State


def states(machine: Interpreter) -> Iterator[tuple[PlacedInstruction, State]]:
    """Every reachable instruction with the state before it, which is only valid until the next one is asked for."""
    kernel, blocks = machine.kernel, machine.kernel.blocks
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
