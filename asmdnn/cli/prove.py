"""`asmdnn prove`: the proof of kernels and plans, without running any of them.

For each ISA level every kernel of the corpus and of the problem sets: it is decoded by iced-x86, and must keep to the
level's CPU features, its listing, its code, the ABI and its footprint; and every plan of the sets passes Plan.check().
Exit status 1 at the first violation, which is shown with the instruction, its source line and the rule.
"""

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

from asmdnn.bench import batch_files
from asmdnn.bench.driver import AnyCase
from asmdnn.bench.options import DEFAULT_DRIVER, Reader
from asmdnn.cli import unknown
from asmdnn.cli.models import names_network
from asmdnn.cli.prove_tasks import Outcome, Task, case_words, prove_tasks
from asmdnn.cli.terminal import show_help
from asmdnn.cli.workers import workers
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.levels import ANY_CPU, LEVELS, Isa, isa_of
from asmdnn.isa.vectors import F32_LEVELS, f32_level

VIOLATED: Final = 1
WORTH_A_PROCESS: Final = 100  # kernels and problems: less is done before another process has started
LARGEST_COPY_BYTES: Final = 1 << 20
LARGEST_PRODUCT_BYTES: Final = 8 << 20
DIRECTIONS: Final = "--dir=FWD_B,FWD_I"  # with bias and without

USAGE: Final = """asmdnn prove [--isa=LEVEL] [--jobs=N] [--json] [OPTION | PROBLEM | --batch=FILE-OR-SET] ...
asmdnn prove [--isa=LEVEL] [--jobs=N] [--json] --specs=PATTERN
asmdnn prove [--isa=LEVEL] [--jobs=N] [--json] [--shape=NAME:1x3x48x320] [--constant=NAME:2] MODEL.onnx
Without a problem: the whole corpus of kernels, and the kernels and plans of all problem sets, for every ISA level that
has kernels.  With problems, in the words of `asmdnn bench`: their plans, kernels and executors.  Needs no CPU of the
level.
With a model: the plan of its network, with the arena, and all its kernels.  --shape=NAME:1x3x48x64..640/8 is all
multiples of 8, and 1x3x48x64,1x3x48x71 two shapes: kernels are proved for all numbers that these have them read.
--specs=PATTERN proves the kernels of the corpus whose names match, such as --specs='top1_*', and no plans.
--jobs=N is the number of processes; default: one for each CPU, where there is enough to do.
--json prints a JSON object for each level, instead of a line of text.
Example: asmdnn prove --isa=avx512_core mb1ic64ih56oc64oh56kh3ph1"""


class LevelProof(NamedTuple):
    """What was proved for a level.  unbounded: accesses of which only the argument was proved.  sets: of numbers that
    kernels read, where the same code was proved for several."""

    level: str
    kernels: int
    instructions: int
    plans: int
    unbounded: int
    seconds: float
    sets: int = 0

    @property
    def text(self) -> str:
        counts = f"{self.kernels:5} kernels {self.instructions:8} instructions {self.plans:5} plans"
        bounds = f", {self.unbounded} accesses proved by argument only" if self.unbounded else ""
        sets = f", for {self.sets} sets of numbers that they read" if self.sets else ""
        return f"{self.level:<16} {counts} {self.seconds:6.1f} s  proved{sets}{bounds}"


Show = Callable[[LevelProof], None]


def show_text(proof: LevelProof) -> None:
    print(proof.text, flush=True)


def show_json(proof: LevelProof) -> None:
    print(json.dumps({**proof._asdict(), "seconds": round(proof.seconds, 3)}), flush=True)


def run(arguments: Sequence[str]) -> int:
    """The exit status: 1 at a violation.  Raises AsmdnnError for bad words, and when iced-x86 or PeachPy is missing."""
    if any(word in ("-h", "--help") for word in arguments):
        show_help(USAGE)
        return 0
    from asmdnn.isa.peachpy_forms import require_peachpy
    from asmdnn.proof.decoder import require_decoder

    require_decoder()
    require_peachpy()
    show = show_json if "--json" in arguments else show_text
    arguments = [word for word in arguments if word != "--json"]
    if names_network(arguments):
        from asmdnn.cli.model_tools import prove_model

        return prove_model(arguments, partial(prove_planned, show=show))
    patterns = [word.partition("=")[2] for word in arguments if word.startswith("--specs=")]
    levels, jobs, cases = read([word for word in arguments if not word.startswith("--specs=")])
    if patterns and cases:
        raise InvalidArguments(f"prove: --specs={patterns[-1]} with problems: leave one of them out")
    from asmdnn.corpus.families import corpus, matching

    specs = () if cases else matching(patterns[-1]) if patterns else corpus()
    kernel_levels = {spec.isa for spec in specs} if specs else {x.name for x in F32_LEVELS}
    chosen = [level.name for level in levels or LEVELS if levels or level.name in kernel_levels]
    with workers(jobs if len(specs) + len(cases) >= WORTH_A_PROCESS else 1) as pool:
        if patterns:
            return prove_specs([ANY_CPU, *chosen], specs, pool, show)
        return prove_all(chosen, cases, specs, pool, show)


def prove_planned(level: str, kernels: Sequence[Sequence[Any]], plans: int, jobs: str, *, show: Show) -> int:
    """Kernels of plans that have been checked, each as the specs of one code: a line, or the first violation."""
    start, tasks = perf_counter(), [Task(level, spec, others=tuple(others)) for spec, *others in kernels]
    with workers(processes(jobs) if jobs and len(tasks) >= WORTH_A_PROCESS else 1) as pool:
        found = prove_tasks(tasks, pool)
    if found is None:
        return VIOLATED
    sets = sum(map(len, kernels))
    show(proved(level, found, plans, perf_counter() - start, sets if sets > len(kernels) else 0))
    return 0


def prove_specs(levels: Sequence[str], specs: Sequence[Any], pool: Executor | None, show: Show) -> int:
    """A line for each level that some of the specs are of, or the first violation."""
    for level in levels:
        start, own = perf_counter(), [spec for spec in specs if spec.isa == level]
        kernels = prove_tasks([Task(level, spec) for spec in own], pool)
        if kernels is None:
            return VIOLATED
        if own:
            show(proved(level, kernels, 0, perf_counter() - start))
    return 0


def read(words: Sequence[str]) -> tuple[tuple[Isa, ...], int, list[AnyCase]]:
    """Levels (none: all that have kernels), processes and cases (none: the corpus)."""
    reader, levels, jobs, rest = Reader(partial(unknown.command_words, "prove")), [], len(os.sched_getaffinity(0)), []
    for word in words:
        name, _, value = word.partition("=")
        if name == "--isa":
            levels.append(isa_of(value))
        elif name == "--jobs":
            jobs = processes(value)
        else:
            rest.append(word)
    reader.read(rest, Path.cwd())
    if rest and not reader.cases:
        raise InvalidArguments("prove: options but no problem are given; name one, or a set with --batch=resnet_50")
    return tuple(levels), jobs, reader.cases


def processes(value: str) -> int:
    """What --jobs says.  Raises InvalidArguments."""
    if not (value.isdecimal() and value.isascii() and 0 < int(value[:9]) <= 1024):
        raise InvalidArguments(f"prove: --jobs={value} must be a number of processes from 1 to 1024")
    return int(value)


def set_cases(first: bool) -> list[AnyCase]:
    """The problems of all sets that come with the package, each once; convolutions of one image.

    What is bound by bandwidth is planned for the `first` level alone, as most of it has the same AVX2 kernels at every
    level, and only up to LARGEST_COPY_BYTES, since Plan.check() looks at every element; products, too, are planned up
    to LARGEST_PRODUCT_BYTES only.  `--batch=SET` has no limit.
    """
    reader = Reader()
    for name in batch_files.problem_sets():
        reader.read(["--conv", "--reset", "--mb=1", DIRECTIONS, f"--batch={name}"], Path.cwd())
    cases = {str(case).split('n"')[0]: case for case in reader.cases}.values()
    return [case for case in cases if (first or not case.driver.bandwidth_bound) and _is_small(case)]


def _is_small(case: AnyCase) -> bool:
    if case.driver.name == DEFAULT_DRIVER:
        return True
    work = case.driver.work(case)
    largest = LARGEST_COPY_BYTES if case.driver.bandwidth_bound else LARGEST_PRODUCT_BYTES
    return not isinstance(work, str) and work.argument_bytes <= largest


def prove_all(
    levels: Sequence[str], cases: Sequence[AnyCase], specs: Sequence[Any], pool: Executor | None, show: Show
) -> int:
    """A line for each level, or the first violation.

    A kernel that plans of several levels share is proved once, at the first of them.
    """
    known: set[Any] = set()
    for level in [ANY_CPU, *levels] if specs else levels:
        start = perf_counter()
        wanted = cases or (set_cases(level == levels[0]) if level != ANY_CPU and has_plans(level, levels) else [])
        plans = prove_tasks([Task(level, words=case_words(case)) for case in wanted], pool)
        if plans is None:
            return VIOLATED
        planned = [outcome.specs for outcome in plans if outcome.specs is not None]
        if cases and not planned:
            raise Unimplemented(f"prove: no implementation takes any of these problems at level {level}")
        own = [spec for spec in specs if spec.isa == level]
        new = [spec for spec in dict.fromkeys([*own, *chain.from_iterable(planned)]) if spec not in known]
        known.update(new)
        kernels = prove_tasks([Task(level, spec) for spec in new], pool)
        if kernels is None:
            return VIOLATED
        show(proved(level, kernels, len(planned), perf_counter() - start))
    return 0


def has_plans(level: str, levels: Sequence[str]) -> bool:
    """Whether plans of the level differ from those of another one of `levels`: all plans are of f32 kernels still."""
    best = f32_level(level)
    return best == level or best not in levels


def proved(level: str, kernels: Sequence[Outcome], plans: int, seconds: float, sets: int = 0) -> LevelProof:
    instructions = sum(outcome.instructions for outcome in kernels)
    unbounded = sum(outcome.unbounded for outcome in kernels)
    return LevelProof(level, len(kernels), instructions, plans, unbounded=unbounded, seconds=seconds, sets=sets)
