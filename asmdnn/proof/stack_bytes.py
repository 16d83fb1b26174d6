"""Bytes of the stack: those that an instruction reads and writes, and those that have been written on every path.

Places count down from rsp at the call.  A place that was rounded down has a base of its own: how far it was moved is
not known, but all that counts from it was moved as far.  The return address and what is above have their contents.
"""

from collections.abc import Mapping
from typing import NamedTuple

from asmdnn.proof.chosen import is_certain, pieces
from asmdnn.proof.facts import RSP
from asmdnn.proof.kernel import PlacedInstruction
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.saved_registers import RED_ZONE_BYTES
from asmdnn.proof.state import State
from asmdnn.proof.values import STACK, AbstractValue, Base, on_stack
from asmdnn.records import dataclass, field

Place = tuple[Base, int, int]  # a base, first byte, end


class StackUse(NamedTuple):
    """reads: what must have been written.  writes: what is for certain.  kept_from: what lies lower is lost, if any."""

    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    kept_from: int | None = None


def stack_use(machine: Interpreter, step: PlacedInstruction, state: State) -> StackUse | None:
    """Of one instruction in a state; None if it is about nothing of the stack that is known."""
    reads, writes, calls = list[Place](), list[Place](), step.fact.flow == "indirect call"
    for access, where in machine.touched(state, step) if step.fact.accesses else ():
        base, at = where
        if base is None or at is None or not on_stack(where):
            continue
        chosen = machine.elements(state, access)
        found = [(base, begin, end) for begin, end in pieces(access, at, chosen)]
        reads += found if access.reads else ()
        is_written = access.writes and is_certain(access, chosen) and not calls  # of a call where it returned to
        writes += found if is_written else ()
    kept_from = None
    if RSP in step.fact.gp_written and step.fact.mnemonic != "push":
        kept_from = _kept_from(machine, step, state)
    return StackUse(tuple(reads), tuple(writes), kept_from) if reads or writes or kept_from is not None else None


def _kept_from(machine: Interpreter, step: PlacedInstruction, state: State) -> int:
    """A callee may use all that is below rsp; a signal what is below the red zone."""
    if step.fact.flow == "indirect call":
        return state.registers[RSP].offset or 0
    after = state.copy()
    machine.apply(after, step)
    return (after.registers[RSP].offset or 0) - RED_ZONE_BYTES


@dataclass(frozen=True, slots=True)
class StackBytes:
    """What has been written.  written: for each base an integer, whose bit n is of the byte n + 1 below it."""

    written: Mapping[Base, int] = field(default_factory=dict)

    def after(self, use: StackUse) -> "StackBytes":
        found = dict(self.written)
        if use.kept_from is not None:
            found = {base: bits & span(use.kept_from + lowered(base), 0) for base, bits in found.items()}
        for base, begin, end in use.writes:
            found[base] = found.get(base, 0) | span(begin, end)
        return StackBytes(found)

    def shared(self, other: "StackBytes") -> "StackBytes":
        """What both have."""
        if self.written == other.written:
            return self
        bases = self.written.keys() & other.written.keys()
        return StackBytes({base: self.written[base] & other.written[base] for base in bases})

    def missing(self, use: StackUse) -> Place | None:
        """What is read and has not been written."""
        return next((place for place in use.reads if not self._has(place)), None)

    def _has(self, place: Place) -> bool:
        """Of a rounded place also by what surely reaches it."""
        base, begin, end = place
        if not span(begin, end) & ~self.written.get(base, 0):
            return True
        return base != STACK and not span(begin - lowered(base), end) & ~self.written.get(STACK, 0)


def lowered(base: Base) -> int:
    """How many bytes rounding may have taken away."""
    return on_stack(AbstractValue(base, None)) - 1


def span(begin: int, end: int) -> int:
    """Bits of the bytes, but for those of the return address and above."""
    end = min(end, 0)
    return (1 << end - begin) - 1 << -end if begin < end else 0
