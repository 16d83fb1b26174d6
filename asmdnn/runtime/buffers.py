"""Where a plan's buffers stand in the executor's context, and what a call checks of the outputs among them."""

from typing import NamedTuple

from asmdnn.generators.context import CONTEXT_WORDS, PHASE_WORDS
from asmdnn.planning.plan import Plan


class Output(NamedTuple):
    """An output: its position in plan.tensors, that of every other tensor with its size, and those that may lie in its
    place."""

    name: str
    position: int
    size_bytes: int
    others: tuple[tuple[int, int], ...]
    in_place: frozenset[int]


def outputs_of(plan: Plan) -> tuple[Output, ...]:
    """What calls check of the destinations, so that they need not look for it."""
    tensors = list(plan.tensors.items())
    position = {name: i for i, (name, _) in enumerate(tensors)}
    found = []
    for name in plan.outputs:
        desc = plan.tensors[name]
        others = tuple((i, tensor.size_bytes) for i, (other, tensor) in enumerate(tensors) if other != name)
        shared = frozenset(position[other] for other, output in plan.in_place if output == name)
        found.append(Output(name, position[name], desc.size_bytes, others, shared))
    return tuple(found)


def slots_of(plan: Plan) -> dict[str, list[tuple[int, int]]]:
    """Of each buffer, the words of the context that point into it, and how far after its start."""
    size = PHASE_WORDS + plan.arguments
    found: dict[str, list[tuple[int, int]]] = {}
    for p, phase in enumerate(plan.phases):
        for i, view in enumerate(phase.arguments):
            found.setdefault(view.buffer, []).append((CONTEXT_WORDS + p * size + PHASE_WORDS + i, view.offset_bytes))
    return found
