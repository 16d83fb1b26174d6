"""Runs of k in a walk over taps, whose numbers are data."""

import pytest

from asmdnn.isa.dot_runs import RUN_GROUPS, ends_of_walk
from tests.support.drawing import RANDOM


def ends_one_by_one(taps: list[tuple[int, int]]) -> list[int]:
    """The same, tap after tap, as kernels count them."""
    found, room = [], RUN_GROUPS
    for count, groups in taps:
        ends = 0
        for _ in range(count):
            room -= groups
            if room < 0:
                ends, room = ends + 1, RUN_GROUPS - groups
        found.append(ends)
    return found


@pytest.mark.parametrize(("taps", "ends"), [
    ([(8, 8)], [0]), ([(9, 8)], [1]), ([(16, 8)], [1]), ([(17, 8)], [2]), ([(0, 3), (7, 8), (3, 4)], [0, 0, 1]),
    ([(1, 1), (1, RUN_GROUPS)], [0, 1]), ([(3, 33)], [2]), ([], []),
])  # fmt: skip
def test_ends(taps: list[tuple[int, int]], ends: list[int]) -> None:
    assert ends_of_walk(taps) == ends == ends_one_by_one(taps)


def test_ends_of_any_walk() -> None:
    for _ in range(500):
        size = RANDOM.integers(0, 6)
        counts, groups = RANDOM.integers(0, 60, size), RANDOM.integers(1, RUN_GROUPS, size, endpoint=True)
        taps = list(zip(counts.tolist(), groups.tolist(), strict=True))
        assert ends_of_walk(taps) == ends_one_by_one(taps)
