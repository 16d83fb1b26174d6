"""What `asmdnn prove` does in any process: one kernel proved, or one plan checked."""

import sys
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, Final

from asmdnn.bench.driver import AnyCase
from asmdnn.bench.options import Reader
from asmdnn.cli.progress import Progress
from asmdnn.cli.workers import mapped
from asmdnn.errors import PlanError, Unimplemented
from asmdnn.isa.levels import isa_of
from asmdnn.records import dataclass

CHUNK: Final = 8  # tasks that go to another process together


@dataclass(frozen=True, slots=True)
class Task:
    """A spec's kernel to prove, or a plan to check: of the case that `words` describe, for an ISA level.

    Words, because cases cannot be sent to another process.  others: specs of the same code, which reads other numbers.
    """

    level: str
    spec: Any = None
    words: tuple[str, ...] = ()
    others: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return str(self.words[-1] if self.words else self.spec.name)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was proved; `violation` is what was not.

    unbounded: accesses of which only the argument was proved.  specs: the kernels of a plan, and its executor; None:
    there is no plan.
    """

    instructions: int = 0
    unbounded: int = 0
    violation: str = ""
    specs: tuple[Any, ...] | None = None


def case_words(case: AnyCase) -> tuple[str, ...]:
    """What the Reader makes the case of; only the problem, at the end, may have blanks."""
    problem = str(case.problem)
    return (*str(case).removesuffix(problem).split(), problem)


def plan_of(words: Sequence[str], level: str) -> Any:
    """The plan for that level; None when no implementation takes such a problem."""
    import asmdnn as dnn

    reader = Reader()
    reader.read(words, Path.cwd())
    (case,) = reader.cases
    try:
        work = case.driver.work(case)
        if isinstance(work, str):
            return None
        desc, attr = work.describe()
        return dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa_of(level).name, threads=case.settings.threads)).plan
    except Unimplemented:
        return None


def prove_tasks(tasks: Sequence[Task], pool: Executor | None) -> list[Outcome] | None:
    """What each gave, in order; None at the first violation, which is shown."""
    outcomes: list[Outcome] = []
    with Progress(len(tasks), sys.stderr) as progress:
        found = mapped(pool, outcome_of, tasks, CHUNK) if pool else map(outcome_of, tasks)
        for task, outcome in zip(tasks, found, strict=True):
            if outcome.violation:
                progress.clear()
                if pool:
                    pool.shutdown(wait=False, cancel_futures=True)
                print(f"violation at level {task.level}: {outcome.violation}")
                return None
            outcomes.append(outcome)
            progress.update(len(outcomes), f"{task.level} {task.name}")
    return outcomes


def outcome_of(task: Task) -> Outcome:
    """Prove one kernel, or check one plan; in any process."""
    from asmdnn.proof.contracts import kernel_of
    from asmdnn.proof.kernel import BrokenRule
    from asmdnn.proof.prove import prove, prove_words

    if task.spec is None:
        return plan_outcome(task)
    kernel = kernel_of(task.spec)
    try:
        unbounded = prove(kernel) + prove_words(kernel, task.others)
        return Outcome(len(kernel.steps), unbounded)
    except BrokenRule as broken:
        return Outcome(violation=str(broken.violation))


def plan_outcome(task: Task) -> Outcome:
    from asmdnn.runtime.kernels import executor_spec

    plan = plan_of(task.words, task.level)
    if plan is None:
        return Outcome()
    broken = f"the plan of {' '.join(task.words)} breaks the rule 'plan'"
    try:
        plan.check()
    except PlanError as error:
        return Outcome(violation=f"{broken}: {error}")
    for spec in plan.specs:
        if not isa_of(spec.isa).features <= isa_of(task.level).features:
            return Outcome(violation=f"{broken}: {spec.name} needs more than {task.level}")
    return Outcome(specs=(*plan.specs, executor_spec(plan)))
