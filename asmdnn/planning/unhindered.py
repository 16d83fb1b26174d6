"""Phases of which a planner need not know whether they wait for one another: what their kernels read and write says it.

Buffers count as a whole, so that some barriers stay that a proof by bytes would do without.
"""

from asmdnn.planning.phase import Phase
from asmdnn.planning.phases import arguments_of, intervals
from asmdnn.planning.plan import Plan
from asmdnn.records import replace


def without_needless_barriers(plan: Plan) -> Plan:
    """The plan without barriers between phases that neither write what those since the barrier before touch, nor read
    what these write.  What was written before is written again after a barrier, as the proof wants it.

    A barrier goes only if all phases up to the next one may run beside those before it."""
    phases = list[Phase]()
    shared = {name: {name, *(y for x, y in plan.in_place if x == name)} for name, _ in plan.in_place}
    read, written, before = set[str](), set[str](), set[str]()
    for together in intervals(plan.phases):
        reads, writes = set[str](), set[str]()
        for phase in together:
            for found, names in zip((reads, writes), touched(phase), strict=True):
                found |= {buffer for name in names for buffer in shared.get(name, {name})}
        if phases and not (writes & (read | written | before) or reads & written):
            together[0] = replace(together[0], independent=True)
        else:
            read, written = set(), set()
        read |= reads
        written |= writes
        before |= writes
        phases += together
    return replace(plan, phases=tuple(phases))


def touched(phase: Phase) -> tuple[set[str], set[str]]:
    """The buffers that a phase reads, also through a list of taps, and those that it writes."""
    read, written = set[str](), set[str]()
    for spec in phase.kernels:
        found = arguments_of(spec)
        read |= {phase.arguments[argument].buffer for argument in (*found.read, *found.moved)}
        written |= {phase.arguments[argument].buffer for argument in found.written}
    return read, written
