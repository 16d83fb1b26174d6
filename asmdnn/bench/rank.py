"""`asmdnn bench --rank`: the plan that planners choose, against the fastest of all that they choose from.

All candidates of a problem are run once in turns, in one process; those that are not far behind are measured, and those
near the best then again, beside the choice, and for longer: the fastest of many noisy numbers is not as fast as it looks.
The regret is how much longer the choice takes than the best one, by the 10th percentiles of these samples.

What would be chosen at a lower level of f32 vectors is a candidate, too: it shows where wider vectors are slower.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase, Array, Work
from asmdnn.bench.options import Mistake, Reader
from asmdnn.bench.timing import Call, Times, interleaved
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.levels import isa_of
from asmdnn.isa.vectors import F32_LEVELS, f32_level
from asmdnn.planning.host import require_executable
from asmdnn.planning.plan import Plan
from asmdnn.primitives.descriptor import PrimitiveDesc
from asmdnn.primitives.implementation import plan_with_denormals
from asmdnn.primitives.kind import Description
from asmdnn.primitives.registry import kind_of

FAR = 2.0  # times the best of one sample each: not measured
NEAR = 1.15  # times the best of the first round: measured again
FIRST_SHARE = 0.4  # of a problem's time
WIDTH = 80  # of a plan's name
LOOK = f"{'problem':34} {'chosen':{WIDTH}} {'us':>9} {'best':{WIDTH}} {'us':>9} {'regret':>7}"


@dataclass(frozen=True, slots=True)
class Ranked:
    """What was chosen, and what would have been the best; microseconds of a call."""

    title: str
    chosen: str
    chosen_us: float
    best: str
    best_us: float

    @property
    def regret(self) -> float:
        """How much longer the choice takes, as a share."""
        return self.chosen_us / self.best_us - 1

    def __str__(self) -> str:
        what = f"{self.title:34} {self.chosen:{WIDTH}} {self.chosen_us:9.1f} {self.best:{WIDTH}} {self.best_us:9.1f}"
        return f"{what} {100 * self.regret:6.1f}%"


def run(words: Sequence[str], begin: Callable[[int, str], None], end: Callable[[], None]) -> int:
    """Rank every problem of `words`, of which there is one, and print what they come to; the exit status.

    begin, end: called before and after each, with the number that are done and what it is.  Raises AsmdnnError.
    """
    reader = Reader()
    found: list[Ranked] = []
    print(LOOK)
    for case in reader.stream(words, Path.cwd()):
        if isinstance(case, Mistake):
            raise InvalidArguments(f"{case.where}: {case.reason}")
        begin(len(found), case.driver.title(case))
        found.append(rank(case))
        end()
        print(found[-1], flush=True)
    print(summary(found))
    return 0


def summary(found: Sequence[Ranked]) -> str:
    worst = max(found, key=lambda ranked: ranked.regret)
    median = statistics.median(ranked.regret for ranked in found)
    return f"regret of {len(found)}: median {100 * median:.1f}%, worst {100 * worst.regret:.1f}% ({worst.title})"


def rank(case: AnyCase) -> Ranked:
    """Raises AsmdnnError for what cannot be planned or run here."""
    settings = case.settings
    engine = dnn.Engine(isa=settings.isa, threads=settings.threads)
    require_executable(engine.isa)
    desc, attr, work = described(case)
    data = work.data(exact=work.exactness[-1])
    plans = chain(every_plan(desc, attr, engine), plans_below(desc, attr, engine))
    calls: dict[str, Call] = {name: bound(plan, desc, attr, engine, data.arrays) for name, plan in plans}
    budget = settings.max_ms * 1e-3
    calls = within(FAR, calls, interleaved([*calls.values()], budget, rounds=1))
    calls = within(NEAR, calls, interleaved([*calls.values()], budget * FIRST_SHARE))
    again = dict(zip(calls, interleaved([*calls.values()], budget * (1 - FIRST_SHARE)), strict=True))
    chosen, best = next(iter(again)), min(again, key=lambda name: again[name].low)
    return Ranked(case.driver.title(case), chosen, 1e6 * again[chosen].low, best, 1e6 * again[best].low)


def within(factor: float, calls: Mapping[str, Call], times: Sequence[Times]) -> dict[str, Call]:
    """The first of `calls`, and those that take no longer than `factor` times the fastest."""
    limit = factor * min(each.low for each in times)
    chosen = next(iter(calls))
    pairs = zip(calls.items(), times, strict=True)
    return {name: call for (name, call), each in pairs if name == chosen or each.low <= limit}


def described(case: AnyCase) -> tuple[Description, dnn.Attr, Work[Any]]:
    """The description, its attributes, and the work.  Raises AsmdnnError."""
    if case.settings.unbuilt:
        raise Unimplemented(str(case.settings.unbuilt[0]))
    work = case.driver.work(case)
    if isinstance(work, str):
        raise InvalidArguments(work)
    return (*work.describe(), work)


def every_plan(desc: Description, attr: dnn.Attr, engine: dnn.Engine) -> Iterator[tuple[str, Plan]]:
    """What is chosen, then all else that is another plan: of the implementations, and of the kind's candidates."""
    kind, seen = kind_of(desc), set()
    answers = [pd for pd in dnn.implementations(desc, attr, engine) if isinstance(pd, PrimitiveDesc)]
    if not answers:
        raise InvalidArguments(f"no implementation takes {desc}")
    plans = [(pd.implementation, pd.plan) for pd in answers]
    if kind.candidates is not None:
        candidates = kind.candidates(desc, attr, engine)
        plans += [(f"{p.implementation} {what}", plan_with_denormals(p, attr)) for what, p in candidates]
    same = {identity(plan): name for name, plan in plans}  # the last name of a plan says most
    for _, plan in plans:
        if identity(plan) not in seen:
            seen.add(identity(plan))
            yield same[identity(plan)], plan


def plans_below(desc: Description, attr: dnn.Attr, engine: dnn.Engine) -> Iterator[tuple[str, Plan]]:
    """What is chosen at each lower level of f32 vectors that the engine's has, under names with that level."""
    for level in F32_LEVELS:
        if level.features < isa_of(f32_level(engine.isa)).features:
            pd = dnn.primitive_desc(desc, attr, replace(engine, isa=level.name))
            yield pd.implementation, pd.plan


def identity(plan: Plan) -> tuple[object, ...]:
    """What two equal plans have in common."""
    return (plan.specs, *((phase.records.tobytes(), phase.arguments) for phase in plan.phases))


def bound(
    plan: Plan, desc: Description, attr: dnn.Attr, engine: dnn.Engine, arrays: Mapping[str, Array]
) -> Callable[[], object]:
    """A call of the plan on data of its own."""
    memories = {name: dnn.Memory.from_numpy(arrays[name], tensor) for name, tensor in plan.tensors.items()}
    return dnn.Primitive(PrimitiveDesc(desc, attr, engine, plan)).bind(**memories)
