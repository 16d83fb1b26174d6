"""Somebody who is told of every instruction that runs."""

from collections.abc import Callable, Sequence
from typing import Protocol

from iced_x86 import Instruction

from asmdnn.emulator.cpu import Cpu

Step = Callable[[], int | None]


class Observer(Protocol):
    """Is told of every instruction, with the state before and after it; `offset` is its place in the code."""

    def before(self, cpu: Cpu) -> None: ...
    def after(self, offset: int, cpu: Cpu) -> None: ...


def observed(instructions: Sequence[Instruction], steps: Sequence[Step], cpu: Cpu, observer: Observer) -> list[Step]:
    """The steps of a block, each between two calls of the observer; what only goes on to the next block is not seen."""

    def watched(instruction: Instruction, step: Step) -> Step:
        def run() -> int | None:
            observer.before(cpu)
            following = step()
            observer.after(int(instruction.ip), cpu)
            return following

        return run

    seen = [watched(*pair) for pair in zip(instructions, steps, strict=False)]
    return [*seen, *steps[len(seen) :]]
