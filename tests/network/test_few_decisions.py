"""Open dims are compared where something depends on it: each comparison is a decision that other shapes must share."""

import numpy as np
import pytest

from asmdnn.memory.traced import Decided, NumberTrace
from asmdnn.network.fusion.scaling import are_of_channels
from asmdnn.network.fusion.views_after_maps import changed
from asmdnn.network.operators.definition import broadcast_dims


def decisions(trace: NumberTrace) -> int:
    return sum(isinstance(step, Decided) for step in trace.steps)


def test_equal_and_fixed_dims_are_broadcast_without_a_decision() -> None:
    trace = NumberTrace()
    n, h = trace.leaf(1), trace.leaf(5)
    found = broadcast_dims((n, 4, h), (1, 4, 1), (n, 1, h), (h,))
    assert found[0] is n and found[1] == 4 and found[2] is h
    assert decisions(trace) == 0
    assert broadcast_dims((n, 4), (h, 4))[0] is h  # n is 1
    assert decisions(trace) > 0


@pytest.mark.parametrize(
    "shapes", [((1, 3), (1, 3)), ((), (2,)), ((1,), (0,)), ((0,), (1,)), ((4, 1), (1, 5)), ((3,), (2, 1)), ((1, 1),)]
)
def test_broadcast_dims_are_those_of_numpy(shapes: tuple[tuple[int, ...], ...]) -> None:
    assert broadcast_dims(*shapes) == np.broadcast_shapes(*shapes)


@pytest.mark.parametrize("shapes", [((2,), (3,)), ((0,), (2,)), ((2, 3), (2,)), ((1, 4), (3, 1), (2, 4))])
def test_what_numpy_does_not_broadcast_is_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="cannot be broadcast"):
        broadcast_dims(*shapes)


def test_views_and_scales_are_told_by_what_differs() -> None:
    trace = NumberTrace()
    n, h, w = (trace.leaf(value) for value in (1, 5, 7))
    assert changed((n, 4, h, w), (n, 4, h * w)) == ((h, w), (h * w,))
    assert changed((n, 4), (n, 4)) == ((), ()) and changed((n, n), (n,)) == ((n,), ())
    assert not are_of_channels((n, 4, h, w), (n, 4, h, w))
    before = decisions(trace)
    assert are_of_channels((n, 4, 1, 1), (n, 4, h, w))
    assert decisions(trace) == before + 1  # whether a row is longer than a pixel


@pytest.mark.parametrize(
    ("shape", "dims", "wanted"),
    [
        ((1, 4, 1, 1), (2, 4, 3, 3), True), ((2, 4, 1, 1), (2, 4, 1, 3), True), ((2, 4, 1, 1), (2, 4, 1, 1), False),
        ((3, 4, 1, 1), (2, 4, 3, 3), False), ((2, 1, 1, 1), (2, 4, 3, 3), False), ((2, 4, 3, 1), (2, 4, 3, 3), False),
        ((4,), (2, 4, 3), False), ((2, 4), (2, 4), False),
    ],
)  # fmt: skip
def test_numbers_for_channels(shape: tuple[int, ...], dims: tuple[int, ...], wanted: bool) -> None:
    assert are_of_channels(shape, dims) is wanted
