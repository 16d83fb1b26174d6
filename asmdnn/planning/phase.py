"""Phases of a schedule: records, what their arguments point into, and how threads share them.

A record is int64[1 + arguments]: a number in the phase's table of kernels, then the byte offset of every argument from
the start of its view.  Records of one phase write disjoint bytes and may run in any order on any thread, but for those
of a group, which one thread runs in their order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from asmdnn.generators.contract import KernelSpec
from asmdnn.records import altered, dataclass, field, replace

Int64 = npt.NDArray[np.int64]
MOST_CYCLES = 2**31 - 1  # of a record
FLAGS = ("continues", "independent", "alone", "backwards", "flushes")  # of a phase


class View(NamedTuple):
    """Bytes [offset_bytes, offset_bytes + size_bytes) of a buffer; size_bytes None: to its end."""

    buffer: str
    offset_bytes: int = 0
    size_bytes: int | None = None

    def __str__(self) -> str:
        if self == NOTHING:
            return "nothing"
        start = f"+{self.offset_bytes}" if self.offset_bytes else ""
        return self.buffer + start + (f":{self.size_bytes}" if self.size_bytes is not None else "")

    def within(self, place: "View") -> "View":
        """This part of what is now at `place`."""
        size = self.size_bytes
        if size is None and not self.offset_bytes:
            return place
        if size is None and place.size_bytes is not None:
            size = place.size_bytes - self.offset_bytes
        return View(place.buffer, place.offset_bytes + self.offset_bytes, size)


NOTHING = View("")  # the view of an argument that a phase's kernels do not have


class Repeat(NamedTuple):
    """`times` times, each argument strides[i] bytes further every time."""

    times: int
    strides: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Phase:
    """Records that may run at the same time, for kernels that are numbers in `kernels`.

    arguments: what each one points into.  records: int64[n, 1 + arguments], read-only from here on.  cycles: int32[n],
    what each record is expected to cost; threads get ranges of equal cost.

    repeats: the records come so often, the first Repeat being the outermost loop; they count as `rounds` times n
    records, round after round.
    groups: int64[g + 1], where groups of records begin in a round, and its end; None: each record is one.
    continues: record i follows record i of the phase before, whose output only it touches, so that no thread waits.
    independent: it writes nothing that phases since the last barrier touch, and reads nothing that they write, so
    that no thread waits either.
    alone: one thread runs it.  backwards: each thread walks its share from the end.
    flushes: subnormal numbers count as zeros.
    """

    kernels: tuple[KernelSpec, ...]
    arguments: tuple[View, ...]
    records: Int64
    cycles: npt.NDArray[np.int32]
    continues: bool = False
    independent: bool = False
    alone: bool = False
    backwards: bool = False
    flushes: bool = False
    repeats: tuple[Repeat, ...] = ()
    groups: Int64 | None = field(default=None)

    def __post_init__(self) -> None:
        for array in (self.records, self.cycles, self.groups):
            if array is not None:
                array.setflags(write=False)

    @property
    def rounds(self) -> int:
        """How often the records come."""
        return prod(repeat.times for repeat in self.repeats) if self.repeats else 1

    @property
    def count(self) -> int:
        """Calls of kernels."""
        return self.rounds * len(self.records)

    @property
    def total_cycles(self) -> int:
        return self.rounds * int(self.cycles.sum(dtype=np.int64))

    @property
    def shares(self) -> int:
        """Into how many parts it can be cut."""
        if self.alone:
            return 1
        return self.count if self.groups is None else self.rounds * (len(self.groups) - 1)

    def uses(self) -> list[tuple[KernelSpec, int, int]]:
        """(kernel, its calls, their expected cycles together) for every kernel that the phase calls."""
        kernel, records = np.unique(self.records[:, 0], return_counts=True)
        cycles = np.bincount(self.records[:, 0], weights=self.cycles)
        return [
            (self.kernels[k], self.rounds * int(n), self.rounds * int(cycles[k]))
            for k, n in zip(kernel, records, strict=True)
        ]

    def by_kernel(self) -> Iterator[tuple[KernelSpec, Int64]]:
        """(kernel, int64[records]: the numbers of its records in a round)."""
        for kernel in np.unique(self.records[:, 0]):
            yield self.kernels[kernel], np.flatnonzero(self.records[:, 0] == kernel)

    def starts(self) -> Int64:
        """int64[rounds, arguments]: what each round adds to the records' offsets."""
        grid = np.zeros((1, len(self.arguments)), np.int64)
        for times, strides in self.repeats:
            steps = np.arange(times, dtype=np.int64)[:, None] * np.array(strides, np.int64)
            grid = (grid[:, None] + steps).reshape(-1, grid.shape[1])
        return grid

    def calls_as(self, other: "Phase") -> bool:
        """Whether it makes the same calls on the same places; threads may share them otherwise."""
        calls = (self.kernels, self.arguments, self.repeats, self.flushes)
        return calls == (other.kernels, other.arguments, other.repeats, other.flushes) and np.array_equal(
            self.records, other.records
        )

    def written_out(self) -> "Phase":
        """The same with no repeats: for phases of few records."""
        if not self.repeats:
            return self
        records = np.tile(self.records, (self.rounds, 1))
        records[:, 1:] += np.repeat(self.starts(), len(self.records), axis=0)
        groups = self.groups
        if groups is not None:
            begins = np.add.outer(np.arange(self.rounds) * len(self.records), groups[:-1]).ravel()
            groups = np.append(begins, len(records))
        return replace(self, records=records, cycles=np.tile(self.cycles, self.rounds), repeats=(), groups=groups)

    def on(self, places: Mapping[str, View]) -> "Phase":
        """The same records on other memory: `places` says what stands for a buffer."""
        arguments = [view.within(places[view.buffer]) if view.buffer in places else view for view in self.arguments]
        moved: Phase = altered(self, arguments=tuple(arguments))
        return moved


def said_of(phase: Phase) -> str:
    """What is special about a phase, in words that go on after a comma; "" of most."""
    words = [f"{phase.rounds} rounds of {len(phase.records)}"] if phase.repeats else []
    words += [f"groups of records: {len(phase.groups) - 1} a round"] if phase.groups is not None else []
    words += [word for word in ("alone", "backwards") if getattr(phase, word)]
    return "".join(f", {word}" for word in words)


def views(buffers: Sequence[str]) -> tuple[View, ...]:
    """Whole buffers; an empty name is NOTHING."""
    return tuple(View(name) if name else NOTHING for name in buffers)


def records_of(arguments: Sequence[str], columns: Mapping[str, Int64 | int], kernel: Int64 | int = 0) -> Int64:
    """int64[n, 1 + arguments] from named columns of offsets, int64[n] or one number for all; 0 where none is given.

    Names are different: of two equal ones the second would stay 0.
    """
    places = {name: 1 + i for i, name in enumerate(arguments)}
    assert len(places) == len(arguments)
    lengths = {len(each) for each in (kernel, *columns.values()) if isinstance(each, np.ndarray)}
    (rows,) = lengths - {1} or {1}
    records = np.zeros((rows, 1 + len(arguments)), np.int64)
    records[:, 0] = kernel
    for name, column in columns.items():
        records[:, places[name]] = column
    return records


def flushing(phases: Iterable[Phase], flushes: bool = True) -> tuple[Phase, ...]:
    """The phases with subnormal numbers as zeros, or as they are."""
    return tuple(phase if phase.flushes == flushes else altered(phase, flushes=flushes) for phase in phases)
