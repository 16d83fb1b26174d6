"""Training steps with batch norm and dropout, and what they can do beside: sums of calls, averages, halves."""

import copy
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import optim
from asmdnn.definitions.dropout import kept
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
IMAGES, MOMENTUM = (8, 3, 6, 6), 0.8
Arrays = dict[str, Any]


def digits(seed: int = 0, ratio: float = 0.25) -> tuple[dnn.Graph, Any, Any]:
    """A graph of a convolution, a batch norm in training, and a dropout; its loss and scores."""
    g = dnn.Graph("digits", seed=seed)
    x, t = g.input("x", IMAGES), g.input("t", IMAGES[:1], np.int64)
    scale, shift = g.parameter("scale", (6,), "ones"), g.parameter("shift", (6,), "zeros")
    mean, variance = g.state("mean", (6,)), g.state("variance", (6,), initial=1)
    h = g.apply("Conv", x, g.parameter("w", (6, 3, 3, 3)), pads=(1, 1, 1, 1))
    more = {"results": 3, "training_mode": 1, "momentum": MOMENTUM}
    h, *now = g.apply("BatchNormalization", h, scale, shift, mean, variance, **more)
    for state, value in zip((mean, variance), now, strict=True):
        g.update(state, value)
    h = g.apply("Flatten", g.apply("MaxPool", g.apply("Relu", h), kernel_shape=(2, 2), strides=(2, 2)))
    h = g.apply("Dropout", h, ratio, np.array(True)) if ratio else h
    scores = h @ g.parameter("head", (54, 5))
    return g, g.apply("SoftmaxCrossEntropyLoss", scores, t), scores


def step_of(threads: int = 2, ratio: float = 0.25, **options: Any) -> dnn.TrainingStep:
    g, loss, scores = digits(ratio=ratio)
    return g.train(loss, optim.Adam(0.01), {"scores": scores}, engine=engine(threads), **options)


def feeds(number: int = 0) -> Arrays:
    rng = np.random.default_rng(number)
    return {"x": rng.standard_normal(IMAGES).astype(np.float32), "t": rng.integers(0, 5, IMAGES[0])}


def same(first: dnn.TrainingStep, second: dnn.TrainingStep) -> bool:
    one, other = first.state_dict(), second.state_dict()
    return one.keys() == other.keys() and all(np.array_equal(array, other[name]) for name, array in one.items())


def test_every_value_is_that_of_its_definition() -> None:
    """Gradients and updates, of batch norm and dropout, too."""
    step = step_of(clip_norm=0.1, ema=0.9, check_finite=True)
    step.check()
    assert step.is_native
    step(**feeds())
    differences = step.verify(feeds(1))
    assert len(differences) > 50
    assert all(difference.fits for difference in differences)
    assert step.steps == 1


def test_running_statistics_are_those_of_the_data() -> None:
    step, given = step_of(ratio=0), feeds()
    w = step.parameters["w"].astype(np.float64)
    step(**given)
    x = np.pad(given["x"].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    made = sum(
        np.einsum("nchw,oc->nohw", x[:, :, i : i + 6, j : j + 6], w[:, :, i, j]) for i in range(3) for j in range(3)
    )
    state = step.state_dict()
    np.testing.assert_allclose(state["mean"], (1 - MOMENTUM) * made.mean((0, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(state["variance"], MOMENTUM + (1 - MOMENTUM) * made.var((0, 2, 3)), rtol=1e-5)


def test_dropout_draws_anew_for_each_step_and_place() -> None:
    g = dnn.Graph(seed=3)
    w = g.parameter("w", (1, 1000), "ones")
    once, twice = (g.apply("Dropout", w, 0.25, np.array(True)) for _ in range(2))
    loss = g.apply("ReduceSum", once, keepdims=0) + g.apply("ReduceSum", twice, keepdims=0)
    step = g.train(loss, optim.SGD(0.0), {"once": once, "twice": twice}, engine=engine())
    found = [step.run({}) for _ in range(2)]
    drawn = [results[name] != 0 for results in found for name in ("once", "twice")]
    assert len({mask.tobytes() for mask in drawn}) == 4
    assert all(0.65 < mask.mean() < 0.85 for mask in drawn)  # 7 deviations of 1000 draws
    factor = np.float32(1) / np.float32(0.75)
    assert {*np.unique(found[0]["once"]).tolist()} == {0.0, float(factor)}
    assert any(np.array_equal(drawn[0].ravel(), kept(1000, 0.25, int(seed[0]))) for seed in seeds_of(step, 0))


def seeds_of(step: dnn.TrainingStep, calls: int) -> list[Any]:
    step._own.draw(calls)
    return [array.copy() for array in step._own.arrays.values() if array.dtype == np.int32]


def test_bits_are_those_of_every_number_of_threads() -> None:
    found = []
    for threads in (1, 2, 3, 7):
        step = step_of(threads, clip_norm=0.5, ema=0.9, accumulate=2)
        losses = [step(**feeds(i)) for i in range(4)]
        found.append((losses, {name: array.tobytes() for name, array in step.state_dict().items()}))
    assert all(other == found[0] for other in found)


def test_halves_are_a_step() -> None:
    one = step_of(clip_norm=0.3)
    two = copy.copy(one)
    for i in range(3):
        loss, gradients = one(**feeds(i)), two.gradients(**feeds(i))
        assert list(gradients) == ["loss", "scale", "shift", "w", "head"]
        assert float(gradients["loss"].item()) == loss
        two.apply(gradients)
    two.check()
    assert same(one, two)


def test_calls_that_accumulate_are_one_step_of_their_mean() -> None:
    """As two processes with half of the images each would take it."""
    one, two = step_of(clip_norm=0.3, accumulate=2, ema=0.5), step_of(clip_norm=0.3, ema=0.5)
    one.check()
    for i in range(3):
        halves = []
        for j in (2 * i, 2 * i + 1):
            before = one.parameters["head"]
            one(**feeds(j))
            assert np.array_equal(one.parameters["head"], before) == (j % 2 == 0)
            halves.append(two.gradients(**feeds(j)))
        two.apply({name: halves[0][name] * np.float32(0.5) + halves[1][name] * np.float32(0.5) for name in halves[0]})
        assert one.steps == two.steps == i + 1
    for name in ("w", "head"):
        assert np.array_equal(one.parameters[name], two.parameters[name])
        assert np.array_equal(one.averages[name], two.averages[name])


def test_sums_are_kept_between_calls(tmp_path: Path) -> None:
    one, path = step_of(accumulate=3), tmp_path / "state.safetensors"
    for i in range(4):
        one(**feeds(i))
    one.save(path)
    two = step_of(accumulate=3)
    two.load(path)
    others = [two, copy.deepcopy(one), pickle.loads(pickle.dumps(one))]
    losses = [one(**feeds(i)) for i in range(3)]
    for other in others:
        assert [other(**feeds(i)) for i in range(3)] == losses
        assert same(other, one)


def test_a_part_of_a_state_leaves_the_sums_and_their_number() -> None:
    one, other = step_of(accumulate=3), step_of()
    for i in range(2):
        one(**feeds(i))
        other(**feeds(i))
    for part in (
        {"w": one.parameters["w"]},
        {"w": one.parameters["w"], "steps taken": np.array(7)},
        other.state_dict(),
    ):
        one.load_state_dict(part, strict=False)
        steps = one.steps
        one(**feeds(0))
        assert one.steps == steps + 1, "the third of three calls"
        for i in range(2):
            one(**feeds(i))
        assert one.steps == steps + 1


def test_averages() -> None:
    step, expected = step_of(ema=0.75), step_of().parameters["w"].astype(np.float64)
    for i in range(4):
        step(**feeds(i))
        expected = 0.75 * expected + 0.25 * step.parameters["w"]
    np.testing.assert_allclose(step.averages["w"], expected, rtol=1e-5, atol=1e-6)
    assert sorted(step.averages) == ["head", "scale", "shift", "w"]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_step_that_is_not_finite_changes_nothing(number: float, accumulate: int) -> None:
    step, given = step_of(check_finite=True, accumulate=accumulate), feeds()
    for _ in range(accumulate):
        step(**given)
    before = step.state_dict()
    bad = {**given, "x": np.where(np.arange(6) == 2, np.float32(number), given["x"])}
    with pytest.raises(dnn.InvalidArguments, match="a gradient of step 2 is not finite: nothing has changed"):
        step(**bad)
    after = step.state_dict()
    assert all(np.array_equal(array, after[name]) for name, array in before.items())
    assert np.isfinite(step(**given))
    gradients = step.gradients(**given)
    with pytest.raises(dnn.InvalidArguments, match="is not finite"):
        step.apply({**gradients, "w": gradients["w"] * np.float32(number)})


def test_files_of_tensors(tmp_path: Path) -> None:
    step, path = step_of(), tmp_path / "state.safetensors"
    step(**feeds())
    step.save(path)
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    entry = json.loads(data[8 : 8 + size])["w"]
    assert (entry["dtype"], entry["shape"]) == ("F32", [6, 3, 3, 3])
    start, end = entry["data_offsets"]
    assert data[8 + size :][start:end] == step.parameters["w"].tobytes()
    broken = [b"", data[:5], data[:-1], struct.pack("<Q", 2**60) + data[8:], data.replace(b'"F32"', b'"F64"'), data * 2]
    broken.append(data.replace(b'"shape":[6,3,3,3]', b'"shape":[6,3,3,4]'))
    broken.append(data.replace(b'"data_offsets":[0,', b'"data_offsets":[-4,'))
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(dnn.InvalidArguments, match="is no file that a training step has saved"):
            step.load(path)


def test_a_name_that_files_of_tensors_have_not(tmp_path: Path) -> None:
    g = dnn.Graph()
    loss = g.apply("ReduceSum", g.input("x", (3,)) * g.parameter("__metadata__", (3,), 1.0), keepdims=0)
    step = g.train(loss, optim.SGD(0.1), engine=engine())
    with pytest.raises(dnn.InvalidArguments, match="__metadata__ is no name of a tensor in it"):
        step.save(tmp_path / "state.safetensors")
    step.save(tmp_path / "state.npz")
    step.load(tmp_path / "state.npz")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: step_of(accumulate=0), r"accumulate must be an integer from 1 to 2\*\*53, not 0"),
        (lambda: step_of(accumulate=2**30), r"accumulate must be an integer from 1 to 2\*\*20"),
        (lambda: step_of(ema=1), "ema must be a finite number from 0 on and less than 1, not 1"),
        (lambda: step_of(check_finite=1), "check_finite must be True or False, not 1"),
        (lambda: step_of(rounding="stochastic"), "rounding must be None, or 'stochastic' with precision='bf16', not"),
        (lambda: step_of(rounding="up", precision="bf16"), "rounding must be None, or 'stochastic' with"),
        (lambda: step_of(rounding=np.zeros(2), precision="bf16"), "rounding must be None, or 'stochastic' with"),
        (lambda: step_of().averages, "keeps no averages"),
        (lambda: step_of().apply({"w": np.zeros(3)}), "apply takes gradients by scale, shift, w, head, not w"),
        (lambda: step_of().apply(3), "apply takes gradients by scale, shift, w, head, not 3"),
        (lambda: step_of().gradients(x=3), "a step takes arrays for x, t, not x"),
        (lambda: step_of(ratio=1.0), "has the ratio 1, it must be a number from 0 on and less than 1"),
    ],
)
def test_bad_calls(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        make()


def test_gradients_of_wrong_dims() -> None:
    step = step_of()
    gradients = step.gradients(**feeds())
    with pytest.raises(dnn.InvalidArguments, match=r"gradient by w is float32\[3\]"):
        step.apply({**gradients, "w": np.zeros(3, np.float32)})
    assert step.steps == 0


def test_dropout_outside_of_training_steps() -> None:
    """A network has no seeds; a switch that is data has no answer."""
    g, _, scores = digits()
    with pytest.raises(dnn.Unimplemented, match="training_mode true"):
        g.compile(y=scores, engine=engine())
    g = dnn.Graph()
    w, mode = g.parameter("w", (4, 4)), g.input("mode", (), np.bool_)
    loss = g.apply("ReduceSum", g.apply("Dropout", w, 0.5, mode), keepdims=0)
    with pytest.raises(dnn.InvalidArguments, match="training_mode that is data"):
        g.train(loss, optim.SGD(0.1), engine=engine())


def reader_of(g: dnn.Graph, scores: Any, parameters: Any) -> Any:
    return g.compile(y=scores, parameters=parameters, engine=engine())(feeds(9)["x"])


def trained_digits(**options: Any) -> tuple[dnn.Graph, Any, dnn.TrainingStep]:
    g, loss, scores = digits()
    step = g.train(loss, optim.Adam(0.01), {"scores": scores}, engine=engine(), **options)
    for i in range(3):
        step(**feeds(i))
    return g, scores, step


def test_networks_with_what_was_learned() -> None:
    """By running statistics, and without dropout; a later step changes nothing of them."""
    g, scores, step = trained_digits(ema=0.5)
    state = {name: array.astype(np.float64) for name, array in step.state_dict().items()}
    net = g.compile(y=scores, parameters=step, engine=engine())
    x = np.pad(feeds(9)["x"].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    h: Any = sum(
        np.einsum("nchw,oc->nohw", x[:, :, i : i + 6, j : j + 6], state["w"][:, :, i, j])
        for i in range(3)
        for j in range(3)
    )
    by = {name: state[name].reshape(-1, 1, 1) for name in ("mean", "variance", "scale", "shift")}
    h = (h - by["mean"]) / np.sqrt(by["variance"] + 1e-5) * by["scale"] + by["shift"]
    h = np.maximum(h, 0).reshape(8, 6, 3, 2, 3, 2).max((3, 5)).reshape(8, 54)
    first = net(feeds(9)["x"])
    np.testing.assert_allclose(first, h @ state["head"], rtol=1e-4, atol=1e-5)
    step(**feeds())
    assert np.array_equal(net(feeds(9)["x"]), first)
    averaged = reader_of(g, scores, {**step.state_dict(), **step.averages})
    assert not np.array_equal(averaged, reader_of(g, scores, step))


def test_models_with_what_was_learned(tmp_path: Path) -> None:
    """A file that others read, from which training goes on."""
    g, scores, step = trained_digits()
    path, wanted = tmp_path / "model.onnx", reader_of(g, scores, step)
    step.export(path)
    np.testing.assert_allclose(dnn.load_onnx(path, engine=engine())(feeds(9)["x"]), wanted, rtol=1e-5, atol=1e-6)
    ort = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    (theirs,) = ort.InferenceSession(str(path)).run(None, {"x": feeds(9)["x"]})
    np.testing.assert_allclose(theirs, wanted, rtol=1e-4, atol=1e-5)
    tuned = dnn.Graph.from_onnx(path, train=["he*"])
    assert tuned.parameters == {"head": (54, 5)}
    t = tuned.input("t", IMAGES[:1], np.int64)
    loss = tuned.apply("SoftmaxCrossEntropyLoss", tuned.outputs["scores"], t)
    again = tuned.train(loss, optim.SGD(0.1), {"result": tuned.value("scores")}, engine=engine())
    assert np.array_equal(again.parameters["head"], step.parameters["head"])
    losses = [again(**feeds()) for _ in range(5)]
    assert losses[-1] < losses[0]
    again.export(tmp_path / "again.onnx")
    after = dnn.load_onnx(tmp_path / "again.onnx", engine=engine())(feeds(9)["x"])
    assert not np.allclose(after, wanted, atol=1e-3)


def exported(path: Any = "model.onnx", **options: Any) -> None:
    g, loss, _ = digits()
    g.train(loss, optim.SGD(0.1), engine=engine(), **options).export(path)


def from_file(tmp_path: Path, **options: Any) -> dnn.Graph:
    trained_digits()[2].export(tmp_path / "m.onnx")
    found: dnn.Graph = dnn.Graph.from_onnx(tmp_path / "m.onnx", **options)
    return found


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda at: exported(at / "m.onnx"), "the step has no outputs to export"),
        (
            lambda at: trained_digits()[2].export(at / "not there" / "m.onnx"),
            "the model cannot be written to .*m.onnx'[)]?: No such file or directory$",
        ),
        (lambda at: from_file(at, train=["haed"]), "train names 'haed', which no f32 weight matches: .*head"),
        (lambda at: from_file(at, train=3), r"train must be patterns of weights' names, .* not 3"),
        (lambda at: from_file(at, shapes={"y": (1,)}), "shapes must be dims by input, x, not"),
        (lambda at: from_file(at).value("haed"), "'haed' is no value of the graph: did you mean head"),
        (lambda at: reader_of(*digits()[::2], 3), "parameters must be a training step, or arrays by name, not 3"),
        (lambda at: reader_of(*digits()[::2], {}), "parameters lacks 'scale', which the graph has"),
    ],
)
def test_bad_files_and_values(make: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        make(tmp_path)
