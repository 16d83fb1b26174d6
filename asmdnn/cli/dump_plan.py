"""What `asmdnn dump` writes: the kernels of the corpus, or those of the plans of problems with their schedules."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from asmdnn.bench.descriptors import planning_engine, primitive_desc_of
from asmdnn.bench.driver import AnyCase
from asmdnn.corpus.families import corpus, matching
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.generators.contract import Spec
from asmdnn.isa.levels import ANY_CPU, isa_of
from asmdnn.jit.digests import code_text
from asmdnn.planning.phase import FLAGS, Phase
from asmdnn.primitives.core.descriptor import PrimitiveDesc
from asmdnn.records import dataclass
from asmdnn.runtime.kernels import executor_spec


@dataclass(frozen=True, slots=True)
class Selection:
    """specs: a kernel each; of those that differ in numbers that its code reads, the first.  problems: their entries of
    the manifest.  origin: in words.  refused: how many problems."""

    specs: tuple[Spec, ...]
    problems: list[dict[str, Any]]
    origin: str
    refused: int = 0


def of_corpus(isa: str) -> Selection:
    """The corpus, or its kernels of one level and those that every CPU runs.  Raises InvalidArguments."""
    if not isa:
        return Selection(_kernels(corpus()), [], "the corpus")
    level = isa_of(isa).name
    specs = _kernels(spec for spec in corpus() if spec.isa in (level, ANY_CPU))
    return Selection(specs, [], f"the corpus for {isa}")


def of_pattern(pattern: str) -> Selection:
    """The kernels of the corpus whose names match.  Raises InvalidArguments."""
    return Selection(_kernels(matching(pattern)), [], f"the corpus that match {pattern}")


def of_problems(cases: Sequence[AnyCase], l2_bytes: int) -> Selection:
    """The kernels of all cases.  One that no implementation takes is reported; Unimplemented if that is every one."""
    specs: list[Spec] = []
    problems: list[dict[str, Any]] = []
    refused: list[tuple[AnyCase, Unimplemented]] = []
    for case in cases:
        engine = planning_engine(case.settings.isa, l2_bytes)
        try:
            pd = primitive_desc_of(case, engine)
        except Unimplemented as error:
            refused.append((case, error))
            problems.append({"problem": str(case), "refused": " ".join(str(error).split())})
            continue
        specs += [*pd.plan.specs, executor_spec(pd.plan)]
        problems.append(_entry(case, pd))
    if len(refused) == len(cases):
        raise refused[0][1]
    for case, reason in refused:
        print(f"asmdnn: not dumped: problem '{case.problem}': {' '.join(str(reason).split())}", file=sys.stderr)
    of_all = f"{len(cases) - len(refused)} of " if refused else ""
    origin = f"{of_all}{len(cases)} problems" if len(cases) > 1 else str(cases[0])
    return Selection(_kernels(specs), problems, origin, len(refused))


def _kernels(specs: Iterable[Spec]) -> tuple[Spec, ...]:
    """The first spec of every name.  Raises InvalidArguments for others whose code is another."""
    found: dict[str, Spec] = {}
    for spec in specs:
        if code_text(found.setdefault(spec.name, spec)) != code_text(spec):
            raise InvalidArguments(f"dump: two kernels are called {spec.name}: dump their problems apart")
    return tuple(found.values())


def _entry(case: AnyCase, pd: PrimitiveDesc) -> dict[str, Any]:
    """A problem in the manifest: what was planned for which engine, and the schedule in numbers."""
    plan = pd.plan
    return {
        "problem": str(case),
        "implementation": plan.implementation,
        "engine": {"isa": pd.engine.isa, "l2_bytes": pd.engine.l2_bytes},
        "tensors": {name: str(desc) for name, desc in plan.tensors.items()},
        "constants_bytes": {name: array.nbytes for name, array in plan.constants.items()},
        "scratch_bytes": dict(plan.scratch_bytes),
        "executor": executor_spec(plan).name,
        "phases": [
            {
                "arguments": [str(view) for view in phase.arguments],
                "records": phase.count,
                "rounds": phase.rounds,
                "groups": None if phase.groups is None else len(phase.groups) - 1,
                "cycles": phase.total_cycles,
                **{name: getattr(phase, name) for name in FLAGS},
                "records_of_kernel": _records_of_kernel(phase),
            }
            for phase in plan.phases
        ],
    }


def _records_of_kernel(phase: Phase) -> dict[str, int]:
    """By name: specs that differ in numbers alone are one kernel."""
    found: Counter[str] = Counter()
    for spec, records, _ in phase.uses():
        found[spec.name] += records
    return dict(found)
