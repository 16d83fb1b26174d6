"""`asmdnn tune`: the fastest of all plans that planners choose from, measured for a user's problems and kept.

All candidates of a problem are measured in turns, then those near the best again, beside the planners' own choice, and
for longer.  Where a problem is given for several numbers of threads, it is one choice: the one whose times are the
least on average, each as a share of that choice's.  A plan is kept where it beats the planners' by more than noise
does, judged by other samples than those that it is the best of (`rank.judged`).
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase
from asmdnn.bench.options import Mistake, Reader
from asmdnn.bench.rank import FIRST_SHARE, NEAR, ROUNDS, bound, described, every_plan, judged
from asmdnn.bench.timing import interleaved, sampled
from asmdnn.errors import AsmdnnError, InvalidArguments
from asmdnn.planning.host import require_executable
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core import tuned
from asmdnn.primitives.core.implementation import plan_digest, plan_key
from asmdnn.primitives.core.registry import kind_of, planners_of
from asmdnn.primitives.core.tuned import Choice
from asmdnn.records import dataclass, field, replace
from asmdnn.runtime.other_work import OtherWork

LEAST_GAIN = 1.03  # of what is kept: less is noise
Calls = Mapping[str, Callable[[], object]]


@dataclass(frozen=True, eq=False)
class TuningProblem:
    """One choice to take: the case for every number of threads that it is given for."""

    title: str
    key: str
    cases: list[AnyCase] = field(default_factory=list)

    @property
    def threads(self) -> tuple[int, ...]:
        return tuple(engine_of(case).threads for case in self.cases)


def run(words: Sequence[str], begin: Callable[[int, str], None], end: Callable[[], None]) -> int:
    """Tune every problem of `words`, of which there is one, and say what came of it; the exit status.

    begin, end: called before and after each, with the number that are done and what it is.  Raises AsmdnnError for
    options that cannot be read; a problem that cannot be planned or run here is passed over.
    """
    kept, total, others = 0, 0, OtherWork()
    for problem in problems_of(words):
        begin(total, problem.title)
        total += 1
        try:
            choice, is_kept = tune(problem)
        except AsmdnnError as error:
            end()
            print(f"{problem.title}: {' '.join(str(error).split())}", flush=True)
            continue
        end()
        kept += is_kept
        print(f"{problem.title}: {f'kept: {choice}' if is_kept else f'{choice.default} stays'}", flush=True)
    print(f"{kept} of {total} problems tuned, in {tuned.store().directory}")
    others.warn(sys.stderr)
    return 0


def problems_of(words: Sequence[str]) -> Iterator[TuningProblem]:
    """Cases of one request as one, in the order of the first."""
    found: dict[str, TuningProblem] = {}
    for case in Reader().stream(words, Path.cwd()):
        if isinstance(case, Mistake):
            raise InvalidArguments(f"{case.where}: {case.reason}")
        key = key_of(case)
        found.setdefault(key, TuningProblem(title_of(case), key)).cases.append(case)
    yield from found.values()


def title_of(case: AnyCase) -> str:
    """The words of a case but for threads and time."""
    plain = case.driver.settings
    return str(replace(case, settings=replace(case.settings, threads=plain.threads, max_ms=plain.max_ms)))


def engine_of(case: AnyCase) -> dnn.Engine:
    return dnn.Engine(isa=case.settings.isa, threads=case.settings.threads)


def key_of(case: AnyCase) -> str:
    """Of the request, without threads; of a problem that cannot be described, its words."""
    try:
        desc, attr, _ = described(case)
        engine = engine_of(case)
        return plan_key(planners_of(kind_of(desc), attr), desc, attr, engine.isa, engine.machine)
    except AsmdnnError:
        return str(case)


def tune(problem: TuningProblem) -> tuple[Choice, bool]:
    """What is the fastest, and whether it is kept.  Raises AsmdnnError."""
    desc, attr, _ = described(problem.cases[0])
    engine = engine_of(problem.cases[0])
    require_executable(engine.isa)
    plans = dict(every_plan(desc, attr, engine))
    default, *_ = plans
    calls = [calls_of(case, plans) for case in problem.cases]
    budget = problem.cases[0].settings.max_ms * 1e-3
    first = scores([measured(each, budget * FIRST_SHARE) for each in calls])
    near = [name for name in plans if first[name] <= NEAR * min(first.values()) or name == default]
    rest = budget * (1 - FIRST_SHARE)
    number, gain = judged(*(sampled([each[name] for name in near], rest, fewest=ROUNDS) for each in calls))
    best = near[number]
    choice = Choice(problem.title, best, default, 1 + gain, problem.threads, plan_digest())
    is_kept = best != default and choice.gain >= LEAST_GAIN
    if is_kept:
        tuned.keep(problem.key, engine, plans[best], choice)
    else:
        tuned.forget(problem.key, engine)
    return choice, is_kept


def calls_of(case: AnyCase, plans: Mapping[str, Plan]) -> Calls:
    """Every plan."""
    desc, attr, work = described(case)
    arrays, engine = work.data(exact=work.exactness[-1]).arrays, engine_of(case)
    return bound(plans.items(), desc, attr, engine, arrays)


def measured(calls: Calls, budget_s: float) -> dict[str, float]:
    """Seconds of each, by the 10th percentile."""
    times = interleaved([*calls.values()], budget_s)
    return {name: time.low for name, time in zip(calls, times, strict=True)}


def scores(times: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean over numbers of threads of each time as a share of the best."""
    shares = [{name: time / min(each.values()) for name, time in each.items()} for each in times]
    return {name: sum(each[name] for each in shares) / len(shares) for name in shares[0]}
