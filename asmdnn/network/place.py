"""Where values lie."""

from typing import NamedTuple

from asmdnn.memory import MemoryDesc


class Place(NamedTuple):
    """Where a value lies: a descriptor, whose offset counts from the start of a buffer."""

    buffer: str
    desc: MemoryDesc
