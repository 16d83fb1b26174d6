"""A 1x1 convolution and the depthwise one after it by strips: what is between them stays in L2.

A strip is some rows of dst; for it and a panel of channels, one group of records computes the rows of the first
convolution that its windows have into scratch of the thread's own, and then the second one.  Rows at the edge of a
strip are computed again for the next one.  The records are those of the two convolutions' own plans of so many rows
and channels: strips that only lie elsewhere share them.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from asmdnn.generators.dot.conv_shape import TAPS
from asmdnn.generators.dot.grouped_shape import SHAPE
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Int64, Phase, Repeat, flushing
from asmdnn.planning.phases import merged
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.rounds import without_barrier
from asmdnn.planning.steps import StepRecords, group_of, step_of, widened
from asmdnn.primitives.convolution import direct, grouped
from asmdnn.primitives.convolution.pairs.pair import MIDDLE
from asmdnn.primitives.convolution.pairs.parts import CHANNELS, ROWS, Parts, Strip, StripPlace, runs_of, strips_of
from asmdnn.primitives.convolution.row_specs import SHAPES, in_lines
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass, field, replace
from asmdnn.types import f32

NAME = "strips+direct+depthwise"
ARGUMENT_OF = {"taps": TAPS, SHAPES: SHAPE}  # of constants


def planned_strips(parts: Parts, engine: Engine, panel: int, rows: int) -> Plan:
    """The plan in panels of so many channels and strips of so many rows.  Raises Refused."""
    strips = Strips(parts, engine, panel)
    phases = list(strips.phases(strips_of(parts.pair.second, rows)))
    if sum(phase.count for phase in phases) <= engine.tuning.convolution.written_out:
        phases = [together(phases)]
    phases = [phases[0], *(phase for each in phases[1:] for phase in without_barrier([each]))]
    constants = {name: in_lines(data) for name, data in strips.constants.items()}
    scratch = {MIDDLE: strips.middle_bytes}
    name = f"{NAME}:{engine.isa}"
    return Plan(name, flushing(phases), parts.tensors, constants, scratch, ("dst",), per_part=(MIDDLE,))


@dataclass(eq=False)
class Strips:
    """The phases as they come together, and with them tap lists and words of images, and the largest strip of the
    middle."""

    parts: Parts
    engine: Engine
    panel: int
    constants: dict[str, list[Int64]] = field(default_factory=dict)
    middle_bytes: int = 0

    def phases(self, strips: Sequence[Strip]) -> Iterator[Phase]:
        """One for every shape of strips, and of panels, each a group of records again and again."""
        full, rest = divmod(self.parts.pair.second.dst.dims[CHANNELS], self.panel)
        panels = [(0, self.panel, full)] * bool(full) + [(full * self.panel, rest, 1)] * bool(rest)
        runs = runs_of(strips)
        places = [(run, StripPlace(run[0], first, width), times) for run in runs for first, width, times in panels]
        steps = [(self.first_step(at), self.second_step(at)) for _, at, _ in places]
        arguments = max((len(first.views) for first, _ in steps), default=0)  # fewer vectors of channels have fewer
        for (run, at, times), (first, second) in zip(places, steps, strict=True):
            yield self.phase(run, at, times, group_of((widened(first, arguments), second)))

    def phase(self, run: Sequence[Strip], at: StripPlace, panels: int, group: Phase) -> Phase:
        """For all images, strips of a run, and so many panels from `at` on, whose records `group` has."""
        names = [view.buffer for view in group.arguments]
        starts = np.array([self.parts.start(name, at) for name in names], np.int64)
        records = group.records.copy()
        records[:, 1:] += starts
        steps = (
            (self.parts.pair.second.dst.dims[0], replace(at, image=1)),
            (len(run), replace(at, strip=run[min(1, len(run) - 1)])),
            (panels, replace(at, channel=at.channel + self.panel)),
        )
        repeats = []
        for times, there in steps:
            if times > 1:
                moves = np.array([self.parts.start(name, there) for name in names], np.int64) - starts
                repeats.append(Repeat(times, tuple(moves.tolist())))
        return replace(group, records=records, repeats=tuple(repeats))

    def middle(self, at: StripPlace) -> MemoryDesc:
        dims = (1, at.channels, at.strip.src_rows, *self.parts.pair.second.src.dims[ROWS + 1 :])
        return MemoryDesc(dims, f32, f"aBx{lanes_of(self.engine.isa)}b")

    def first_step(self, at: StripPlace) -> StepRecords:
        """The rows of the middle."""
        pair, parts, middle = self.parts.pair, self.parts, self.middle(at)
        self.middle_bytes = max(self.middle_bytes, middle.size_bytes)
        tensors = {name: parts.part(name, at) for name in pair.first.tensors() if name != "dst"}
        own = {name: name for name in pair.first_attr.tensors()}
        attr = parts.attr_of(pair.first_attr, own, at)
        plan = direct.planned(pair.first.with_formats({**tensors, "dst": middle}), attr, self.engine)
        return self.step(plan, {"dst": MIDDLE})

    def second_step(self, at: StripPlace) -> StepRecords:
        """The strip of dst."""
        pair, parts, strip = self.parts.pair, self.parts, at.strip
        desc = replace(
            pair.second,
            src=self.middle(at),
            weights=parts.part(pair.names["weights"], at),
            bias=parts.part(pair.names["bias"], at) if pair.second.bias else None,
            dst=parts.part("dst", at),
            padding_l=(strip.above, *pair.second.padding_l[1:]),
            padding_r=(strip.below, *pair.second.padding_r[1:]),
        )
        plan = grouped.planned(desc, parts.attr_of(pair.second_attr, pair.names, at), self.engine)
        return self.step(plan, {**pair.names, "src": MIDDLE})

    def step(self, plan: Plan, names: Mapping[str, str]) -> StepRecords:
        """The records of a plan, whose constants join those of all; names: of buffers that are called otherwise."""
        step = step_of(simple(plan), {**{name: name for name in (*plan.tensors, *plan.constants)}, **names})
        records = step.records.copy()
        for name, data in plan.constants.items():
            known = self.constants.setdefault(name, [])
            records[:, 1 + ARGUMENT_OF[name]] += sum(before.nbytes for before in known)
            known.append(data)
        return replace(step, records=records)


def simple(plan: Plan) -> Plan:
    """Raises Refused for a plan of more than one phase, which no group can hold."""
    if len(plan.phases) > 1 or plan.scratch_bytes:
        phases = len(plan.phases)
        raise Refused(f"a strip of {plan.implementation} takes {phases} phases, it must be one without scratch")
    return plan


def together(phases: Sequence[Phase]) -> Phase:
    """All written out as one, so that threads get equal shares of few groups."""
    written = [phase.written_out() for phase in phases]
    groups, first = [], 0
    for phase in written:
        assert phase.groups is not None
        groups.append(first + phase.groups[:-1])
        first += len(phase.records)
    return replace(merged(written), groups=np.append(np.concatenate(groups), first))
