"""From a primitive descriptor to its explanation; nothing is executed, so every ISA level works on every machine."""

from collections.abc import Iterator
from itertools import pairwise

from asmdnn.explain.kernels import kernel_of
from asmdnn.explain.model import Buffer, Explanation, Implementation, KernelUse, Phase, ThreadRange
from asmdnn.explain.sources import sources_of
from asmdnn.explain.tiles import plane_of
from asmdnn.planning.plan import Plan
from asmdnn.primitives.descriptor import PrimitiveDesc, implementations
from asmdnn.primitives.implementation import Refusal


def explain(pd: PrimitiveDesc, problem: str) -> Explanation:
    """Everything there is to say; `problem` is how the user calls it.  Raises Unimplemented if PeachPy is missing."""
    plan = pd.plan
    kernels = tuple(kernel_of(spec) for spec in plan.specs)
    return Explanation(
        problem,
        str(pd.desc),
        pd.explain(),
        pd.implementation,
        pd.engine.isa,
        pd.engine.threads,
        tuple(_implementations(pd)),
        tuple(_buffers(plan)),
        tuple(_phases(plan, pd.engine.threads)),
        kernels,
        sources_of(instruction for kernel in kernels for instruction in kernel.instructions),
    )


def _implementations(pd: PrimitiveDesc) -> Iterator[Implementation]:
    chosen = False
    for answer in implementations(pd.desc, pd.attr, pd.engine):
        if isinstance(answer, Refusal):
            yield Implementation(answer.implementation, "refused", answer.reason)
        else:
            reason = "" if not chosen else "it would take this too, but stands behind the chosen one"
            yield Implementation(answer.implementation, "accepted" if chosen else "chosen", reason)
            chosen = True


def _buffers(plan: Plan) -> Iterator[Buffer]:
    for name, desc in plan.tensors.items():
        yield Buffer(name, "tensor", str(desc), desc.size_bytes)
    for name, constant in plan.constants.items():
        yield Buffer(name, "constant", f"{constant.dtype} {constant.size}", constant.nbytes)
    for name, size in plan.scratch_bytes.items():
        yield Buffer(name, "scratch", "bytes", size)


def _phases(plan: Plan, threads: int) -> Iterator[Phase]:
    splits = plan.split(plan.parts(threads))
    for phase, bounds in zip(plan.phases, splits, strict=True):
        ranges = [
            ThreadRange(thread, begin, end, int(phase.cycles[begin:end].sum()))
            for thread, (begin, end) in enumerate(pairwise(bounds.tolist()))
        ]
        yield Phase(
            phase.arguments,
            len(phase.records),
            int(phase.cycles.sum()),
            phase.continues,
            tuple(KernelUse(*use) for use in phase.uses()),
            tuple(ranges),
            plane_of(plan, phase, bounds),
        )
