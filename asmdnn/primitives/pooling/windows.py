"""The windows of one axis: what of each lies inside src, and runs of neighbours that are alike."""

from collections.abc import Sequence
from typing import NamedTuple


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


def axis_windows(
    size: int, outputs: int, kernel: int, stride: int, dilation: int, before: int, counted: int | None
) -> tuple[Window, ...]:
    """Of outputs whose windows begin at o * stride - before; positions count up to index `counted`, or inside src."""
    found = []
    for o in range(outputs):
        begin = o * stride - before
        outside = min(kernel, max(0, -(begin // dilation)))
        inside = max(outside, min(kernel, -((begin - size) // dilation)))
        count = inside - outside
        divisor = count if counted is None else min(kernel, max(0, -((begin - counted) // dilation)))
        found.append(Window(begin + outside * dilation, count, divisor))
    return tuple(found)


def adaptive_windows(size: int, outputs: int) -> tuple[Window, ...]:
    """Of outputs that share an axis equally."""
    edges = ((o * size // outputs, -(-(o + 1) * size // outputs)) for o in range(outputs))
    return tuple(Window(begin, end - begin, end - begin) for begin, end in edges)


def runs_of(windows: Sequence[Window]) -> list[WindowRun]:
    """Neighbours with equal counts and divisors at one distance."""
    found: list[WindowRun] = []
    for o, window in enumerate(windows):
        last = found[-1] if found else None
        if last and last.window[1:] == window[1:]:
            step = window.first - windows[o - 1].first
            if last.outputs == 1 or last.step == step:
                found[-1] = WindowRun(last.output, last.outputs + 1, last.window, step)
                continue
        found.append(WindowRun(o, 1, window, 0))
    return found
