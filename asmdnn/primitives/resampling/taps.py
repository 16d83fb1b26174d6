"""Which elements of src each result is made of along one axis, and with what weights."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from asmdnn.planning.phase import Int64
from asmdnn.records import dataclass

CUBIC: Final = -0.75  # Keys' coefficient, as torch and ONNX have it by default
MOST_PERIOD: Final = 16
MOST_TOGETHER: Final = 8
RESERVED: Final = 4  # registers: a result, what is loaded, masks; f16 is converted in one more
Numbers = npt.NDArray[np.float64]
Counts = npt.NDArray[np.intp]


class ResampleTap(NamedTuple):
    """Of one result: indices into src, clamped to it, and the weight of each."""

    indices: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ResampleTaps:
    """Of every result along an axis: indices into src, and weights, [result, tap]."""

    indices: Int64
    weights: Numbers

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, result: int) -> ResampleTap:
        return ResampleTap(tuple(self.indices[result].tolist()), tuple(self.weights[result].tolist()))

    @property
    def each(self) -> int:
        """Taps of a result."""
        return int(self.indices.shape[1])

    def steps(self) -> tuple[int, int] | None:
        """(the first one, their distance) where each result is one element, at one distance, 0 if there is one result;
        else None."""
        if self.each != 1 or (self.weights != 1).any() or not len(self):
            return None
        first, *others = np.diff(self.indices[:, 0], prepend=0).tolist()
        return (first, max(others, default=0)) if len({*others}) <= 1 else None

    @property
    def patterns(self) -> Counts:
        """For each result a number: that of how its taps lie to one another."""
        numbers = np.zeros(len(self), np.intp)
        for column in (self.indices[:, 1:] - self.indices[:, :1]).T:
            both = numbers * (np.ptp(column) + 1) + column - column.min()
            _, numbers = np.unique(both, return_inverse=True)
        return numbers


class ResampleRun(NamedTuple):
    """`groups` of `together` neighbouring results from `output` on, `step` apart: results of a group are made of the
    same elements, those of all groups lie in one pattern, and move by `moves` from group to group."""

    output: int
    groups: int
    step: int
    moves: int
    together: int


def over(results: Numbers, scale: float, size: int, made: int) -> Numbers:
    """results / scale; of the quotient of sizes as a fraction of them.  So places that lie in the middle between two
    elements do, and which one is the nearest depends on the rounding alone."""
    return results * size / made if scale == made / size else results / scale


COORDINATES: Final[Mapping[str, Callable[[Numbers, float, int, int], Numbers]]] = {
    "half_pixel": lambda o, scale, size, made: over(o + 0.5, scale, size, made) - 0.5,
    "align_corners": lambda o, scale, size, made: o * (size - 1) / (made - 1) if made > 1 else 0 * o,
    "asymmetric": lambda o, scale, size, made: over(o, scale, size, made),
}
ROUNDINGS: Final[Mapping[str, Callable[[Numbers], Any]]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def taps_of(alg: str, size: int, made: int, scale: float, coordinates: str, rounding: str) -> ResampleTaps:
    """Of every result along an axis of `size` elements."""
    results = np.arange(made, dtype=np.float64)
    if (size, scale) == (made, 1.0):
        return single(results, made)
    places = COORDINATES[coordinates](results, scale, size, made)
    if alg == "nearest":
        return single(ROUNDINGS[rounding](places), size)
    return (linear if alg == "linear" else cubic)(places, size)


def single(places: Numbers, size: int) -> ResampleTaps:
    """Of one element each, the nearest of src."""
    return ResampleTaps(clamped(places, size)[:, None], np.ones((len(places), 1)))


def clamped(places: Numbers, size: int) -> Int64:
    return np.clip(places, 0, size - 1).astype(np.int64)


def linear(places: Numbers, size: int) -> ResampleTaps:
    """Between two neighbours."""
    x = np.clip(places, 0.0, size - 1.0)
    first = np.minimum(np.floor(x), max(0, size - 2))
    return ResampleTaps(
        np.stack([clamped(first, size), clamped(first + 1, size)], axis=1),
        np.stack([1 - (x - first), x - first], axis=1),
    )


def cubic(places: Numbers, size: int) -> ResampleTaps:
    """By four, whose weights are Keys' (IEEE ASSP 29, 1981)."""
    first = np.floor(places)
    t = places - first

    def near(d: Numbers) -> Numbers:
        return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1

    def far(d: Numbers) -> Numbers:
        return CUBIC * (((d - 5) * d + 8) * d - 4)

    indices = np.stack([clamped(first + i, size) for i in range(-1, 3)], axis=1)
    return ResampleTaps(indices, np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)], axis=1))


def registers_of(taps: Sequence[ResampleTaps]) -> int:
    """A weight for each of the outer taps, and sums for each of the inner ones."""
    *outer, inner = [each.each for each in taps] or [1]
    return prod(outer) + inner


def pattern(tap: ResampleTap) -> tuple[int, ...]:
    """Where the taps lie, from the first one."""
    return tuple(index - tap.indices[0] for index in tap.indices)


def runs_of(taps: ResampleTaps) -> list[ResampleRun]:
    """All results in runs, at the distance of groups with which there are fewest."""
    first, together = groups_of(taps)
    groups = np.stack([first, taps.indices[first, 0], together, taps.patterns[first]], axis=1)
    best = ends_at(groups, 1, len(groups) + 1)
    assert best is not None, "each group is a run at most"
    for distance in range(2, min(MOST_PERIOD, len(groups)) + 1):
        best = ends_at(groups, distance, sum(map(len, best))) or best
    every = (runs_ending(groups[residue :: len(best)], ends) for residue, ends in enumerate(best))
    return [run for runs in every for run in runs]


def groups_of(taps: ResampleTaps) -> tuple[Counts, Counts]:
    """(first, how many) neighbours that are made of the same elements, at most MOST_TOGETHER."""
    differs = (taps.indices[1:] != taps.indices[:-1]).any(axis=1)
    starts = np.concatenate([[0], np.flatnonzero(differs) + 1])
    counts = np.diff(np.append(starts, len(taps)))
    pieces = -(-counts // MOST_TOGETHER)
    piece = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    done = MOST_TOGETHER * piece
    return np.repeat(starts, pieces) + done, np.minimum(np.repeat(counts, pieces) - done, MOST_TOGETHER)


def ends_at(groups: Int64, distance: int, most: int) -> list[Int64] | None:
    """`run_ends` of every `distance`-th group, from the first ones on; None if there are `most` runs or more."""
    found: list[Int64] = []
    for residue in range(distance):
        ends = run_ends(groups[residue::distance], most)
        if ends is None:
            return None
        found.append(ends)
        most -= len(ends)
    return found


def runs_ending(some: Int64, ends: Int64) -> list[ResampleRun]:
    """The runs of groups whose last ones these are."""
    begins = np.append(0, ends[:-1] + 1)
    second = np.minimum(begins + 1, ends)  # of a run of one group, that group
    steps = (some[second] - some[begins])[:, :2]
    runs = np.column_stack([some[begins, 0], ends - begins + 1, steps, some[begins, 2]])
    return [ResampleRun(*run) for run in runs.tolist()]


def run_ends(some: Int64, most: int) -> Int64 | None:
    """The last one of each run of groups of as many results, in one pattern, at equal distances, each run as long as it
    can be; None if there are `most` or more.  A group: [first result, its first element, results, pattern]."""
    between = np.diff(some, axis=0)
    alike = (between[:, 2:] == 0).all(axis=1)
    changes = np.append(np.flatnonzero((between[1:] != between[:-1]).any(axis=1)) + 1, len(between))
    reach = changes[np.searchsorted(changes, np.arange(len(between)), side="right")]  # of equal differences from here
    last = [*np.where(alike, reach, np.arange(len(between))).tolist(), len(some) - 1]
    groups, begin, count = len(some), 0, 0
    is_end = bytearray(groups)
    while begin < groups:
        begin = last[begin] + 1
        is_end[begin - 1] = 1
        count += 1
        if count >= most:
            return None
    return np.flatnonzero(np.frombuffer(is_end, np.uint8))
