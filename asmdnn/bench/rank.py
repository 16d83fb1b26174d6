"""`asmdnn bench --rank`: the plan that planners choose, against the fastest of all that they choose from.

All candidates of a problem are run once in turns, in one process; those that are not far behind are measured, and those
near the best then again, beside the choice, and for longer.  The regret is how much longer the choice takes than the
best one, by these samples (`judged`).

Candidates share the memories of tensors whose formats are the same: with data of their own, equal plans differ by up to
15%, as luck with physical pages has it.

What would be chosen at a lower level of f32 vectors is a candidate, too: it shows where wider vectors are slower.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase, Array, Work
from asmdnn.bench.options import Mistake, Reader
from asmdnn.bench.own import laid_out
from asmdnn.bench.timing import LOW, Call, Times, interleaved, sampled
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.levels import isa_of
from asmdnn.isa.vectors import F32_LEVELS, f32_level
from asmdnn.planning.host import require_executable
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.description import Description, asked
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.primitives.core.implementation import checked
from asmdnn.primitives.core.registry import kind_of
from asmdnn.records import dataclass, replace

ROUNDS = 6  # at least, of the last samples
FAR = 2.0  # times the best of one sample each: not measured
NEAR = 1.15  # times the best of the first round: measured again
FIRST_SHARE = 0.4  # of a problem's time
WIDTH = 80  # of a plan's name
LOOK = f"{'problem':34} {'chosen':{WIDTH}} {'us':>9} {'best':{WIDTH}} {'us':>9} {'regret':>7}"


@dataclass(frozen=True, slots=True)
class Ranked:
    """What was chosen, and what would have been the best; microseconds of a call, by the 10th percentile.

    regret: how much longer the choice takes, as a share.
    """

    title: str
    chosen: str
    chosen_us: float
    best: str
    best_us: float
    regret: float

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
    calls = bound(plans, desc, attr, engine, data.arrays)
    budget = settings.max_ms * 1e-3
    calls = within(FAR, calls, interleaved([*calls.values()], budget, rounds=1))
    calls = within(NEAR, calls, interleaved([*calls.values()], budget * FIRST_SHARE))
    samples = sampled([*calls.values()], budget * (1 - FIRST_SHARE), fewest=ROUNDS)
    number, regret = judged(samples)
    names, low = [*calls], [1e6 * sorted(times)[int(LOW * len(times))] for times in samples]
    return Ranked(case.driver.title(case), names[0], low[0], names[number], low[number], regret)


def judged(*cases: Sequence[Sequence[float]]) -> tuple[int, float]:
    """(number of the best, regret of the first), from the seconds of calls that took turns, round by round; of several
    cases the calls that are the best on average.

    Each sample counts as a share of the first call's in its round, as a slow phase of the machine hits both.  The best
    by one half of the rounds is judged by the other half: of many that are equal, the best one only had luck.  A single
    round judges itself.
    """
    shares = [np.array(samples) / np.array(samples[0]) for samples in cases]
    rounds = min(each.shape[1] for each in shares)

    def medians(first: int, step: int) -> Any:
        return np.mean([np.median(each[:, first::step], axis=1) for each in shares], axis=0)

    halves = [medians(first, 2) for first in range(min(2, rounds))]
    best = [other[one.argmin()] for one, other in zip(halves, halves[::-1], strict=True)]
    return int(medians(0, 1).argmin()), max(0.0, 1 / float(np.mean(best)) - 1)


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
        plans += [(f"{p.implementation} {what}", checked(p, desc, attr)) for what, p in candidates]
    same = {identity(plan): name for name, plan in reversed(plans[: len(answers)])}  # what reorders nothing is itself,
    same |= {identity(plan): name for name, plan in plans[len(answers) :]}  # and what is special about a plan says more
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
    plans: Iterable[tuple[str, Plan]],
    desc: Description,
    attr: dnn.Attr,
    engine: dnn.Engine,
    arrays: Mapping[str, Array],
) -> dict[str, Call]:
    """A call of each plan; tensors of one format are one memory."""
    memories: dict[tuple[str, dnn.MemoryDesc], dnn.Memory] = {}
    types = {name: tensor.dtype for name, tensor in asked(desc).items()}

    def memory(name: str, tensor: dnn.MemoryDesc) -> dnn.Memory:
        key = name, tensor
        if key not in memories:
            given = arrays.get(name)  # a workspace that is written has none
            memories[key] = dnn.Memory(tensor) if given is None else laid_out(given, types.get(name), tensor)
        return memories[key]

    calls: dict[str, Call] = {}
    for name, plan in plans:
        tensors = {role: memory(role, tensor) for role, tensor in plan.tensors.items()}
        calls[name] = dnn.Primitive(PrimitiveDesc(desc, attr, engine, plan)).bind(**tensors)
    return calls
