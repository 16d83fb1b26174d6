"""The ISA level of the code that a plan runs: for most types it is below that of the engine."""

from asmdnn.isa.levels import ANY_CPU, isa_of
from asmdnn.planning.plan import Plan


def kernel_level(plan: Plan) -> str | None:
    """The highest level among the kernels; None if there are none."""
    names = {spec.isa for spec in plan.specs} - {ANY_CPU}
    return max(names, key=lambda name: isa_of(name).rank, default=None)
