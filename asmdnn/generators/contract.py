"""The contract of generated code: what a spec says of itself, and what a call touches, as data.

Plans, the proof, dumps and the corpus know a kernel by this alone.  `Plan.check()` adds the schedule's offsets to the
ranges and proves that every access is inside its tensor; the proof and the tests hold the code to them.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from asmdnn.records import dataclass

if TYPE_CHECKING:  # plans and their check need no assembler
    from asmdnn.isa.assembler import Assembler


@dataclass(frozen=True, slots=True, order=True)
class Range:
    """Bytes [begin_bytes, end_bytes) from the pointer of an argument; `end_bytes` is exclusive."""

    argument: int
    begin_bytes: int
    end_bytes: int


def joined(touched: Iterable[Range]) -> tuple[Range, ...]:
    """The same bytes in the fewest ranges."""
    found: list[Range] = []
    for x in sorted(touched):
        last = found[-1] if found else None
        if last and last.argument == x.argument and x.begin_bytes <= last.end_bytes:
            found[-1] = Range(x.argument, last.begin_bytes, max(last.end_bytes, x.end_bytes))
        else:
            found.append(x)
    return tuple(found)


def rows_of(argument: int, rows: int, row_bytes: int, width: int) -> tuple[Range, ...]:
    """The first `width` bytes of every row; rows that touch as one."""
    if row_bytes == width:
        return (Range(argument, 0, rows * width),)
    return tuple(Range(argument, r * row_bytes, r * row_bytes + width) for r in range(rows))


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
class KernelWords:
    """Numbers that a kernel reads through an argument, int64 of a constant: counts, distances and the like."""

    argument: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Footprint:
    """Everything one call reads and writes; no prefetches.  rereads: it reads back what it has written.

    words: numbers that it is called with, for which alone the rest holds; they are among the reads.  partial: data say
    which of the rows it writes; the others stay as they were, so all of them must have been written before.
    """

    reads: tuple[Range, ...]
    writes: tuple[Range, ...]
    taps: TapList | None = None
    rereads: bool = False
    words: KernelWords | None = None
    partial: bool = False


class TouchedArguments(NamedTuple):
    """Arguments that a kernel claims to read, those of its list of taps, and those that it writes; prefetching is
    neither.  Kernels that leave partial sums in a result do not read what is added in the end."""

    read: frozenset[int]
    moved: frozenset[int]
    written: frozenset[int]

    def touch(self, argument: int) -> bool:
        return argument in self.read or argument in self.moved or argument in self.written


def touched_by(footprint: Footprint) -> TouchedArguments:
    taps, words = footprint.taps, footprint.words
    moved = {taps.argument, *taps.targets} if taps else set[int]()
    read = {x.argument for x in footprint.reads} | ({words.argument} if words else set())
    return TouchedArguments(frozenset(read), frozenset(moved), frozenset({x.argument for x in footprint.writes}))


NOTHING: Final = Footprint((), ())  # of code that has numbers in its frame and no buffers


class Spec(Protocol):
    """Everything that the bytes of generated code depend on, as a frozen dataclass.

    isa: the level that it needs, or ANY_CPU.  name: its identity for people, also a file name.  frame: what the words
    of its frame are, in order.  footprint: what a call touches, relative to the frame's pointers; None where no
    bounds are claimed.  generate: emit the code, which returns.

    A spec may also hold numbers that its code reads, the words of its footprint.  Then `code_spec`, without them, is
    what the bytes depend on, and the same for many.  One whose footprint is long may say what it touches without it,
    as `touched_arguments()`.
    """

    @property
    def isa(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def frame(self) -> tuple[str, ...]: ...
    def __hash__(self) -> int: ...
    def footprint(self) -> Footprint | None: ...
    def generate(self, asm: "Assembler") -> None: ...


class KernelSpec(Spec, Protocol):
    """A kernel of plans: every word of its frame is a buffer's address."""

    def footprint(self) -> Footprint: ...
