"""Which elements of src each result is made of along one axis, and with what weights."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor
from typing import Final, NamedTuple

CUBIC: Final = -0.75  # Keys' coefficient, as torch and ONNX have it by default
MOST_PERIOD: Final = 16
MOST_TOGETHER: Final = 8


class ResampleTap(NamedTuple):
    """Indices into src, clamped to it, and the weight of each."""

    indices: tuple[int, ...]
    weights: tuple[float, ...]


class ResampleRun(NamedTuple):
    """`groups` of `together` neighbouring results from `output` on, `step` apart: results of a group are made of the
    same elements, those of all groups lie in one pattern, and move by `moves` from group to group."""

    output: int
    groups: int
    step: int
    moves: int
    together: int


COORDINATES: Final[Mapping[str, Callable[[int, float, int, int], float]]] = {
    "half_pixel": lambda o, scale, size, made: (o + 0.5) / scale - 0.5,
    "align_corners": lambda o, scale, size, made: o * (size - 1) / (made - 1) if made > 1 else 0.0,
    "asymmetric": lambda o, scale, size, made: o / scale,
}
ROUNDINGS: Final[Mapping[str, Callable[[float], int]]] = {
    "round_prefer_floor": lambda x: ceil(x - 0.5),
    "round_prefer_ceil": lambda x: floor(x + 0.5),
    "floor": floor,
    "ceil": ceil,
}


def taps_of(alg: str, size: int, made: int, scale: float, coordinates: str, rounding: str) -> list[ResampleTap]:
    """Of every result along an axis of `size` elements."""
    if (size, scale) == (made, 1.0):
        return [ResampleTap((o,), (1.0,)) for o in range(made)]
    places = (COORDINATES[coordinates](o, scale, size, made) for o in range(made))
    if alg == "nearest":
        return [ResampleTap((clamped(ROUNDINGS[rounding](x), size),), (1.0,)) for x in places]
    return [(linear if alg == "linear" else cubic)(x, size) for x in places]


def clamped(index: int, size: int) -> int:
    return min(max(index, 0), size - 1)


def linear(x: float, size: int) -> ResampleTap:
    """Between two neighbours."""
    x = min(max(x, 0.0), size - 1.0)
    first = min(floor(x), max(0, size - 2))
    return ResampleTap((first, clamped(first + 1, size)), (1 - (x - first), x - first))


def cubic(x: float, size: int) -> ResampleTap:
    """By four, whose weights are Keys' (IEEE ASSP 29, 1981)."""
    first = floor(x)
    t = x - first

    def near(d: float) -> float:
        return ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1

    def far(d: float) -> float:
        return CUBIC * (((d - 5) * d + 8) * d - 4)

    indices = tuple(clamped(first + i, size) for i in range(-1, 3))
    return ResampleTap(indices, (far(t + 1), near(t), near(1 - t), far(2 - t)))


def pattern(tap: ResampleTap) -> tuple[int, ...]:
    """Where the taps lie, from the first one."""
    return tuple(index - tap.indices[0] for index in tap.indices)


def runs_of(taps: Sequence[ResampleTap]) -> list[ResampleRun]:
    """All results in runs, at the distance of groups with which there are fewest."""
    groups, patterns = groups_of(taps), [pattern(tap) for tap in taps]
    best = at_distance(taps, patterns, groups, 1, len(groups) + 1)
    assert best is not None, "each group is a run at most"
    for distance in range(2, min(MOST_PERIOD, len(groups)) + 1):
        best = at_distance(taps, patterns, groups, distance, len(best)) or best
    return best


def groups_of(taps: Sequence[ResampleTap]) -> list[tuple[int, int]]:
    """(first, how many) neighbours that are made of the same elements, at most MOST_TOGETHER."""
    found: list[tuple[int, int]] = []
    for o, tap in enumerate(taps):
        if found and tap.indices == taps[found[-1][0]].indices and found[-1][1] < MOST_TOGETHER:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((o, 1))
    return found


def at_distance(
    taps: Sequence[ResampleTap],
    patterns: Sequence[tuple[int, ...]],
    groups: Sequence[tuple[int, int]],
    distance: int,
    most: int,
) -> list[ResampleRun] | None:
    """Runs of every `distance`-th group; None if there are `most` or more."""
    found: list[ResampleRun] = []
    for residue in range(distance):
        run: ResampleRun | None = None
        for first, together in groups[residue::distance]:
            if run is not None and run.together == together and patterns[first] == patterns[run.output]:
                last = run.output + (run.groups - 1) * run.step
                step, moves = first - last, taps[first].indices[0] - taps[last].indices[0]
                if run.groups == 1 or (run.step, run.moves) == (step, moves):
                    run = ResampleRun(run.output, run.groups + 1, step, moves, together)
                    continue
            if run is not None:
                found.append(run)
                if len(found) + 1 >= most:
                    return None
            run = ResampleRun(first, 1, 0, 0, together)
        if run is not None:
            found.append(run)
    return found if len(found) < most else None
