"""Training steps made by graph.train: optimizers against their papers' updates in double precision, and bad calls."""

import copy
import pickle
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
ROWS, SIZES, STEPS = 16, (12, 20, 7), 20
Arrays = dict[str, Any]
Update = Callable[[int, Any, Any, Arrays], Any]  # step, parameter, gradient, what is kept: the new parameter


def initial() -> Arrays:
    rng = np.random.default_rng(5)
    found = {f"w{i}": rng.normal(0, 0.4, dims).astype(np.float32) for i, dims in enumerate(pairwise(SIZES))}
    return {**found, "hidden.bias": rng.normal(0, 0.1, SIZES[1]).astype(np.float32)}


def perceptron(g: dnn.Graph) -> tuple[Any, Any]:
    """The loss and the scores."""
    x, t = g.input("x", (ROWS, SIZES[0])), g.input("t", (ROWS,), np.int64)
    p = {name: g.parameter(name, array.shape, array) for name, array in initial().items()}
    scores = g.apply("Tanh", x @ p["w0"] + p["hidden.bias"]) @ p["w1"]
    return g.apply("SoftmaxCrossEntropyLoss", scores, t), scores


def step_of(optimizer: Any, threads: int = 2, **options: Any) -> dnn.TrainingStep:
    g = dnn.Graph("perceptron")
    loss, _ = perceptron(g)
    return g.train(loss, optimizer, engine=engine(threads), **options)


def feeds() -> Arrays:
    rng = np.random.default_rng(8)
    return {"x": rng.standard_normal((ROWS, SIZES[0])).astype(np.float32), "t": np.arange(ROWS) % SIZES[-1]}


def in_f64(update: Update, clip: float = np.inf) -> tuple[list[float], Arrays]:
    """The losses and the parameters after all steps, in numpy."""
    p = {name: array.astype(np.float64) for name, array in initial().items()}
    kept: dict[str, Arrays] = {name: {"m": 0.0, "v": 0.0, "d": 0.0, "name": name} for name in p}
    x, t, losses = feeds()["x"].astype(np.float64), feeds()["t"], []
    for step in range(1, STEPS + 1):
        h = np.tanh(x @ p["w0"] + p["hidden.bias"])
        e = np.exp(h @ p["w1"])
        share = e / e.sum(1, keepdims=True)
        losses.append(float(-np.log(share[np.arange(ROWS), t]).mean()))
        d = (share - np.eye(SIZES[-1])[t]) / ROWS
        inner = d @ p["w1"].T * (1 - h * h)
        found = {"w1": h.T @ d, "w0": x.T @ inner, "hidden.bias": inner.sum(0)}
        norm = np.sqrt(sum((g * g).sum() for g in found.values()))
        p = {name: update(step, w, found[name] * min(1, clip / norm), kept[name]) for name, w in p.items()}
    return losses, p


def sgd(lr: float, momentum: float = 0.0, nesterov: bool = False, decay: float = 0.0) -> Update:
    def update(step: int, w: Any, g: Any, kept: Arrays) -> Any:
        g = g + decay * w
        kept["m"] = momentum * kept["m"] + g
        return w - lr * (g + momentum * kept["m"] if nesterov else kept["m"])

    return update


def adam(lr: Callable[[int], float], decay: float = 0.0, coupled: bool = True) -> Update:
    def update(step: int, w: Any, g: Any, kept: Arrays) -> Any:
        g = g + decay * w if coupled else g
        kept["m"] = 0.9 * kept["m"] + 0.1 * g
        kept["v"] = 0.999 * kept["v"] + 0.001 * g * g
        m, v = kept["m"] / (1 - 0.9**step), kept["v"] / (1 - 0.999**step)
        return w - lr(step) * m / (np.sqrt(v) + 1e-8) - (0 if coupled else lr(step) * decay * w)

    return update


def rmsprop(lr: float, momentum: float) -> Update:
    def update(step: int, w: Any, g: Any, kept: Arrays) -> Any:
        kept["v"] = 0.9 * kept["v"] + 0.1 * g * g
        kept["d"] = momentum * kept["d"] + g / (np.sqrt(kept["v"]) + 1e-3)
        return w - lr * kept["d"]

    return update


def lion(lr: float, decay: float) -> Update:
    def update(step: int, w: Any, g: Any, kept: Arrays) -> Any:
        direction = np.sign(0.9 * kept["m"] + 0.1 * g)
        kept["m"] = 0.99 * kept["m"] + 0.01 * g
        return w - lr * (direction + decay * w)

    return update


CASES: dict[str, tuple[Any, Update]] = {
    "descent": (optim.SGD(0.3), sgd(0.3)),
    "decay": (optim.SGD(0.3, weight_decay=0.1), sgd(0.3, decay=0.1)),
    "momentum": (optim.SGD(0.1, momentum=0.9), sgd(0.1, 0.9)),
    "nesterov": (optim.SGD(0.1, 0.9, nesterov=True, weight_decay=0.05), sgd(0.1, 0.9, nesterov=True, decay=0.05)),
    "adam": (optim.Adam(0.01, weight_decay=0.1), adam(lambda step: 0.01, 0.1)),
    "adamw": (optim.AdamW(0.01, weight_decay=0.5), adam(lambda step: 0.01, 0.5, coupled=False)),
    "adam on a schedule": (
        optim.Adam(optim.linear(0.02, steps=STEPS, warmup=4)),
        adam(lambda step: 0.02 * step / 5 if step < 5 else 0.02 * (1 - (step - 5) / 16)),
    ),
    "rmsprop": (optim.RMSprop(0.01, alpha=0.9, eps=1e-3, momentum=0.5), rmsprop(0.01, 0.5)),
    "lion": (optim.Lion(0.01, weight_decay=0.1), lion(0.01, 0.1)),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_the_definition(name: str) -> None:
    optimizer, update = CASES[name]
    step, given = step_of(optimizer), feeds()
    step.check()
    assert step.is_native
    losses, expected = in_f64(update)
    np.testing.assert_allclose([step(**given) for _ in range(STEPS)], losses, rtol=1e-4)
    assert losses[-1] < 0.9 * losses[0]
    for parameter, array in expected.items():
        np.testing.assert_allclose(step.parameters[parameter], array, rtol=1e-3, atol=1e-4)
    assert step.steps == STEPS


@pytest.mark.parametrize("name", ["momentum", "nesterov", "adam", "adamw"])
def test_steps_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the torch extra")
    made = {
        "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.05),
        "adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.1),
        "adamw": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.5),
    }
    p = {name: torch.tensor(array.astype(np.float64), requires_grad=True) for name, array in initial().items()}
    given, optimizer = feeds(), made[name]([*p.values()])
    step, x, t = step_of(CASES[name][0]), torch.tensor(given["x"].astype(np.float64)), torch.tensor(given["t"])
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(torch.tanh(x @ p["w0"] + p["hidden.bias"]) @ p["w1"], t)
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(step(**given), float(loss.detach()), rtol=1e-4)
    for parameter, tensor in p.items():
        np.testing.assert_allclose(step.parameters[parameter], tensor.detach().numpy(), rtol=1e-3, atol=1e-4)


def test_updates_are_written_by_the_products_that_make_gradients() -> None:
    """No copy of a parameter or moment at the end, and no gradient in memory."""
    for optimizer, prefix in ((optim.SGD(0.3), ""), (optim.SGD(0.1, momentum=0.9), "momentum of ")):
        step = step_of(optimizer)
        lines = step.explain().splitlines()
        assert not [line for line in lines if "reorder" in line and "is written" in line]
        assert sum("MatMul 'gradient" in line and "+ PythonMap" in line for line in lines) == 2
        assert all(f"{prefix}{name} is written" in lines[1] for name in ("w0", "w1"))


def test_gradients_are_clipped_by_their_common_norm() -> None:
    step, given = step_of(optim.SGD(0.3), clip_norm=0.25), feeds()
    losses, expected = in_f64(sgd(0.3), clip=0.25)
    assert losses != in_f64(sgd(0.3))[0]
    np.testing.assert_allclose([step(**given) for _ in range(STEPS)], losses, rtol=1e-4)
    for name, array in expected.items():
        np.testing.assert_allclose(step.parameters[name], array, rtol=1e-3, atol=1e-4)


def test_a_norm_that_is_small_changes_nothing() -> None:
    few, given = [step_of(optim.SGD(0.3), clip_norm=clip) for clip in (None, 1e6)], feeds()
    assert [few[0](**given) for _ in range(5)] == [few[1](**given) for _ in range(5)]


def test_groups() -> None:
    """Biases have a rate of their own, and w0 is frozen; the first pattern that fits decides."""
    groups = {"*.bias": {"lr": 0.05, "momentum": 0.0}, "w0": None, "*": {}}
    step, given = step_of(optim.SGD(0.3, momentum=0.9, groups=groups)), feeds()

    def update(number: int, w: Any, g: Any, kept: Arrays) -> Any:
        rules = {"w0": sgd(0.0), "hidden.bias": sgd(0.05), "w1": sgd(0.3, 0.9)}
        return rules[kept["name"]](number, w, g, kept)

    losses, expected = in_f64(update)
    np.testing.assert_allclose([step(**given) for _ in range(STEPS)], losses, rtol=1e-4)
    for name, array in expected.items():
        np.testing.assert_allclose(step.parameters[name], array, rtol=1e-3, atol=1e-4)
    assert np.array_equal(step.parameters["w0"], initial()["w0"])
    assert [name for name in step.state_dict() if name.startswith("momentum of")] == ["momentum of w1"]


def test_bits_are_those_of_every_number_of_threads() -> None:
    found, given = [], feeds()
    for threads in (1, 2, 3):
        step = step_of(optim.AdamW(0.01), threads, clip_norm=0.5)
        losses = [step(**given) for _ in range(STEPS)]
        found.append((losses, {name: array.tobytes() for name, array in step.state_dict().items()}))
    assert found[0] == found[1] == found[2]


def test_a_step_goes_on_from_what_was_kept(tmp_path: Path) -> None:
    first, given, path = step_of(optim.Adam(0.01)), feeds(), tmp_path / "state.npz"
    for _ in range(3):
        first(**given)
    first.save(path)
    others = [step_of(optim.Adam(0.01)) for _ in range(2)]
    others[0].load(path)
    others[1].load_state_dict(first.state_dict())
    others += [copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))]
    assert {other.steps for other in others} == {3}
    losses = [first(**given) for _ in range(3)]
    for other in others:
        assert [other(**given) for _ in range(3)] == losses
    with np.load(path) as file:
        assert sorted(file.files) == sorted(first.state_dict())


def test_what_both_have_is_taken() -> None:
    first, second, given = step_of(optim.Adam(0.01)), step_of(optim.SGD(0.3, momentum=0.9)), feeds()
    first(**given)
    with pytest.raises(dnn.InvalidArguments, match=r"state and step differ in .*mean of hidden\.bias"):
        second.load_state_dict(first.state_dict())
    second.load_state_dict(first.state_dict(), strict=False)
    assert np.array_equal(second.parameters["w0"], first.parameters["w0"])
    assert second.steps == 1


def test_parameters_are_read_as_copies_and_written_by_assignment() -> None:
    step, given = step_of(optim.SGD(0.3)), feeds()
    before = step.parameters["w0"]
    first = step(**given)
    assert not np.array_equal(step.parameters["w0"], before)
    for name, array in initial().items():
        step.parameters[name] = array
    assert step(**given) == first
    assert dict(step.parameters).keys() == initial().keys()
    with pytest.raises(dnn.InvalidArguments, match=r"parameter 'w0' is float32\[3\]"):
        step.parameters["w0"] = np.zeros(3, np.float32)
    with pytest.raises(dnn.InvalidArguments, match=r"'w9' is no parameter: these are w0, w1, hidden\.bias"):
        step.parameters["w9"]


def test_outputs_are_those_of_before_the_update() -> None:
    g = dnn.Graph()
    loss, scores = perceptron(g)
    step, given = g.train(loss, optim.SGD(0.3), {"scores": scores}, engine=engine()), feeds()
    results = step.run(given)
    wanted = g.compile(scores=scores, engine=engine()).run(given)
    assert list(results) == ["loss", "scores"]
    np.testing.assert_allclose(results["scores"], wanted["scores"], rtol=1e-5, atol=1e-6)
    assert all(difference.fits for found in (step.verify(given), step.verify(**given)) for difference in found)
    assert "AdamW" not in step.explain()
    assert step.page(given, repeats=1).startswith("<!doctype html>")
    assert step.steps == 1


def test_steps_of_one_graph_have_parameters_of_their_own() -> None:
    g = dnn.Graph()
    loss, _ = perceptron(g)
    first, second = (g.train(loss, optim.SGD(0.3), engine=engine()) for _ in range(2))
    given = feeds()
    losses = [first(**given) for _ in range(3)]
    assert [second(**given) for _ in range(3)] == losses


@pytest.mark.parametrize(
    ("init", "dims", "variance"),
    [
        ("he_normal", (400, 100), 2 / 400),
        ("he_uniform", (100, 20, 3, 3), 2 / 180),
        ("glorot_uniform", (400, 100), 2 / 500),
        ("glorot_normal", (64, 32, 3), 2 / 288),
        ("lecun_normal", (400, 100), 1 / 400),
        ("zeros", (3,), 0),
    ],
)
def test_initial_values(init: str, dims: tuple[int, ...], variance: float) -> None:
    """Of a fixed seed, so that the bound holds or not: five deviations of a variance's estimate of 6000 values."""
    found = []
    for seed in (1, 1, 2):
        g = dnn.Graph(seed=seed)
        w = g.parameter("w", dims, init)
        found.append(np.array(g.compile(y=w * 1.0, engine=engine()).run({})["y"]))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2]) == (variance == 0)
    np.testing.assert_allclose(found[0].var(), variance, rtol=5 * np.sqrt(2 / 6000))


def test_schedules() -> None:
    cosine = optim.cosine(1.0, steps=14, warmup=4, least=0.5)
    np.testing.assert_allclose([cosine(k) for k in (1, 4, 5, 10, 15, 99)], [0.2, 0.8, 1, 0.75, 0.5, 0.5])
    assert [optim.constant(2.0, warmup=1)(k) for k in (1, 2, 9)] == [1, 2, 2]
    assert [optim.linear(8.0, steps=4)(k) for k in (1, 2, 3, 4, 5)] == [8, 6, 4, 2, 0]


def trained(optimizer: Any = None, **changed: Any) -> Any:
    g = dnn.Graph()
    loss, scores = perceptron(g)
    known = {"loss": loss, "scores": scores, "frozen": optim.SGD(0.1, groups={"*": None})}
    arguments = {"loss": loss, "optimizer": optimizer or optim.SGD(0.1), "engine": engine(), **changed}
    return g.train(**{name: known.get(x, x) if isinstance(x, str) else x for name, x in arguments.items()})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: trained(loss="scores"), "it must be one number of f32: take a mean or a sum"),
        (lambda: trained(loss=3), "loss must be a Symbol of this graph, not 3"),
        (lambda: trained(optimizer=3), "optimizer must be one of dnn.optim"),
        (lambda: trained(optimizer="frozen"), "groups freezes all parameters"),
        (lambda: trained(optim.SGD(0.1, groups={"*.bais": {}})), "which no parameter matches: w0, w1, hidden.bias"),
        (lambda: trained(clip_norm=0), "clip_norm must be more than 0"),
        (lambda: trained(clip_norm=np.nan), "clip_norm must be a finite number"),
        (lambda: trained(outputs=3), "outputs must be symbols by name"),
        (lambda: trained(outputs={"loss": 3}), "call it something else"),
        (lambda: trained(outputs={"y": 3}), "y must be a Symbol of this graph, not 3"),
        (lambda: optim.SGD(np.inf), "lr must be a finite number from 0 on, not inf"),
        (lambda: optim.SGD(0.1, momentum=1), "momentum must be a finite number from 0 on and less than 1, not 1"),
        (lambda: optim.SGD(0.1, nesterov=True), "nesterov needs a momentum"),
        (lambda: optim.Adam(betas=(0.9,)), "betas must be a tuple of two numbers"),
        (lambda: optim.Adam(groups={"w": {"lrr": 1}}), "'lrr', which is none of the optimizer: did you mean lr?"),
        (lambda: optim.Adam(groups={"w": {"lr": -1}}), "lr must be a finite number from 0 on, not -1"),
        (lambda: optim.cosine(1, steps=3, warmup=3), "steps, with a warmup of 3, must be an integer from 4"),
        (lambda: dnn.Graph(seed=-1), "seed must be an integer from 0 to"),
        (lambda: dnn.Graph().parameter("b", (3,)), "init he_normal needs two dims or more, .*: use 'zeros'"),
        (lambda: dnn.Graph().parameter("b", (3,), "zeroes"), "did you mean zeros?"),
    ],
)
def test_bad_calls(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        make()


def test_a_parameter_that_no_loss_reaches() -> None:
    g = dnn.Graph()
    loss, _ = perceptron(g)
    g.parameter("left", (3, 3))
    with pytest.raises(dnn.InvalidArguments, match=r"does not depend on parameter 'left'.*groups=\{'left': None\}"):
        g.train(loss, optim.SGD(0.1), engine=engine())
    step = g.train(loss, optim.SGD(0.1, groups={"left": None}), engine=engine())
    step(**feeds())
    assert step.parameters["left"].shape == (3, 3)


def test_a_graph_without_parameters() -> None:
    g = dnn.Graph()
    loss = g.apply("ReduceSum", g.input("x", (3,)))
    with pytest.raises(dnn.InvalidArguments, match="the graph has no parameters"):
        g.train(loss, optim.SGD(0.1), engine=engine())


def test_a_step_that_cannot_be_taken_changes_nothing() -> None:
    rates = [0.1, np.nan, 1e300, 0.1]
    step, given = step_of(optim.SGD(lambda number: rates[number - 1])), feeds()
    step(**given)
    before = step.state_dict()
    for message in (r"lr of step 2 must be a finite number", "numbers of step 2 are .*: make the rate smaller"):
        with pytest.raises(dnn.InvalidArguments, match=message):
            step(**given)
        rates.pop(1)
    with pytest.raises(dnn.InvalidArguments, match="a step takes arrays for x, t, not x"):
        step(x=given["x"])
    with pytest.raises(dnn.InvalidArguments, match=r"x is float32\[3\]"):
        step(**{**given, "x": np.zeros(3, np.float32)})
    after = step.state_dict()
    assert all(np.array_equal(array, after[name]) for name, array in before.items())


def test_one_step_at_a_time() -> None:
    """The second one comes while the first one asks for its learning rate."""
    asked, go_on, planned = threading.Event(), threading.Event(), threading.Event()

    def rate(number: int) -> float:
        if planned.is_set():
            asked.set()
            assert go_on.wait(60)
        return 0.1

    step, given = step_of(optim.SGD(rate)), feeds()
    planned.set()
    thread = threading.Thread(target=lambda: step(**given))
    thread.start()
    assert asked.wait(60)
    for call in (lambda: step(**given), lambda: step.parameters["w0"], step.state_dict):
        with pytest.raises(dnn.InvalidArguments, match="another call of it runs"):
            call()
    go_on.set()
    thread.join()
    assert step.steps == 1


def test_files_that_are_no_states(tmp_path: Path) -> None:
    step, path = step_of(optim.SGD(0.1)), tmp_path / "state.npz"
    for content in (b"", b"PK\x03\x04 and so on", b"x" * 1000):
        path.write_bytes(content)
        with pytest.raises(dnn.InvalidArguments, match="is no file that a training step has saved"):
            step.load(path)
    np.savez(path, w0=np.zeros((1000, 100), np.float32))
    with pytest.raises(dnn.InvalidArguments, match="larger than any array of the step"):
        step.load(path)
    np.savez(path, w0=np.array([object()]))
    with pytest.raises(dnn.InvalidArguments, match="is no file that a training step has saved"):
        step.load(path)
    with pytest.raises(dnn.InvalidArguments, match="cannot be written"):
        step.save(tmp_path / "not there" / "state.npz")
    with pytest.raises(dnn.InvalidArguments, match="from 0 to 2"):
        step.load_state_dict({"steps taken": np.array(-1)}, strict=False)
