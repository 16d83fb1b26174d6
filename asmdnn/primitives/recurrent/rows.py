"""Where the rows of a recurrent layer lie, step by step, and which of them a step works on."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise

from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import View
from asmdnn.primitives.products.matrices import Matrix
from asmdnn.primitives.recurrent.sizes import Sizes
from asmdnn.records import dataclass, field, replace
from asmdnn.types import DataType, f32

Runs = tuple[tuple[int, int], ...]  # (first row, how many), of neighbouring sequences


@dataclass(frozen=True, slots=True)
class BufferRows:
    """Row n of step t is at starts[t] + n * row_bytes of a buffer; one number in `starts` is that of all steps.

    The elements of a row, of `dtype`, touch.
    """

    buffer: str
    starts: tuple[int, ...]
    row_bytes: int
    dtype: DataType = f32

    def start(self, step: int, row: int = 0) -> int:
        """Where a row of a step begins, in bytes."""
        return self.starts[step if len(self.starts) > 1 else 0] + row * self.row_bytes

    @property
    def offset0(self) -> int:
        """Where the first row begins, in elements."""
        return self.starts[0] // self.dtype.size_bytes

    def view(self, step: int, row: int = 0) -> View:
        return View(self.buffer, self.start(step, row))

    def element(self, number: int) -> "BufferRows":
        """The same rows from that element of each on."""
        offset_bytes = number * self.dtype.size_bytes
        return replace(self, starts=tuple(start + offset_bytes for start in self.starts))

    def matrix(self, batch_bytes: tuple[int, ...] = ()) -> Matrix:
        """The rows from the first one on, as an operand of a product; those of steps may be a part of a tensor's."""
        size = self.dtype.size_bytes
        return Matrix(self.buffer, self.starts[0], batch_bytes, self.row_bytes, size, self.dtype, has_gaps=True)

    def desc(self, step: int, taken: tuple[int, int], columns: int) -> MemoryDesc:
        """The first columns of some rows of a step as a tensor; taken: the first row, and how many."""
        (first, count), size = taken, self.dtype.size_bytes
        strides, offset0 = (self.row_bytes // size, 1), self.start(step, first) // size
        return MemoryDesc((count, columns), self.dtype, strides=strides, offset0=offset0)


@dataclass(frozen=True, slots=True)
class Turn:
    """Rows that a step works on.  before: the step whose output is their state; None: they start here."""

    step: int
    before: int | None
    runs: Runs


@dataclass(frozen=True, slots=True)
class RowPiece:
    """Rows [first, first + count) of a step.  number: of its turn.  before, after: the steps that their state comes
    from and goes to; None: there is none."""

    number: int
    step: int
    before: int | None
    after: int | None
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Time:
    """When each sequence has steps.  lengths: its number of steps; first_rows: the row, of all, at which each step of a
    row-major src_layer starts."""

    sizes: Sizes
    lengths: tuple[int, ...]
    first_rows: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        s = self.sizes
        counts = [s.sequences] * s.steps
        if s.concatenated:
            counts = [sum(n > t for n in self.lengths) for t in range(s.steps)]
        object.__setattr__(self, "first_rows", tuple(accumulate(counts[:-1], initial=0)))

    @property
    def is_even(self) -> bool:
        """Whether all sequences have all steps."""
        return min(self.lengths) == self.sizes.steps

    @property
    def is_padded(self) -> bool:
        """Whether there are rows after the end of a sequence."""
        return not self.is_even and not self.sizes.concatenated

    def dense(self, buffer: str, columns: int, start_bytes: int = 0, dtype: DataType = f32) -> BufferRows:
        """A row-major matrix of all rows."""
        row_bytes = columns * dtype.size_bytes
        return BufferRows(buffer, tuple(start_bytes + row * row_bytes for row in self.first_rows), row_bytes, dtype)

    def layer(self, name: str, desc: MemoryDesc) -> BufferRows:
        """src_layer or dst_layer."""
        start, (step, *_), size = desc.offset0_bytes, desc.strides_bytes, desc.dtype.size_bytes
        if self.sizes.concatenated:
            return BufferRows(name, tuple(start + row * step for row in self.first_rows), step, desc.dtype)
        row = desc.strides_bytes[1] if self.sizes.sequences > 1 else desc.dims[2] * size  # a single one has no distance
        return BufferRows(name, tuple(start + t * step for t in range(self.sizes.steps)), row, desc.dtype)

    def turns(self, backwards: bool) -> list[Turn]:
        """All steps in their order, from right to left if `backwards`; one that some start at is two."""
        found = []
        for t in range(self.sizes.steps)[:: -1 if backwards else 1]:
            begins = [n == t + 1 if backwards else t == 0 for n in self.lengths]
            goes_on = [n > t and not begin for n, begin in zip(self.lengths, begins, strict=True)]
            before = t + 1 if backwards else t - 1
            found += [Turn(t, None, runs_of(begins))] if any(begins) else []
            found += [Turn(t, before, runs_of(goes_on))] if any(goes_on) else []
        return found

    def pieces(self, backwards: bool) -> list[RowPiece]:
        """The rows of all turns, in their order, cut where the step that goes on from them differs."""
        return [
            RowPiece(number, turn.step, turn.before, after, rows[0], len(rows))
            for number, turn in enumerate(self.turns(backwards))
            for run in turn.runs
            for after, rows in self._cut(turn.step, run, backwards)
        ]

    def _cut(self, step: int, run: tuple[int, int], backwards: bool) -> Iterator[tuple[int | None, list[int]]]:
        """(the step that goes on, the rows that it goes on from) of neighbouring rows."""
        first, count = run
        for after, rows in groupby(range(first, first + count), lambda row: self._after(step, row, backwards)):
            yield after, list(rows)

    def _after(self, step: int, row: int, backwards: bool) -> int | None:
        """The step that goes on from a row of a step; None: there is none."""
        if backwards:
            return step - 1 if step else None
        return step + 1 if self.lengths[row] > step + 1 else None

    def ends(self, backwards: bool) -> list[tuple[int, Runs]]:
        """(step, the rows whose last one it is)."""
        last = [0 if backwards else n - 1 for n in self.lengths]
        return [(step, runs_of([x == step for x in last])) for step in sorted(set(last))]


def dense_rows(buffer: str, columns: int, dtype: DataType = f32) -> BufferRows:
    """A row-major matrix, the same for all steps."""
    return BufferRows(buffer, (0,), columns * dtype.size_bytes, dtype)


def start_of(desc: MemoryDesc, number: int, direction: int) -> int:
    """Where a layer and direction begin in a state, in weights or in a bias, in bytes."""
    layer_bytes, direction_bytes = desc.strides_bytes[:2]
    return desc.offset0_bytes + number * layer_bytes + direction * direction_bytes


def state_rows(name: str, desc: MemoryDesc, number: int, direction: int) -> BufferRows:
    """An initial or final state of a layer and direction, or its gradient: a row for each sequence."""
    row = desc.strides[2] if desc.dims[2] > 1 else desc.dims[3]  # a single one has no distance
    return BufferRows(name, (start_of(desc, number, direction),), row * desc.dtype.size_bytes, desc.dtype)


def runs_of(chosen: Sequence[bool]) -> Runs:
    """Runs of what is chosen."""
    edges = [i for i, (a, b) in enumerate(pairwise((False, *chosen, False))) if a != b]
    return tuple((begin, end - begin) for begin, end in zip(edges[::2], edges[1::2], strict=True))
