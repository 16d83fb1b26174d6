"""What a phase touches, kernel by kernel: the bytes of buffers that its records reach, without writing rounds out."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from asmdnn.errors import PlanError
from asmdnn.generators.contract import KernelSpec, TapList
from asmdnn.planning.accesses import Accesses, Spans
from asmdnn.planning.phase import Int64, Phase, Repeat, View
from asmdnn.planning.schedule import Schedule
from asmdnn.records import dataclass, field

CHUNK = 1 << 20  # accesses that are looked at together, at least: more cost memory, fewer cost time


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes [begin, end) of a buffer."""

    buffer: str
    begin: int
    end: int

    def overlaps(self, others: "Sequence[Extent]") -> bool:
        return any(self.buffer == x.buffer and self.begin < x.end and x.begin < self.end for x in others)


@dataclass(frozen=True, eq=False)
class Calls:
    """The records of one kernel in a phase; `numbers` are theirs in a round.

    offsets: int64[records, arguments].  moved: the arguments that are read through a tap list, and the list's own.
    writes, reads_of_others: (argument, extent) of what is written, and of what is read but for bytes that each record
    writes itself.
    """

    phase: Phase
    spec: KernelSpec
    numbers: Int64
    accesses: Accesses
    offsets: Int64
    moved: tuple[int, ...] = field(init=False)
    writes: tuple[tuple[int, Extent], ...] = field(init=False)
    reads_of_others: tuple[tuple[int, Extent], ...] = field(init=False)

    def __post_init__(self) -> None:
        taps = self.accesses.taps
        object.__setattr__(self, "moved", (*taps.targets, taps.argument) if taps else ())
        writes = tuple((argument, self.extent(argument, spans)) for argument, spans in self.accesses.writes.items())
        object.__setattr__(self, "writes", writes)
        object.__setattr__(self, "reads_of_others", tuple(self._reads_of_others()))

    def where(self, phase: str) -> str:
        """What errors say about a phase and this kernel."""
        return f"{phase}, kernel {self.spec.name}"

    def view(self, argument: int) -> View:
        return self.phase.arguments[argument]

    def repeats(self, argument: int) -> list[tuple[int, int]]:
        """(times, bytes) of the loops that move an argument."""
        return [(times, strides[argument]) for times, strides in self.phase.repeats if times > 1]

    def span(self, argument: int, begin: int, end: int) -> tuple[int, int]:
        """The first and the last byte after it that accesses of [begin, end) reach, from the view's start."""
        offsets = self.offsets[:, argument]
        low, high = reach_of(self.phase.repeats, argument)
        return int(offsets.min()) + low + begin, int(offsets.max()) + high + end

    def extent(self, argument: int, spans: Spans) -> Extent:
        view, reach = self.view(argument), spans.reach(argument)
        begin, end = self.span(argument, reach.begin_bytes, reach.end_bytes)
        return Extent(view.buffer, view.offset_bytes + begin, view.offset_bytes + end)

    @property
    def taps(self) -> TapList | None:
        return self.accesses.taps

    def reads_its_own(self, argument: int, spans: Spans) -> bool:
        """Whether every record reads through an argument only bytes that it writes itself."""
        buffer = self.view(argument).buffer
        if argument in self.moved:
            return False
        return any(
            self.view(other).buffer == buffer and spans.are_among(written) and self.same_bytes(argument, other)
            for other, written in self.accesses.writes.items()
        )

    def same_bytes(self, one: int, other: int) -> bool:
        """Whether two arguments point to the same byte of their buffers in every record."""
        if one == other:
            return True
        a, b = self.view(one), self.view(other)
        distance = b.offset_bytes - a.offset_bytes
        moves = all(strides[one] == strides[other] for _, strides in self.phase.repeats)
        equal = (self.offsets[:, one] == self.offsets[:, other] + distance).all()
        return moves and bool(equal)

    def _reads_of_others(self) -> Iterator[tuple[int, Extent]]:
        for argument, spans in self.accesses.reads.items():
            if not self.reads_its_own(argument, spans):
                yield argument, self.extent(argument, spans)
        for argument in self.moved:
            view = self.view(argument)
            end = 1 << 62 if view.size_bytes is None else view.offset_bytes + view.size_bytes
            yield argument, Extent(view.buffer, view.offset_bytes, end)


class Footprints:
    """What kernels access: made once for a kernel, and where its records lie once for phases that share them."""

    def __init__(self) -> None:
        self.accesses: dict[KernelSpec, Accesses] = {}
        self.shared: dict[tuple[int, int], list[tuple[KernelSpec, Int64, Accesses, Int64]]] = {}

    def calls_of(self, phase: Phase) -> list[Calls]:
        """Of every kernel of a phase, which has to live as long as this does.  Raises PlanError."""
        key = id(phase.kernels), id(phase.records)
        if key not in self.shared:
            self.shared[key] = [
                (spec, numbers, self.of(spec), phase.records[numbers, 1:]) for spec, numbers in phase.by_kernel()
            ]
            width = len(phase.arguments)
            for spec, _, accesses, _ in self.shared[key]:
                if accesses.arguments > width:  # it would find what phases before have left in the frame
                    raise PlanError(f"kernel {spec.name} takes {accesses.arguments} arguments, its phase has {width}")
        return [Calls(phase, *shared) for shared in self.shared[key]]

    def of(self, spec: KernelSpec) -> Accesses:
        if spec not in self.accesses:
            self.accesses[spec] = Accesses.of(spec.footprint())
        return self.accesses[spec]


def element_sizes(plan: Schedule, calls: Iterable[Calls]) -> dict[str, int]:
    """Bytes of an element of each buffer that is written.

    Scratch has no type: its elements are of 4 bytes, or of 2 or 1 where writes are not made of 4.
    """
    sizes = {name: desc.dtype.size_bytes for name, desc in plan.tensors.items()}
    places: dict[str, int] = {}
    for one in calls:
        for argument, spans in one.accesses.writes.items():
            view = one.view(argument)
            if view.buffer not in plan.tensors:
                bits = places.get(view.buffer, 0) | view.offset_bytes
                for numbers in (spans.begins, spans.ends, one.offsets[:, argument]):
                    bits |= int(np.bitwise_or.reduce(numbers, initial=0))
                for _, step in one.repeats(argument):
                    bits |= step
                places[view.buffer] = bits
    return sizes | {name: next(size for size in (4, 2, 1) if bits % size == 0) for name, bits in places.items()}


def reach_of(repeats: Sequence[Repeat], argument: int) -> tuple[int, int]:
    """The least and the most bytes that rounds add to an argument."""
    moves = [(times - 1) * strides[argument] for times, strides in repeats]
    return sum(move for move in moves if move < 0), sum(move for move in moves if move > 0)


def in_chunks(calls: Calls, argument: int, spans: Spans, least: int) -> Iterator[tuple[Int64, Int64, Int64]]:
    """(record, first byte, end) of accesses of a round in the buffer, some records at a time: so many that they have
    at least `least` accesses, so that they need not more memory than the buffer."""
    starts = calls.view(argument).offset_bytes + calls.offsets[:, argument, None]
    together = max(1, max(CHUNK, least) // len(spans.begins))
    for first in range(0, len(starts), together):
        begins = starts[first : first + together] + spans.begins
        ends = starts[first : first + together] + spans.ends
        numbers = np.broadcast_to(calls.numbers[first : first + together, None], begins.shape)
        yield numbers.ravel(), begins.ravel(), ends.ravel()
