"""From a primitive descriptor to its explanation; nothing is executed, so every ISA level works on every machine."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from asmdnn.explain.kernels import kernel_of
from asmdnn.explain.model import Buffer, DrawnPhase, Explanation, Implementation, KernelUse, ThreadRange
from asmdnn.explain.sources import sources_of
from asmdnn.explain.tiles import PlanesOfPhases
from asmdnn.planning.phase import Phase, said_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.core.descriptor import PrimitiveDesc, implementations


def explain(pd: PrimitiveDesc, problem: str) -> Explanation:
    """Everything there is to say; `problem` is how the user calls it.  Raises Unimplemented if PeachPy is missing."""
    plan = pd.plan
    kernels = tuple(kernel_of(spec) for spec in plan.specs)
    return Explanation(
        problem=problem,
        description=str(pd.desc),
        summary=pd.explain(),
        implementation=pd.implementation,
        isa=pd.engine.isa,
        threads=pd.engine.threads,
        implementations=tuple(_implementations(pd)),
        buffers=tuple(_buffers(pd)),
        phases=tuple(_phases(plan, pd.threads)),
        kernels=kernels,
        sources=sources_of(instruction for kernel in kernels for instruction in kernel.instructions),
    )


def _implementations(pd: PrimitiveDesc) -> Iterator[Implementation]:
    chosen = pd.choice is not None
    if pd.choice:
        yield Implementation(pd.implementation, "chosen", f"tuned: {pd.choice}")
    for answer in implementations(pd.desc, pd.attr, pd.engine):
        if isinstance(answer, Refusal):
            yield Implementation(answer.implementation, "refused", answer.reason)
        else:
            reason = "" if not chosen else "it would take this too, but stands after the chosen one"
            yield Implementation(answer.implementation, "accepted" if chosen else "chosen", reason)
            chosen = True


def _buffers(pd: PrimitiveDesc) -> Iterator[Buffer]:
    plan, formats = pd.plan, pd.formats()
    for name, desc in plan.tensors.items():
        yield Buffer(name, "tensor", formats[name], desc.size_bytes)
    for name, constant in plan.constants.items():
        yield Buffer(name, "constant", f"{constant.dtype} {constant.size}", constant.nbytes)
    for name, size in plan.scratch_bytes.items():
        yield Buffer(name, "scratch", "bytes", size)


def _phases(plan: Plan, threads: int) -> Iterator[DrawnPhase]:
    splits, number = plan.split(plan.parts(threads)), {spec: i for i, spec in enumerate(plan.specs)}
    planes = PlanesOfPhases(plan)
    for phase, bounds in zip(plan.phases, splits, strict=True):
        ranges = [
            ThreadRange(thread, begin, end, cycles_of(phase, begin, end))
            for thread, (begin, end) in enumerate(pairwise(bounds.tolist()))
        ]
        yield DrawnPhase(
            arguments=tuple(map(str, phase.arguments)),
            records=phase.count,
            cycles=phase.total_cycles,
            start=start_of(phase) + said_of(phase),
            kernels=tuple(KernelUse(number[spec], calls, cycles) for spec, calls, cycles in phase.uses()),
            threads=tuple(ranges),
            plane=planes.of(phase, bounds),
        )


def start_of(phase: Phase) -> str:
    """What has to be done before it starts, in words."""
    if phase.continues:
        return "continues the phase before: no barrier"
    return "independent of the phases before: no barrier" if phase.independent else "after a barrier"


def cycles_of(phase: Phase, begin: int, end: int) -> int:
    """Of records [begin, end), counted through all rounds."""
    done = np.concatenate(([0], np.cumsum(phase.cycles, dtype=np.int64)))
    if not phase.count:
        return 0
    rounds, record = np.divmod((begin, end), len(phase.records))
    first, last = rounds * done[-1] + done[record]
    return int(last - first)
