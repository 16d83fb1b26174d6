"""Training steps bound to arrays: those of `run`, bit for bit; and states that are parameters."""

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from asmdnn.runtime.execution import NativeCall
from tests.network.nets import engine
from tests.network.test_train import ROWS, feeds, perceptron

pytestmark = pytest.mark.isa("avx2")
STEPS = 5


def with_scores(optimizer: Any = None, dropout: bool = False, **options: Any) -> dnn.TrainingStep:
    """A step with an output; dropout draws in each call."""
    g = dnn.Graph("bound", seed=3)
    loss, scores = perceptron(g)
    if dropout:
        drawn = g.apply("Dropout", scores, 0.5, np.array(True))
        loss = loss + g.apply("ReduceMean", drawn * drawn, keepdims=0)
    found = optim.AdamW(optim.linear(0.02, steps=9, warmup=3)) if optimizer is None else optimizer
    return g.train(loss, found, outputs={"scores": scores}, engine=engine(2), **options)


def arrays() -> dict[str, Any]:
    given = feeds()
    return {"x": given["x"], "t": given["t"].astype(np.int64), "scores": np.empty((ROWS, 7), np.float32)}


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {}, "averages": {"ema": 0.9}, "in parts": {"accumulate": 3}, "checked": {"check_finite": True},
    "dropout": {"dropout": True}, "dropout in parts": {"dropout": True, "accumulate": 2, "check_finite": True},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_bits_are_those_of_run(name: str) -> None:
    """Also where calls of both kinds come in turns, and where the arrays have other numbers than before."""
    one, other, given = with_scores(**OPTIONS[name]), with_scores(**OPTIONS[name]), arrays()
    take = one.bind(**given)
    for i in range(STEPS):
        given["x"] *= np.float32(1.1)
        if i == 2:
            one.run(inputs_of(given))
        loss = take()
        wanted = [other.run(inputs_of(given)) for _ in range(2 if i == 2 else 1)][-1]
        assert loss == float(wanted["loss"].item())
        assert np.array_equal(given["scores"], wanted["scores"])
    assert one._counts == other._counts
    left = other.state_dict()
    assert all(np.array_equal(array, left[key]) for key, array in one.state_dict().items())


def inputs_of(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in "xt"}


def test_a_step_that_is_refused_changes_nothing() -> None:
    step, given = with_scores(check_finite=True), arrays()
    take, before = step.bind(**given), step.state_dict()
    given["x"][0, 0] = np.inf
    with pytest.raises(dnn.InvalidArguments, match="the loss or a gradient of step 1 is not finite"):
        take()
    assert all(np.array_equal(array, before[key]) for key, array in step.state_dict().items())
    given["x"][0, 0] = 0
    assert np.isfinite(take()) and step.steps == 1


@pytest.mark.parametrize("way", ["run", "bind", "apply"])
def test_ctrl_c_waits_until_a_step_is_counted(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a step would be taken that nobody counts, and the next one have its learning rate and its draws again."""
    step, other, given = with_scores(), with_scores(), arrays()
    ready, call = with_scores().gradients(**inputs_of(given)), NativeCall.__call__

    def interrupted(self: NativeCall) -> None:
        call(self)
        signal.raise_signal(signal.SIGINT)

    take = {
        "run": lambda one: one.run(inputs_of(given)),
        "bind": lambda one: one.bind(**given)(),
        "apply": lambda one: one.apply(ready),
    }[way]
    for one in (step, other):
        take(one)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes that run tests may have none
    try:
        with monkeypatch.context() as patch:
            patch.setattr(NativeCall, "__call__", interrupted)
            with pytest.raises(KeyboardInterrupt):
                take(step)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    for one in (other, other, step):
        take(one)
    left = other.state_dict()
    assert step.steps == other.steps == 3
    assert all(np.array_equal(array, left[key]) for key, array in step.state_dict().items())


def test_numbers_that_f32_does_not_hold() -> None:
    step, given = with_scores(optim.SGD(lambda k: 1e-3 if k < 2 else 1e300)), arrays()
    take = step.bind(**given)
    take()
    with pytest.raises(dnn.InvalidArguments, match="of step 2"):
        take()
    assert step.steps == 1


class Counted(optim.Optimizer):
    """Whose numbers depend on the step as `made` says."""

    def __init__(self, made: Callable[[int], tuple[Any, ...]]) -> None:
        self.lr, self.groups, self.made = 0.1, {}, made

    def numbers(self, step: int) -> tuple[Any, ...]:
        return self.made(step)

    def settings(self, names: Any) -> dict[str, Any]:
        return dict.fromkeys(names, self)

    def moved(self, p: Any) -> Any:
        return p.value - p.numbers[0] * p.gradient


WRONG_NUMBERS: dict[str, tuple[Any, ...]] = {
    "NaN": (float("nan"),), "infinite": (-float("inf"),), "too large for f32": (1e39,), "too large": (10**400,),
    "text": ("much",), "nothing": (None,), "complex": (1j,), "fewer": (), "more": (0.1, 0.2),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_NUMBERS)
def test_numbers_of_an_optimizer_that_are_none(name: str) -> None:
    """Kernels read as many as the first step had, wherever they come from, so others must not get there."""
    step, given = with_scores(Counted(lambda k: (0.1,) if k < 2 else WRONG_NUMBERS[name])), inputs_of(arrays())
    step.run(given)
    before = step.state_dict()
    with pytest.raises(dnn.InvalidArguments, match=r"the optimizer.* step 2") as error:
        step.run(given)
    assert len(str(error.value).splitlines()) == 1 and step.steps == 1
    assert all(np.array_equal(array, before[key]) for key, array in step.state_dict().items())


def test_numbers_of_the_next_step_are_those_of_the_call() -> None:
    """What looks at the next step has numbers of its own, which steps do not write over."""
    step, given = with_scores(optim.SGD(lambda k: 1 / k)), inputs_of(arrays())
    found = step._next(step._nets.main, given)
    rates = [float(found["numbers of the step"][0])]
    step.run(given)
    assert rates == [float(found["numbers of the step"][0])] == [1.0]


BAD: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "missing": (lambda a: {name: a[name] for name in "xt"}, "arrays must be x, t, scores"),
    "unknown": (lambda a: {**a, "y": a["x"]}, "arrays must be x, t, scores"),
    "dims": (lambda a: {**a, "x": a["x"][:1]}, "x"),
    "type": (lambda a: {**a, "x": a["x"].astype(np.float64)}, "x"),
    "not dense": (lambda a: {**a, "x": np.asfortranarray(a["x"])}, "x must be dense, aligned"),
    "no array": (lambda a: {**a, "x": None}, "x"),
    "shared": (
        lambda a: {**a, "scores": a["x"].reshape(-1)[: ROWS * 7].reshape(ROWS, 7)}, "scores shares memory with x"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_arrays_that_do_not_fit(name: str) -> None:
    change, message = BAD[name]
    with pytest.raises(dnn.InvalidArguments, match=message) as error:
        with_scores().bind(**change(arrays()))
    assert len(str(error.value).splitlines()) == 1


def test_outputs_that_are_one_value() -> None:
    g = dnn.Graph("twice")
    loss, scores = perceptron(g)
    step = g.train(loss, optim.SGD(0.1), outputs={"a": scores, "b": scores}, engine=engine(1))
    with pytest.raises(dnn.InvalidArguments, match="a step is bound if it is one native call"):
        step.bind(**{name: arrays()[name] for name in "xt"}, a=arrays()["scores"], b=arrays()["scores"])


def trained(make: Callable[[dnn.Graph, np.ndarray], Any]) -> dnn.TrainingStep:
    """Of a matrix, which `make` puts into a graph."""
    g, initial = dnn.Graph("one"), np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
    y = g.input("x", (6, 4)) @ make(g, initial)
    return g.train(g.apply("ReduceMean", y * y, keepdims=0), optim.Adam(0.01), engine=engine(1))


def test_states_that_are_parameters() -> None:
    """As `parameter` makes them; other states are none."""
    state = trained(lambda g, initial: g.state("w", (4, 3), initial=initial, trainable=True))
    parameter = trained(lambda g, initial: g.parameter("w", (4, 3), initial))
    x = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float32)
    before = state.parameters["w"]
    assert [state(x=x) for _ in range(3)] == [parameter(x=x) for _ in range(3)]
    assert np.array_equal(state.parameters["w"], parameter.parameters["w"])
    assert not np.array_equal(state.parameters["w"], before)
    g = dnn.Graph("states")
    assert g.state("kept", (2,)).name not in g.parameters and g.state("p", (2,), trainable=True).name in g.parameters


def test_bad_states() -> None:
    g = dnn.Graph("bad")
    with pytest.raises(dnn.InvalidArguments, match="trainable must be True or False, not 1"):
        g.state("w", (4, 3), trainable=1)  # type: ignore[arg-type]
    with pytest.raises(dnn.InvalidArguments, match="initial of state"):
        g.state("w", (4, 3), initial=np.zeros(5), trainable=True)
    assert not g.parameters and g.state("w", (4, 3), trainable=True).name == "w"
