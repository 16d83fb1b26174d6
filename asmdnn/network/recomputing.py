"""Steps that make values again which would else be kept for a long time, as a training step keeps its forward pass.

The steps before a turn are the way forward, the others the way back.  A value that is made again has two buffers: the
way forward reads the first, the way back the second, which the same primitives fill once more, from what is kept, just
before its first reader.  As these are the same primitives on the same formats, so are the bits.  Sources: Griewank and
Walther, Evaluating Derivatives (2008), chapter 12; Chen et al., Training Deep Nets with Sublinear Memory Cost (2016).
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from math import inf

from asmdnn.network.step_list import NetworkStep
from asmdnn.network.steps import Steps
from asmdnn.records import replace

SMALL_SHARE = 64  # what has less than this part of the bytes of the largest value is kept
MOST_AGAIN = 4  # steps from what is kept to a value that is made again: what is made together lives together


class ThereAndBack:
    """What steps read and write, in the order in which they were lowered.  turn: the number of the first one on the way
    back.  Names are those of whole buffers, of what lies in another one the other's."""

    def __init__(self, steps: Steps, turn: int) -> None:
        self.steps, self.turn = steps, turn
        self.reads, self.writes = list[set[str]](), list[set[str]]()
        self.makers: dict[str, list[int]] = {}
        self.in_pieces = {steps.memory.located(part).buffer for part in steps.memory.parts}
        for i, step in enumerate(steps.steps):
            outputs = {*step.pd.plan.outputs}
            roots = {argument: steps.memory.located(name).buffer for argument, name in step.buffers.items()}
            self.writes.append({root for argument, root in roots.items() if argument in outputs})
            self.reads.append({root for argument, root in roots.items() if argument not in outputs})
            for root in self.writes[-1]:
                self.makers.setdefault(root, []).append(i)

    @cached_property
    def wanted(self) -> list[str]:
        """What the way back reads of the way forward, in the order in which it is made."""
        read = {name for names in self.reads[self.turn :] for name in names}
        return [name for name, makers in self.makers.items() if makers[0] < self.turn and name in read]

    @cached_property
    def least(self) -> int:
        """The bytes from which on a value is worth being made again."""
        return max(map(self.size, self.wanted), default=0) // SMALL_SHARE + 1

    def size(self, name: str) -> int:
        return self.steps.memory.sizes.get(name, 0)

    def stays(self, name: str) -> bool:
        """Whether it is kept whatever else is: what comes from outside, is made in pieces, or is small."""
        makers = self.makers.get(name, [])
        in_pieces = len(makers) != 1 or name in self.in_pieces
        return in_pieces or makers[0] >= self.turn or self.size(name) < self.least

    def before(self, name: str, kept: Callable[[str], bool]) -> list[int] | None:
        """The steps that make a value of what is kept, and it; None where they are too many, or need what has no single
        maker."""
        found, left = list[int](), [name]
        while left:
            at = left.pop()
            if at != name and (at not in self.makers or kept(at)):
                continue
            if len(self.makers[at]) != 1 or at in self.in_pieces or len(found) == MOST_AGAIN:
                return None
            (maker,) = self.makers[at]
            if maker not in found:
                found.append(maker)
                left += self.reads[maker]
        return found

    def cycles(self, steps: Collection[int]) -> int:
        return sum(self.steps.steps[i].pd.plan.cycles for i in steps)


def kept_by_cost(flow: ThereAndBack, rate: float, budget: float = inf) -> set[str]:
    """What is kept where a value is made again if that costs at most `rate` cycles a byte, from what is kept anyway:
    the cheapest first, while all together cost at most `budget` cycles."""
    kept, again = {*flow.wanted}, dict[str, list[int]]()  # the steps of what is made again, by its name
    own = {name: flow.cycles(flow.makers[name]) / flow.size(name) for name in flow.wanted if not flow.stays(name)}

    def steps_of(name: str) -> list[int] | None:
        found = flow.before(name, lambda x: x in kept or (flow.stays(x) and len(flow.makers[x]) == 1))
        return None if found is None or flow.cycles(found) > rate * flow.size(name) else found

    for name in sorted(own, key=lambda name: own[name]):
        kept.remove(name)
        through = [other for other, steps in again.items() if any(name in flow.reads[i] for i in steps)]
        new = {other: steps_of(other) for other in (name, *through)}
        found = again | {other: steps for other, steps in new.items() if steps is not None}
        fits = budget == inf or flow.cycles({i for steps in found.values() for i in steps}) <= budget
        if fits and all(steps is not None for steps in new.values()):
            again = found
        else:
            kept.add(name)
    return kept


def kept_by_parts(flow: ThereAndBack, cuts: Sequence[int]) -> set[str]:
    """What is kept where the way forward is cut before the steps of these numbers: what a later part reads, and all of
    the last one."""
    part = [sum(cut <= i for cut in cuts) for i in range(flow.turn)]
    kept = {name for i in range(flow.turn) for name in flow.writes[i] if part[i] == len(cuts)}
    for i in range(flow.turn):
        kept |= {x for x in flow.reads[i] if x in flow.makers and part[flow.makers[x][0]] < part[i]}
    return kept


def with_again(flow: ThereAndBack, kept: set[str]) -> Steps:
    """The steps with those before readers on the way back that make again what is not kept."""
    made, done, own = flow.steps.branch(), set[int](), flow.steps.steps
    names = {x: f"{x} again" for x in flow.makers if not (x in kept or flow.stays(x))}
    made.steps = own[: flow.turn]
    for i in range(flow.turn, len(own)):
        missing, left = set[int](), [x for x in flow.reads[i] if x in names]
        while left:
            (maker,) = flow.makers[left.pop()]
            if maker not in done | missing:
                missing.add(maker)
                left += [x for x in flow.reads[maker] if x in names]
        made.steps += [step_again(own[j], names, made) for j in sorted(missing)]
        done |= missing
        made.steps.append(reading_again(own[i], names))
    return made


def reading_again(step: NetworkStep, names: dict[str, str]) -> NetworkStep:
    if not any(name in names for name in step.buffers.values()):
        return step
    return replace(step, buffers={argument: names.get(name, name) for argument, name in step.buffers.items()})


def step_again(step: NetworkStep, names: dict[str, str], steps: Steps) -> NetworkStep:
    """Its results have buffers of their own; nobody reads those of results that are kept."""
    outputs, buffers = {*step.pd.plan.outputs}, dict[str, str]()
    for argument, name in step.buffers.items():
        again = f"{name} again"
        buffers[argument] = again if argument in outputs else names.get(name, name)
        if argument in outputs:
            steps.memory.sizes[again] = step.pd.plan.tensors[argument].size_bytes
    return replace(step, label=f"{step.label}, again", buffers=buffers)
