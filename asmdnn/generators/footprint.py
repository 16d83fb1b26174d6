"""What a kernel call touches, as data: the bytes relative to each argument's pointer.

`Plan.check()` adds the schedule's offsets to these and proves that every access is inside its tensor.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Bytes [begin_bytes, end_bytes) from the pointer of an argument; `end_bytes` is exclusive."""

    argument: int
    begin_bytes: int
    end_bytes: int


@dataclass(frozen=True, slots=True)
class TapList:
    """A list of int64 that a kernel walks: for each group a count, then so many tuples of byte offsets.

    `targets` are the arguments that the offsets of a tuple move; `groups[g]` are the ranges read from the moved
    pointers for each tuple of group g.
    """

    argument: int
    targets: tuple[int, ...]
    groups: tuple[tuple[Range, ...], ...]


@dataclass(frozen=True, slots=True)
class Footprint:
    """Everything one call reads and writes; no prefetches.  rereads: it reads back what it has written."""

    reads: tuple[Range, ...]
    writes: tuple[Range, ...]
    taps: TapList | None = None
    rereads: bool = False
