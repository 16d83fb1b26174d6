"""Steps of several calls move parameters by the mean of exactly their gradients, wherever a state was saved or loaded.

The loss is the sum of w * x, so that the gradient by w is x: integers, whose means by 2 and 4 have no rounding.
"""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
SUMS = "sum of gradients of "


def step_of(accumulate: int, names: str = "w") -> dnn.TrainingStep:
    g = dnn.Graph()
    x = g.input("x", (5,))
    parts = [g.apply("ReduceSum", g.parameter(name, (5,), "zeros") * x, keepdims=0) for name in names]
    loss = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return g.train(loss, optim.SGD(1.0), accumulate=accumulate, engine=engine())


def data(number: int) -> Any:
    return np.random.default_rng(number).integers(-9, 9, 5).astype(np.float32) * 12


def moved(step: dnn.TrainingStep, numbers: list[int], name: str = "w") -> Any:
    """What the calls on these data move a parameter by."""
    before = step.parameters[name]
    for number in numbers:
        step(x=data(number))
    return before - step.parameters[name]


def mean(numbers: list[int]) -> Any:
    return np.mean([data(number) for number in numbers], axis=0)


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_first_halves_of_steps_are_no_part_of_a_mean(before: int) -> None:
    step = step_of(4)
    assert not moved(step, [*range(before)]).any()
    found = step.gradients(x=data(7))
    assert np.array_equal(moved(step, [*range(before, 4)]), mean([0, 1, 2, 3]))
    step.apply(found)
    assert step.steps == 2
    assert np.array_equal(moved(step, [4, 5, 6, 7]), mean([4, 5, 6, 7]))


@pytest.mark.parametrize(("first", "second"), [(4, 3), (4, 2), (2, 4), (3, 4), (2, 3)])
def test_a_state_between_steps_goes_on_with_any_number_of_calls(first: int, second: int) -> None:
    one, two = step_of(first), step_of(second)
    moved(one, [0] * (2 * first))
    moved(two, [0])
    two.load_state_dict(one.state_dict())
    assert two.steps == 2
    found = moved(two, [*range(1, second + 1)])
    np.testing.assert_allclose(found, mean([*range(1, second + 1)]), rtol=0, atol=1e-4)  # 3 parts of up to 108
    assert two.steps == 3


@pytest.mark.parametrize(("first", "second"), [(4, 3), (4, 2), (2, 4)])
def test_sums_of_another_number_of_calls_are_refused(first: int, second: int) -> None:
    one, two = step_of(first), step_of(second)
    moved(one, [*range(first), 0])
    moved(two, [2])
    state, before = one.state_dict(), two.state_dict()
    said = f"saved after 1 of {first} calls of a step, which takes {second} here: train with accumulate={first}, or"
    for strict in (True, False):
        with pytest.raises(dnn.InvalidArguments, match=said):
            two.load_state_dict(state, strict)
    assert all(np.array_equal(array, two.state_dict()[name]) for name, array in before.items())
    rest = {name: array for name, array in state.items() if not name.startswith(SUMS)}
    two.load_state_dict(rest, strict=False)
    numbers = [*range(3, second + 2)]
    assert np.array_equal(moved(two, numbers), mean([2, *numbers])), "the way out that the message names"


def test_a_state_within_a_step_goes_on_with_as_many_calls() -> None:
    one, two = step_of(4), step_of(4)
    moved(one, [0, 1, 2, 3, 4])
    one.gradients(x=data(0))
    moved(two, [0, 1])
    two.load_state_dict(one.state_dict())
    assert np.array_equal(moved(two, [5, 6, 7]), mean([4, 5, 6, 7]))
    assert two.steps == 2


def test_sums_of_some_parameters() -> None:
    one, two = step_of(2), step_of(2, "wv")
    moved(one, [0])
    state = one.state_dict()
    with pytest.raises(dnn.InvalidArguments, match="sums of gradients of 1 call, but not 'sum of gradients of v'"):
        two.load_state_dict(state, strict=False)
    moved(two, [1])
    two.load_state_dict(state, strict=False)
    assert np.array_equal(moved(two, [2], "v"), mean([1, 2]))
    for name in ("calls summed up", "calls of a step"):
        with pytest.raises(
            dnn.InvalidArguments, match="has sums of gradients, but not 'calls summed up' and 'calls of"
        ):
            two.load_state_dict({other: array for other, array in state.items() if other != name}, strict=False)
    with pytest.raises(
        dnn.InvalidArguments, match="calls summed up must be less than calls of a step, which is 2, not 2"
    ):
        two.load_state_dict({**state, "calls summed up": np.array(2)}, strict=False)


@pytest.mark.parametrize("name", ["steps taken", "calls made", "calls summed up", "calls of a step"])
def test_names_of_numbers_are_no_names_of_parameters(name: str) -> None:
    """A saved state would have the number in place of the array."""
    g = dnn.Graph()
    loss = g.apply("ReduceSum", g.parameter(name, (3,), 1.0), keepdims=0)
    with pytest.raises(dnn.InvalidArguments, match=f"'{name}' is the name of a number in the states of a step"):
        g.train(loss, optim.SGD(0.1), engine=engine())
