"""Tap lists in the walk over a kernel: positions in the list, counts and offsets stay symbols, for lists of any length.

A list is, for each group, a count and so many tuples of offsets (generators/contract.py).  A position is an offset
from the start of a group's part, Base("start"), or, once it is known that there is one, of a tuple, Base("tuple").
A branch on a count tells which: no tuple, then the next group starts after the count; or one, of how many is left
open.  All tuples of a group look the same, so that a loop over them comes back to the state that it had before.
"""

from typing import Final

from asmdnn.generators.contract import TapList
from asmdnn.proof.state import WORD_BYTES, State
from asmdnn.proof.values import NUMBER, AbstractValue, Base, number

COUNTS: Final = ("count", "left")  # of a whole group, possibly 0; of what is left, at least 1 + offset


def first_position(taps: TapList) -> AbstractValue:
    """The pointer to the list."""
    return AbstractValue(Base("start", taps.argument, 0), 0)


def load(taps: TapList, where: AbstractValue) -> AbstractValue:
    """The word at a position that `offence` allows."""
    assert where.base is not None
    if where.offset is None:
        return NUMBER
    if where.base.kind == "start":
        return AbstractValue(Base("count", group=where.base.group), 0)
    return AbstractValue(Base("tap", where.offset // WORD_BYTES, where.base.group), 0)


def offence(taps: TapList, where: AbstractValue, size_bytes: int) -> str:
    """Why a read of the list is wrong, or ""."""
    assert where.base is not None
    group, words = where.base.group, 1 if where.base.kind == "start" else len(taps.targets)
    if group >= len(taps.groups):
        return f"it reads the tap list after its {len(taps.groups)} groups"
    places = range(0, words * WORD_BYTES, WORD_BYTES)
    if size_bytes != WORD_BYTES or where.offset not in places:
        at = "an unknown place" if where.offset is None else f"byte {where.offset}"
        return f"it reads {size_bytes} bytes at {at} of group {group}'s {where.base.kind}, no word of the list"
    return ""


def moved_offence(taps: TapList, base: Base) -> str:
    """Why a pointer that a tap has moved is wrong, or ""."""
    if taps.targets[base.word] != base.number:
        return f"word {base.word} of a tap moves argument {taps.targets[base.word]}, not {base.number}"
    return ""


def assume(taps: TapList, state: State, tested: AbstractValue, is_zero: bool) -> None:
    """A branch has told whether a count is zero: positions and counts of its group become what they now are."""
    assert tested.base is not None
    group, kind = tested.base.group, tested.base.kind
    passed = WORD_BYTES * (1 if kind == "count" else len(taps.targets))
    here = "start" if kind == "count" else "tuple"

    def known(value: AbstractValue) -> AbstractValue:
        base, offset = value
        if base is None or base.group != group or offset is None:
            return value
        if base.kind == here:
            goal = Base("start", taps.argument, group + 1) if is_zero else Base("tuple", taps.argument, group)
            return AbstractValue(goal, offset - passed)
        if base == tested.base:  # `tested` is what was compared with zero
            rest = offset - (tested.offset or 0)
            return number(rest) if is_zero else AbstractValue(Base("left", group=group), rest)
        return value

    state.registers = [known(value) for value in state.registers]
    state.slots = {at: known(value) for at, value in state.slots.items()}
