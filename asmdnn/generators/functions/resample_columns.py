"""How vectors of a row of results are brought from a row of src: from which vectors, and which lanes."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from asmdnn.isa.vectors import lanes_of, vector_class

FURTHER = 2  # registers for what is brought from several vectors


class Pick(NamedTuple):
    """One tap of a vector of results: bytes to the first vector of src, and for each result its distance in elements
    from there; what lies beyond the vector is brought from others."""

    bytes: int
    lanes: tuple[int, ...]

    def vectors(self, lanes: int) -> list[int]:
        """Where vectors of so many lanes begin, in elements from the first one: none begins or ends at an element that
        is not needed, but for the end of the first."""
        found, last = [0], max(self.lanes)
        for place in sorted(self.lanes):
            if place >= found[-1] + lanes:
                found.append(min(place, last + 1 - lanes))
        return found

    def chosen(self, lanes: int) -> list[int]:
        """For each result its lane in these vectors, counted through all of them."""
        begins = self.vectors(lanes)
        numbers = (max(n for n, begin in enumerate(begins) if begin <= place) for place in self.lanes)
        return [n * lanes + place - begins[n] for n, place in zip(numbers, self.lanes, strict=True)]


Column = tuple[Pick, ...]


def first_result(vector: int, results: int, lanes: int) -> int:
    """Of a vector in a row: the last one ends with the row."""
    return min(vector * lanes, max(0, results - lanes))


class Stretch(NamedTuple):
    """`times` vectors of results whose lanes are alike and whose places in src are `bytes` apart, from the first on."""

    first: int
    times: int
    bytes: int


def stretches(columns: Sequence[Column], whole: int) -> list[Stretch]:
    """All vectors in order; only the first `whole` share one with others."""
    found: list[Stretch] = []
    for i, column in enumerate(columns):
        if found and i < whole:
            first, times, step = found[-1]
            moved = {pick.bytes - last.bytes for pick, last in zip(column, columns[i - 1], strict=True)}
            alike = all(pick.lanes == last.lanes for pick, last in zip(column, columns[i - 1], strict=True))
            if alike and len(moved) == 1 and (times == 1 or moved == {step}):
                found[-1] = Stretch(first, times + 1, moved.pop())
                continue
        found.append(Stretch(i, 1, 0))
    return found


def fits_registers(isa: str, columns: Sequence[Column], rows: int, spares: int) -> bool:
    """Whether vectors hold the lanes of every tap, so many rows of src, two results, two masks, further vectors of src,
    and what results need before they are stored."""
    further = FURTHER if has_further(columns, lanes_of(isa)) else 0
    return len(columns[0]) + rows + 4 + further + spares <= vector_class(isa).count


def has_further(columns: Iterable[Column], lanes: int) -> bool:
    """Whether a tap has several vectors of so many lanes."""
    return any(max(pick.lanes) >= lanes for column in columns for pick in column)
