"""`asmdnn prove`: the proof of kernels and plans, without running any of them.

For each ISA level every kernel of the corpus and of the problem sets: it is decoded by iced-x86, and must keep to the
level's CPU features, its listing, its code, the ABI and its footprint; and every plan of the sets passes Plan.check().
Exit status 1 at the first violation, which is shown with the instruction, its source line and the rule.
"""

import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from asmdnn.cli import batch_files
from asmdnn.cli.options import Case, Reader
from asmdnn.cli.progress import Progress
from asmdnn.errors import InvalidArguments
from asmdnn.isa.levels import LEVELS, Isa, isa_of

VIOLATED: Final = 1
CHUNK: Final = 8  # tasks that go to another process together
WORTH_A_PROCESS: Final = 400  # tasks: starting one takes as long as proving so many kernels
DIRECTIONS: Final = "--dir=FWD_B,FWD_I"  # with bias and without

USAGE: Final = """asmdnn prove [--isa=LEVEL] [--jobs=N] [OPTION | PROBLEM | --batch=FILE-OR-SET] ...
Without a problem: the whole corpus of kernels, and the kernels and plans of all problem sets, for every ISA level that
has kernels.  With problems, in the words of `asmdnn bench`: their kernels and plans.  Needs no CPU of the level.
--jobs=N is the number of processes; default: one for each CPU, where there is enough to do.
Example: asmdnn prove --isa=avx512_core mb1ic64ih56oc64oh56kh3ph1"""


@dataclass(frozen=True, slots=True)
class Task:
    """A spec's kernel to prove, or a case's plan to check for an ISA level."""

    level: str
    spec: Any = None
    case: Case | None = None

    @property
    def name(self) -> str:
        return str(self.case) if self.case else self.spec.name


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was proved; `violation` is what was not.  unbounded: accesses of which only the argument was proved."""

    instructions: int = 0
    unbounded: int = 0
    violation: str = ""


def run(arguments: Sequence[str]) -> int:
    """The exit status: 1 at a violation.  Raises AsmdnnError for bad words, and when iced-x86 or PeachPy is missing."""
    if any(word in ("-h", "--help") for word in arguments):
        print(USAGE)
        return 0
    from asmdnn.isa.peachpy_forms import require_peachpy
    from asmdnn.proof.decoder import require_decoder

    require_decoder()
    require_peachpy()
    levels, jobs, cases = read(arguments)
    tasks = list(tasks_of(levels, cases))
    workers = min(jobs, 1 + len(tasks) // WORTH_A_PROCESS)
    context = multiprocessing.get_context("spawn")  # a fork would take over the threads of OpenMP
    with ProcessPoolExecutor(workers, context) if workers > 1 else nullcontext() as pool:
        return prove_all(tasks, pool)


def read(words: Sequence[str]) -> tuple[tuple[Isa, ...], int, list[Case]]:
    """Levels (none: all that have kernels), processes and cases (none: the corpus)."""
    reader, levels, jobs, rest = Reader(), [], len(os.sched_getaffinity(0)), []
    for word in words:
        name, _, value = word.partition("=")
        if name == "--isa":
            levels.append(isa_of(value))
        elif name == "--jobs":
            if not (value.isdecimal() and value.isascii() and 0 < int(value[:9]) <= 1024):
                raise InvalidArguments(f"prove: {word} must be a number of processes from 1 to 1024")
            jobs = int(value)
        else:
            rest.append(word)
    reader.read(rest, Path.cwd())
    if rest and not reader.cases:
        raise InvalidArguments("prove: options but no problem are given; name one, or a set with --batch=resnet_50")
    return tuple(levels), jobs, reader.cases


def tasks_of(levels: Sequence[Isa], cases: Sequence[Case]) -> Iterator[Task]:
    """By level.  A kernel that plans of several levels share is proved once, for the level it is generated for."""
    from asmdnn.corpus.families import corpus

    specs = () if cases else corpus()
    kernel_levels = {getattr(spec, "isa", "") for spec in corpus()}
    known: set[Any] = set()
    if specs:
        yield from (Task("x86_64", spec) for spec in specs if not hasattr(spec, "isa"))
    for level in levels or [level for level in LEVELS if level.name in kernel_levels]:
        own = list(cases or set_cases())
        plans = [Task(level.name, case=case) for case in own if plan_of(case, level.name) is not None]
        wanted = [spec for spec in specs if getattr(spec, "isa", "") == level.name]
        wanted += [spec for plan in plans for spec in plan_of(plan.case, level.name).specs]
        new = [spec for spec in dict.fromkeys(wanted) if spec not in known]
        known.update(new)
        yield from (Task(level.name, spec) for spec in new)
        yield from plans


def set_cases() -> list[Case]:
    """The problems of all sets that come with the package, one image, each once."""
    reader = Reader()
    for name in batch_files.problem_sets():
        reader.read(["--reset", "--mb=1", DIRECTIONS, f"--batch={name}"], Path.cwd())
    return list({str(case).split('n"')[0]: case for case in reader.cases}.values())


def plan_of(case: Case | None, level: str) -> Any:
    """The plan for that level; None when no implementation can take such a problem."""
    import asmdnn as dnn
    from asmdnn.cli.convolution import descriptor, layouts, unsupported

    assert case is not None
    if unsupported(case.problem):
        return None
    engine = dnn.Engine(isa=level, threads=case.settings.threads)
    return descriptor(case, layouts(case), engine).plan


def prove_all(tasks: Sequence[Task], pool: Executor | None) -> int:
    """A line for each level, or the first violation."""
    start = perf_counter()
    outcomes = iter(pool.map(outcome_of, tasks, chunksize=CHUNK) if pool else map(outcome_of, tasks))
    with Progress(len(tasks), sys.stderr) as progress:
        done = 0
        for level, group in groupby(tasks, key=lambda task: task.level):
            proved: list[tuple[Task, Outcome]] = []
            for task in group:
                progress.update(done, f"{level} {task.name}")
                outcome = next(outcomes)
                done += 1
                if outcome.violation:
                    progress.clear()
                    if pool:
                        pool.shutdown(wait=False, cancel_futures=True)
                    print(f"violation at level {level}: {outcome.violation}")
                    return VIOLATED
                proved.append((task, outcome))
            progress.clear()
            print(summary(level, proved, perf_counter() - start), flush=True)
            start = perf_counter()
    return 0


def summary(level: str, proved: Sequence[tuple[Task, Outcome]], seconds: float) -> str:
    kernels = sum(task.spec is not None for task, _ in proved)
    instructions = sum(outcome.instructions for _, outcome in proved)
    unbounded = sum(outcome.unbounded for _, outcome in proved)
    text = f"{level:<16} {kernels:5} kernels {instructions:8} instructions {len(proved) - kernels:5} plans"
    bounds = f", {unbounded} accesses proved by argument only" if unbounded else ""
    return f"{text} {seconds:6.1f} s  proved{bounds}"


def outcome_of(task: Task) -> Outcome:
    """Prove one kernel, or check one plan; in any process."""
    from asmdnn.proof.contracts import kernel_of
    from asmdnn.proof.kernel import BrokenRule
    from asmdnn.proof.prove import prove

    if task.spec is None:
        return Outcome(violation=plan_violation(task))
    kernel = kernel_of(task.spec)
    try:
        return Outcome(len(kernel.steps), prove(kernel))
    except BrokenRule as broken:
        return Outcome(violation=str(broken.violation))


def plan_violation(task: Task) -> str:
    """Why the plan is wrong, or ""."""
    from asmdnn.runtime.check import PlanError

    plan = plan_of(task.case, task.level)
    try:
        plan.check()
    except PlanError as error:
        return f"the plan of {task.case} breaks the rule 'plan': {error}"
    for spec in plan.specs:
        if not isa_of(spec.isa).features <= isa_of(task.level).features:
            return f"the plan of {task.case} breaks the rule 'plan': {spec.name} needs more than {task.level}"
    return ""
