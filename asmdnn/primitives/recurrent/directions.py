"""The steps of both directions of a layer in turn: one barrier for a step of each."""

from collections.abc import Iterator, Sequence

from asmdnn.planning.phase import Phase
from asmdnn.primitives.recurrent.rows import Turn
from asmdnn.records import replace

Stage = tuple[Turn, Phase]  # of a step


def in_turn(one: Sequence[Stage], other: Sequence[Stage]) -> Iterator[Phase]:
    """Stage by stage, of one direction and of the other, which needs no barrier: it is independent of the stage before
    it, unless both have come to neighbouring steps, whose rows of the output lie side by side.  Stages that one thread
    runs alone stay in their order."""
    for (turn, phase), (other_turn, other_phase) in zip(one, other, strict=True):
        yield phase
        has_barrier = phase.alone or other_phase.alone or are_near(turn, other_turn)
        yield other_phase if has_barrier else replace(other_phase, independent=True)


def are_near(one: Turn, other: Turn) -> bool:
    """Whether a turn writes rows of a step that the other one writes or reads."""
    return one.step in steps_of(other) or other.step in steps_of(one)


def steps_of(turn: Turn) -> set[int | None]:
    return {turn.step, turn.before}
