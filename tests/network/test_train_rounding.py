"""Steps whose parameters are numbers of bf16: what they become, that small changes add up, bits, halves, files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from asmdnn.definitions.random_numbers import mixed
from asmdnn.definitions.stochastic_rounding import stochastically_rounded
from asmdnn.network.training.rounding import nearest
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
OPTIONS = {"precision": "bf16", "rounding": "stochastic"}
SEED, ROWS = 3, 16


def step_of(threads: int = 1, optimizer: Any = None, **options: Any) -> dnn.TrainingStep:
    g = dnn.Graph("rounded", seed=SEED)
    x, t = g.input("x", (ROWS, 6)), g.input("t", (ROWS,), np.int64)
    h = g.apply("Relu", x @ g.parameter("a", (6, 9)) + g.parameter("b", (9,), "zeros"))
    loss = g.apply("SoftmaxCrossEntropyLoss", h @ g.parameter("c", (9, 5)), t)
    chosen = optimizer or optim.SGD(0.05, momentum=0.9)
    return g.train(loss, chosen, engine=engine(threads), **{**OPTIONS, **options})


def feeds() -> dict[str, Any]:
    x = np.random.default_rng(4).standard_normal((ROWS, 6)).astype(np.float32)
    return {"x": x, "t": np.arange(ROWS) % 5}


def is_bf16(array: Any) -> bool:
    return not (array.view(np.uint32) & 0xFFFF).any()


def test_parameters_are_what_the_definition_makes_of_the_update() -> None:
    """Momentum stays f32, so that it says what each parameter would have become."""
    step, rate, first = step_of(), np.float32(0.05), {"a": 0, "b": 56, "c": 68}
    for number in (1, 2, 3):
        before = dict(step.parameters)
        assert all(map(is_bf16, before.values()))
        step(**feeds())
        state = step.state_dict()
        for name, value in before.items():
            moved = value - rate * state[f"momentum of {name}"]
            wanted = stochastically_rounded(moved, mixed(SEED, number, -1), first[name])
            assert np.array_equal(state[name], wanted), name
    step.check()
    assert step.is_native


def test_every_value_is_that_of_its_definition() -> None:
    differences = step_of(ema=0.9, clip_norm=0.1).verify(feeds())
    assert len(differences) > 20
    assert all(difference.fits for difference in differences)


def test_changes_that_bf16_does_not_show_add_up() -> None:
    """A thousand steps that each move a parameter by a sixteenth of the way to the next number: to the nearest, none
    would move it.  By Hoeffding's inequality their mean is further off than 0.06 with a chance below 1e-6."""
    g = dnn.Graph("small", seed=1)
    w = g.parameter("w", (4096,), np.ones(4096, np.float32))
    loss = g.apply("ReduceSum", w * g.input("x", (4096,)), keepdims=0)
    step = g.train(loss, optim.SGD(2.0**-11), engine=engine(), **OPTIONS)
    ones = -np.ones(4096, np.float32)
    for _ in range(64):
        step(x=ones)
    moved = (step.parameters["w"].mean(dtype=np.float64) - 1) * 2**7
    assert abs(moved - 4) < 0.06


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_bits_are_those_of_every_number_of_threads(threads: int) -> None:
    one, other = step_of(), step_of(threads)
    assert [one(**feeds()) for _ in range(3)] == [other(**feeds()) for _ in range(3)]
    assert all(np.array_equal(array, other.state_dict()[name]) for name, array in one.state_dict().items())


def test_halves_and_files_go_on_with_the_same_bits(tmp_path: Path) -> None:
    one, two = step_of(), step_of()
    one(**feeds())
    two.apply(two.gradients(**feeds()))
    two.save(tmp_path / "state.npz")
    three = step_of()
    three.load(tmp_path / "state.npz")
    for step in (one, three):
        step(**feeds())
    assert all(np.array_equal(array, three.parameters[name]) for name, array in one.parameters.items())


def test_calls_that_accumulate_round_once() -> None:
    step = step_of(accumulate=2)
    before = dict(step.parameters)
    step(**feeds())
    assert all(np.array_equal(array, before[name]) for name, array in step.parameters.items())
    step(**feeds())
    assert all(map(is_bf16, step.parameters.values()))
    assert not np.array_equal(step.parameters["a"], before["a"])


def test_frozen_parameters_stay_f32() -> None:
    step = step_of(optimizer=optim.SGD(0.1, groups={"c": None}))
    assert not is_bf16(step.parameters["c"]) and is_bf16(step.parameters["a"])


def test_nearest() -> None:
    """Ties go to even numbers; NaN and infinity stay."""
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x7F800001, 0xFF800000, 0x3F80FFFF], np.uint32)
    wanted = np.array([0x3F800000, 0x3F820000, 0x3F810000, 0x7F800001, 0xFF800000, 0x3F810000], np.uint32)
    assert np.array_equal(nearest(bits.view(np.float32)), wanted.view(np.float32), equal_nan=True)
