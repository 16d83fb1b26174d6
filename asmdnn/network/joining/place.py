"""Where values lie."""

from typing import NamedTuple

from asmdnn.memory import MemoryDesc


class Place(NamedTuple):
    """Where a value lies: a descriptor, whose offset counts from the start of a buffer."""

    buffer: str
    desc: MemoryDesc


class StateWindow(NamedTuple):
    """The tensors of a state that are read, and the part of it that is written, from its own start on."""

    old: str
    now: str
    desc: MemoryDesc
