"""When a buffer is touched, in phases and in barriers."""

from typing import NamedTuple


class Touches(NamedTuple):
    """The phases that touch a buffer: how many barriers come before each, and which of them one thread runs.

    It does not use `times_of`, from which the layout was made.
    """

    shared: list[int]
    alone: list[tuple[int, int]]

    def add(self, phase: int, barriers: int, is_alone: bool) -> None:
        if is_alone:
            self.alone.append((barriers, phase))
        else:
            self.shared.append(barriers)

    @property
    def is_any(self) -> bool:
        return bool(self.shared or self.alone)

    def done_before(self, other: "Touches") -> bool:
        """Whether there is a barrier between the last touch here and the first one there, or one thread makes both."""
        last = max(self.shared + [barriers for barriers, _ in self.alone])
        first = min(other.shared + [barriers for barriers, _ in other.alone])
        if last != first:
            return last < first
        if last in self.shared or first in other.shared:
            return False
        return max(self.alone) < min(other.alone)
