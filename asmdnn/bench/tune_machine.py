"""`asmdnn tune --machine`: the numbers that planners choose by, measured on the CPU at hand.

One number after the other, each beside those that were found before.  Its candidates and the class's value plan the
problems of its trial; where plans differ they take turns in one process, on the same memory.  A candidate is kept if it
gains 3% where plans differ, in the mean, and loses 3% in none of them.  The best by one half of the rounds is judged by
the other half, as `rank.judged` does: of many that are equal, the best one only had luck.
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import asmdnn as dnn
from asmdnn.bench.driver import AnyCase, Work
from asmdnn.bench.machine_trials import TRIALS
from asmdnn.bench.options import Mistake, Reader
from asmdnn.bench.own import laid_out
from asmdnn.bench.rank import ROUNDS, described, identity
from asmdnn.bench.timing import Call, sampled
from asmdnn.errors import InvalidArguments, did_you_mean
from asmdnn.planning.candidates import CANDIDATES, number_of, with_number
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.core.description import asked
from asmdnn.records import dataclass, replace
from asmdnn.runtime.threads import max_threads

LEAST_GAIN = 1.03  # of what is kept: less is noise
MOST_LOSS = 0.97  # of what is kept, in any problem
Shares = list[list[float]]  # of a problem: for each candidate, how many times as fast it was in each round


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """What came of a number.  default: of the class.  value: the best that was found, which is the default where none
    is better.  gain: how many times as fast plans are by it, where they differ; least: in the worst of them.
    problems: whose plans differ by any candidate."""

    name: str
    default: Any
    value: Any
    gain: float
    least: float
    problems: int

    @property
    def is_other(self) -> bool:
        return bool(self.value != self.default)


def chosen_names(words: str) -> tuple[str, ...]:
    """Names of numbers, of all or of those of a group, from a list with commas.  Raises InvalidArguments."""
    found: dict[str, None] = {}
    for word in words.split(",") if words else CANDIDATES:
        names = [name for name in CANDIDATES if name == word or name.startswith(f"{word}.")]
        if not names:
            raise InvalidArguments(
                f"--only={words}: '{word}' is no number that is measured: {did_you_mean(word, CANDIDATES)}"
            )
        found |= dict.fromkeys(names)
    return tuple(found)


def measured(
    names: Sequence[str], engine: dnn.Engine, own: Tuning, budget_s: float, begin: Callable[[int, str], None]
) -> Iterator[FoundNumber]:
    """The numbers of these names, one after the other.

    own: of the class.  budget_s: for the plans of a problem.  begin: called before each with the number that are done,
    and its name.
    """
    tuning = own
    for done, name in enumerate(names):
        begin(done, name)
        default = number_of(own, name)
        if TRIALS[name].threads > max_threads():
            yield FoundNumber(name, default, default, 1.0, 1.0, 0)
            continue
        others = [value for value in CANDIDATES[name] if value != default]
        shares = list(shares_of(name, others, replace(engine, tuning=tuning, threads=TRIALS[name].threads), budget_s))
        best, gain, least = judged(shares, len(others))
        finding = FoundNumber(name, default, default if best is None else others[best], gain, least, len(shares))
        tuning = with_number(tuning, name, finding.value)
        yield finding


def shares_of(name: str, values: Sequence[Any], engine: dnn.Engine, budget_s: float) -> Iterator[Shares]:
    """Of every problem of a number's trial whose plan, or number of threads, one of the values changes."""
    for case in cases_of(TRIALS[name].words):
        desc, attr, work = described(case)
        tunings = (engine.tuning, *(with_number(engine.tuning, name, value) for value in values))
        answers = [dnn.primitive_desc(desc, attr, replace(engine, tuning=each)) for each in tunings]
        identities = [(pd.threads, *identity(pd.plan)) for pd in answers]
        distinct = dict(zip(reversed(identities), reversed(answers), strict=True))
        if len(distinct) == 1:
            continue
        calls = calls_of([distinct[each] for each in dict.fromkeys(identities)], work)
        times = dict(zip(dict.fromkeys(identities), sampled(calls, budget_s, fewest=ROUNDS), strict=True))
        first = times[identities[0]]
        yield [[a / b for a, b in zip(first, times[each], strict=True)] for each in identities[1:]]


def calls_of(answers: Sequence[dnn.PrimitiveDesc], work: Work[Any]) -> list[Call]:
    """A call of each; tensors of one role and format are one memory."""
    arrays = work.data(exact=work.exactness[-1]).arrays
    memories: dict[tuple[str, dnn.MemoryDesc], dnn.Memory] = {}
    calls, types = list[Call](), {name: tensor.dtype for name, tensor in asked(answers[0].desc).items()}
    for pd in answers:
        for key in pd.plan.tensors.items():
            if key not in memories:
                memories[key] = laid_out(arrays[key[0]], types.get(key[0]), key[1])
        calls.append(dnn.Primitive(pd).bind(**{key[0]: memories[key] for key in pd.plan.tensors.items()}))
    return calls


def cases_of(words: Sequence[str]) -> Iterator[AnyCase]:
    for case in Reader().stream(words, Path.cwd()):
        if isinstance(case, Mistake):
            raise InvalidArguments(f"{case.where}: {case.reason}")
        yield case


def judged(problems: Sequence[Shares], candidates: int) -> tuple[int | None, float, float]:
    """(number of the candidate to keep, its gain, the least of its problems); None where none gains and loses nowhere.

    A candidate's gain counts the problems whose plans it changes: in others its shares are 1.
    """
    found: list[tuple[float, float, float, int]] = []
    for index in range(candidates):
        rounds = [shares[index] for shares in problems if any(share != 1 for share in shares[index])]
        if not rounds:
            continue
        halves = [statistics.geometric_mean(statistics.median(r[half::2]) for r in rounds) for half in (0, 1)]
        least = min(statistics.median(r) for r in rounds)
        found.append((halves[0], halves[1], least, index))
    kept = [each for each in found if each[2] >= MOST_LOSS]
    if not kept:
        return None, 1.0, 1.0
    _, gain, least, index = max(kept)
    return (index, gain, least) if gain >= LEAST_GAIN else (None, 1.0, 1.0)
