"""Which elements along an axis a view shows.  As `range`, but that numbers may stand for others (memory/traced.py)."""

from typing import NamedTuple


class AxisSpan(NamedTuple):
    """`size` elements from index `first` on, `step` apart."""

    first: int
    size: int
    step: int = 1

    @property
    def reach(self) -> int:
        """From the first one to the last, both with them."""
        return (self.size - 1) * self.step + 1


def whole(size: int) -> AxisSpan:
    """All of an axis."""
    return AxisSpan(0, size)


def chosen(size: int, part: slice) -> AxisSpan:
    """Those that a slice chooses of an axis, which begins and ends inside of it, or with it where it does not say."""
    step = 1 if part.step is None else part.step
    start = part.start if part.start is not None else 0 if step > 0 else size - 1
    stop = part.stop if part.stop is not None else size if step > 0 else -1
    length, pace = (stop - start, step) if step > 0 else (start - stop, -step)
    return AxisSpan(start, max(0, -(-length // pace)), step)
