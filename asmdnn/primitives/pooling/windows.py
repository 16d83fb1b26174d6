"""The windows of a pooling, axis by axis: what of each lies inside src, and runs of neighbours that are alike."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from asmdnn.records import dataclass


class Window(NamedTuple):
    """`inside`: positions in src, the first one at index `first`; divisor: how many count for a mean."""

    first: int
    inside: int
    divisor: int


class WindowRun(NamedTuple):
    """`outputs` results from number `output` on, whose windows are alike and `step` elements apart."""

    output: int
    outputs: int
    window: Window
    step: int


class Row(NamedTuple):
    """Windows along an axis that are alike but for its ends: positions `dilation` elements apart, windows `stride`."""

    columns: int
    dilation: int
    stride: int
    padding: int
    results: int

    def outside(self, output: int) -> int:
        """Positions of a window before its first one inside."""
        return max(0, -((output * self.stride - self.padding) // self.dilation))


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows of a pooling.

    axes: the runs of each axis, outermost first; steps: from a position to the next one, in elements of each axis.
    rows: of each axis, none where windows have different sizes inside src, too.
    """

    is_max: bool
    axes: tuple[tuple[WindowRun, ...], ...]
    steps: tuple[int, ...]
    rows: tuple[Row, ...]

    @property
    def row(self) -> Row | None:
        """The last axis, on which pixels are dense."""
        return self.rows[-1] if self.rows else None

    @property
    def most_inside(self) -> tuple[int, ...]:
        """Positions of the largest window along each axis."""
        return tuple(max(run.window.inside for run in runs) for runs in self.axes)


def axis_runs(
    size: int, outputs: int, kernel: int, stride: int, dilation: int, before: int, counted: int | None
) -> list[WindowRun]:
    """Of outputs whose windows begin at o * stride - before; positions count up to index `counted`, or inside src.

    Only at the edges is each window looked at: those that lie inside src are alike.
    """

    def window(o: int) -> Window:
        begin = o * stride - before
        outside = min(kernel, max(0, -(begin // dilation)))
        inside = max(outside, min(kernel, -((begin - size) // dilation)))
        count = inside - outside
        divisor = count if counted is None else min(kernel, max(0, -((begin - counted) // dilation)))
        return Window(begin + outside * dilation, count, divisor)

    low = min(outputs, -(-before // stride))
    high = max(low, min(outputs, (size - 1 - (kernel - 1) * dilation + before) // stride + 1))
    inside = [WindowRun(low, high - low, window(low), stride if high - low > 1 else 0)] if low < high else []
    left, right = ([*map(window, from_to(begin, end))] for begin, end in ((0, low), (high, outputs)))
    return [*runs_of(left), *inside, *runs_of(right, high)]


def from_to(begin: int, end: int) -> Iterator[int]:
    """As `range`, also of numbers that stand for others (memory/traced.py)."""
    while begin < end:
        yield begin
        begin += 1


def adaptive_runs(size: int, outputs: int) -> list[WindowRun]:
    """Of outputs that share an axis equally."""
    edges = ((o * size // outputs, -(-(o + 1) * size // outputs)) for o in range(outputs))
    return runs_of([Window(begin, end - begin, end - begin) for begin, end in edges])


def single_runs(size: int) -> list[WindowRun]:
    """Of an axis where each element is its own window."""
    return [WindowRun(0, size, Window(0, 1, 1), int(size > 1))]


def undivided(runs: Sequence[WindowRun]) -> list[WindowRun]:
    """The same windows, of which sums are made; neighbours whose divisors alone differ stay apart."""
    return [run._replace(window=run.window._replace(divisor=1)) for run in runs]


def reduced_runs(runs: Sequence[WindowRun]) -> list[WindowRun]:
    """What stands for the windows once their sums are made: each is its own, with the divisor of its window."""
    found: list[WindowRun] = []
    for run in runs:
        last = found[-1] if found else None
        if last and last.window.divisor == run.window.divisor:
            found[-1] = last._replace(outputs=last.outputs + run.outputs, step=1)
        else:
            found.append(WindowRun(run.output, run.outputs, Window(run.output, 1, run.window.divisor), run.outputs > 1))
    return found


def runs_of(windows: Sequence[Window], number: int = 0) -> list[WindowRun]:
    """Neighbours with equal counts and divisors at one distance; the first one's result has this number."""
    found: list[WindowRun] = []
    for o, window in enumerate(windows):
        last = found[-1] if found else None
        if last and last.window[1:] == window[1:]:
            step = window.first - windows[o - 1].first
            if last.outputs == 1 or last.step == step:
                found[-1] = WindowRun(last.output, last.outputs + 1, last.window, step)
                continue
        found.append(WindowRun(number + o, 1, window, 0))
    return found


def divisors_between(runs: Sequence[WindowRun], begin: int, end: int) -> tuple[tuple[int, int], ...]:
    """(divisor, of how many) of the results from `begin` to `end`, neighbours that are equal together."""
    found: list[tuple[int, int]] = []
    for run in runs:
        count, divisor = min(end, run.output + run.outputs) - max(begin, run.output), run.window.divisor
        if count > 0 and found and found[-1][0] == divisor:
            found[-1] = divisor, found[-1][1] + count
        elif count > 0:
            found.append((divisor, count))
    return tuple(found)
