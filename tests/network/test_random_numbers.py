"""Operators that draw at random: by seeds natively, without one in numpy; their distributions are bounded."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.dropout import philox_words
from asmdnn.definitions.random_numbers import NORMAL_ERROR, mixed, normals, uniforms
from asmdnn.primitives.core.implementation import plans
from tests.network import wire
from tests.network.keeping import is_kept, own_directory
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")
COUNT = 40_000
SIGMAS = 5  # by which a mean of so many may be off; seeds are fixed, so it is or it is not


def model(op: str, inputs: dict[str, tuple[int | str, ...]], **attributes: Any) -> bytes:
    nodes = [wire.node(op, list(inputs), ["y"], "draw", **attributes)]
    return wire.model(wire.graph(nodes, inputs, ["y"]))


def load(op: str, inputs: dict[str, tuple[int | str, ...]] | None = None, **attributes: Any) -> dnn.Network:
    return dnn.load_onnx(model(op, inputs or {}, **attributes), engine=engine())


def assert_normal(found: np.ndarray, wanted: np.ndarray) -> None:
    """Within the documented error, and one rounding of what is wanted."""
    assert (np.abs(found - wanted.astype(np.float64)) <= (NORMAL_ERROR + 2**-24) * np.abs(wanted)).all()


def off(x: np.ndarray, mean: float, deviation: float) -> float:
    """In deviations of the mean of so many."""
    return abs(float(x.mean(dtype=np.float64)) - mean) / (deviation / x.size**0.5)


@pytest.mark.parametrize("shape", [[200, 200], [COUNT], [7, 3], []])
def test_numbers_of_a_shape(shape: list[int]) -> None:
    """All are constants; the same in every call, and others by another seed."""
    uniform = load("RandomUniform", shape=shape, low=-2.0, high=3.0, seed=7.0)
    normal = load("RandomNormal", shape=shape, mean=1.5, scale=2.0, seed=7.0)
    a, b = uniform.run({})["y"], normal.run({})["y"]
    for x, net in ((a, uniform), (b, normal)):
        assert x.shape == tuple(shape) and x.dtype == np.float32 and net.refused == {}
        assert np.array_equal(x, net.run({})["y"])
    bits = int(np.float32(7).view(np.uint32))
    np.testing.assert_allclose(a.ravel(), uniforms(bits, a.size) * 5 - 2, atol=5e-7)
    np.testing.assert_allclose(b.ravel(), normals(bits, b.size) * 2 + 1.5, rtol=1e-6, atol=1e-6)
    if a.size == COUNT:
        assert -2 <= a.min() < -1.99 and 2.99 < a.max() <= 3
        assert off(a, 0.5, 5 / 12**0.5) < SIGMAS and off((a - 0.5) ** 2, 25 / 12, 25 / 180**0.5) < SIGMAS
        assert off(b, 1.5, 2) < SIGMAS and off((b - 1.5) ** 2, 4, 4 * 2**0.5) < SIGMAS
        assert off((b[1:] - 1.5) * (b[:-1] - 1.5), 0, 4) < SIGMAS if len(shape) == 1 else True
        other = load("RandomUniform", shape=shape, low=-2.0, high=3.0, seed=8.0).run({})["y"]
        assert (a != other).mean() > 0.99


def test_uniforms_are_philoxs_words() -> None:
    words = philox_words(0, 11, 5)
    assert np.array_equal(uniforms(5, 11), np.array([int(word) >> 8 for word in words], np.float64) / 2**24)
    assert uniforms(5, COUNT).max() < 1
    assert np.isfinite(normals(5, COUNT)).all() and len(normals(5, 11)) == 11


@pytest.mark.parametrize(("code", "dtype"), [(1, np.float32), (10, np.float16), (11, np.float64)])
def test_types(code: int, dtype: Any) -> None:
    x = load("RandomNormal", shape=[3, 5], dtype=code, seed=2.0).run({})["y"]
    assert x.dtype == dtype and len(np.unique(x)) == 15


def test_numbers_like_another_tensor(tmp_path: Path) -> None:
    """Of open dims for each shape; in one native call, and in packs."""
    nodes = [
        wire.node("RandomNormalLike", ["x"], ["n"], "noise", seed=3.0),
        wire.node("RandomUniformLike", ["x"], ["u"], seed=3.0, dtype=1),
        wire.node("Mul", ["n", "x"], ["m"]),
        wire.node("Add", ["m", "u"], ["y"]),
    ]
    data = wire.model(wire.graph(nodes, {"x": ("rows", 6)}, ["y"]))
    net = dnn.load_onnx(data, engine=engine())
    bits = int(np.float32(3).view(np.uint32))
    for rows in (4, 9, 4, 1):
        x = random(rows, 6)
        wanted = normals(bits, x.size).reshape(x.shape) * x + uniforms(bits, x.size).reshape(x.shape)
        np.testing.assert_allclose(net.run({"x": x})["y"], wanted, rtol=1e-6, atol=1e-6)
    fixed = dnn.load_onnx(data, {"x": (4, 6)}, engine=engine())
    assert fixed.refused == {}
    fixed.check()
    assert all(one.fits for one in fixed.verify({"x": random(4, 6)}))
    fixed.save(tmp_path / "net.pack")
    x = random(4, 6)
    assert np.array_equal(dnn.load_network(tmp_path / "net.pack").run({"x": x})["y"], fixed.run({"x": x})["y"])


def test_truths_by_chances() -> None:
    net = load("Bernoulli", {"x": (200, 200)}, seed=4.0)
    assert net.refused == {}
    for p in (0.0, 0.3, 1.0):
        found = net.run({"x": np.full((200, 200), p, np.float32)})["y"]
        assert set(np.unique(found)) <= {0, 1}
        assert off(found, p, (p * (1 - p)) ** 0.5 or 1) < SIGMAS and (0 < p < 1 or (found == p).all())
    chances = np.linspace(0, 1, COUNT, dtype=np.float32).reshape(200, 200)
    wanted = uniforms(int(np.float32(4).view(np.uint32)), COUNT).reshape(200, 200) < chances
    assert np.array_equal(net.run({"x": chances})["y"], wanted)
    as_truths = load("Bernoulli", {"x": (5, 4)}, seed=4.0, dtype=9).run({"x": np.full((5, 4), 0.5, np.float32)})["y"]
    assert as_truths.dtype == np.bool_


@pytest.mark.parametrize(("code", "dtype"), [(6, np.int32), (7, np.int64)])
def test_classes_by_logarithms(code: int, dtype: Any) -> None:
    """Each as often as it is likely; one that is certain always, and none without a chance."""
    net = load("Multinomial", {"x": (3, 5)}, sample_size=COUNT, seed=6.0, dtype=code)
    assert net.refused == {}
    chances = np.array([[0.1, 0.2, 0.4, 0.2, 0.1], [0, 0, 0, 0, 1], [0.5, 0, 0.25, 0.25, 0]])
    with np.errstate(divide="ignore"):
        found = net.run({"x": (np.log(chances) + np.array([[3], [0], [-40]])).astype(np.float32)})["y"]
    assert (found.dtype, found.shape) == (dtype, (3, COUNT))
    for row, wanted in zip(found, chances, strict=True):
        share = np.bincount(row, minlength=5) / COUNT
        assert (np.abs(share - wanted) <= SIGMAS * (wanted * (1 - wanted) / COUNT) ** 0.5 + 1e-12).all()


SEEDLESS = {
    "RandomUniform": ({}, {"shape": [3, 4]}),
    "RandomNormalLike": ({"x": (3, 4)}, {}),
    "Bernoulli": ({"x": (3, 4)}, {}),
    "Multinomial": ({"x": (3, 4)}, {"sample_size": 50}),
}


@pytest.mark.parametrize("op", SEEDLESS)
def test_without_a_seed_each_call_draws_others(op: str) -> None:
    inputs, attributes = SEEDLESS[op]
    with pytest.raises(dnn.Unimplemented, match=r"have no seed, so that each call draws others: give the node one"):
        load(op, inputs, **attributes)
    net = dnn.load_onnx(model(op, inputs, **attributes), engine=engine(), fallback="numpy")
    given = {"x": np.full((3, 4), 0.5, np.float32)} if inputs else {}
    assert len({net.run(given)["y"].tobytes() for _ in range(8)}) > 1


WRONG = {
    "no shape": ("RandomUniform", {}, {"seed": 1.0}, "lacks the attribute shape"),
    "a negative size": ("RandomUniform", {}, {"seed": 1.0, "shape": [3, -1]}, "dims .* negative size"),
    "too many": ("RandomNormal", {}, {"seed": 1.0, "shape": [1 << 40]}, "more than"),
    "integers": ("RandomNormal", {}, {"seed": 1.0, "shape": [3], "dtype": 6}, "draws int32, it must be of floats"),
    "no type": ("RandomUniformLike", {"x": (3,)}, {"seed": 1.0, "dtype": 99}, "number 99"),
    "one axis": ("Multinomial", {"x": (3,)}, {"seed": 1.0}, r"dims \(3,\), they must be floats of \[batch, classes\]"),
    "no numbers": ("Multinomial", {"x": (3, 4)}, {"seed": 1.0, "sample_size": 0}, "draws 0 numbers"),
    "a seed that is a text": ("Bernoulli", {"x": (3,)}, {"seed": "x"}, "seed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_nodes_that_are_wrong(name: str) -> None:
    op, inputs, attributes, words = WRONG[name]
    with pytest.raises(dnn.errors.AsmdnnError, match=words):
        load(op, inputs, **attributes)


def noisy(op: str = "RandomNormalLike", **attributes: Any) -> bytes:
    """Noise of two nodes on a product."""
    nodes = [
        wire.node("MatMul", ["x", "w"], ["p"]),
        wire.node(op, ["p"], ["n"], **attributes),
        wire.node("RandomUniform", [], ["u"], shape=[6], seed=3.0),
        wire.node("Add", ["p", "n"], ["q"]),
        wire.node("Add", ["q", "u"], ["y"]),
    ]
    return wire.model(wire.graph(nodes, {"x": ("rows", 6)}, ["y", "n", "u"], {"w": random(6, 6)}))


def seeded_load(data: bytes, threads: int = 1, fallback: str | None = None, **more: Any) -> dnn.Network:
    return dnn.load_onnx(data, engine=engine(threads), fallback=fallback, seed="seed", **more)


@pytest.mark.parametrize("shapes", [None, {"x": (4, 6)}])
def test_a_seed_that_calls_pass(shapes: Any) -> None:
    """Equal seeds have equal bits for all threads and processes, others others; nothing is planned again."""
    data, x = noisy(), random(4, 6)
    nets = [seeded_load(data, threads, shapes=shapes) for threads in (1, 2, 3)]
    assert shapes is None or all(net.is_native for net in nets)
    dims, dtype = nets[0].inputs["seed"]
    assert dims == () and dtype == np.int64
    found = {seed: nets[0].run({"x": x, "seed": seed}) for seed in (0, 1, -5, 2**62, 7)}
    for net in nets:
        net.run({"x": x, "seed": 0})
    planned = set(plans.entries)
    for seed, wanted in found.items():
        for net in nets:
            for name, array in net.run({"x": x, "seed": np.int64(seed)}).items():
                assert array.tobytes() == wanted[name].tobytes()
    assert set(plans.entries) == planned
    for name, array in pickle.loads(pickle.dumps(nets[0])).run({"x": x, "seed": 7}).items():
        np.testing.assert_array_equal(array, found[7][name])
    assert len({wanted[name].tobytes() for wanted in found.values() for name in "nu"}) == 2 * len(found)
    bits = mixed(7, 0, int(np.float32(3).view(np.uint32))) % 2**32
    np.testing.assert_array_equal(found[7]["u"], uniforms(bits, 6))
    assert_normal(found[7]["n"].ravel(), normals(mixed(7, 0, 2**32) % 2**32, 24))
    product = found[7]["y"] - found[7]["n"] - found[7]["u"]
    np.testing.assert_allclose(product, found[0]["y"] - found[0]["n"] - found[0]["u"], atol=1e-5)


def test_nodes_with_equal_seeds_have_equal_numbers() -> None:
    net = seeded_load(noisy("RandomUniformLike", seed=3.0), shapes={"x": (1, 6)})
    found = net.run({"x": random(1, 6), "seed": 5})
    np.testing.assert_array_equal(found["n"][0], found["u"])


def test_a_seed_that_is_a_constant() -> None:
    """All numbers are known then, natively; without the word those of the file's seed."""
    data, x = noisy(seed=2.0), random(4, 6)
    wanted = seeded_load(data).run({"x": x, "seed": 9})
    net = dnn.load_onnx(data, {"x": (4, 6)}, constants={"seed": np.int64(9)}, seed="seed", engine=engine())
    assert net.is_native and "seed" not in net.inputs
    for name, array in net.run({"x": x}).items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-6, atol=1e-6)
    plain = dnn.load_onnx(data, {"x": (4, 6)}, engine=engine())
    bits = int(np.float32(2).view(np.uint32))
    np.testing.assert_array_equal(plain.run({"x": x})["n"].ravel(), normals(bits, 24))


@pytest.mark.parametrize("name", [*SEEDLESS, "RandomNormal", "RandomUniformLike"])
def test_all_operators_take_it(name: str) -> None:
    more = {"RandomNormal": ({}, {"shape": [3, 4]}), "RandomUniformLike": ({"x": (3, 4)}, {})}
    inputs, attributes = {**SEEDLESS, **more}[name]
    net = seeded_load(model(name, inputs, **attributes))
    assert net.is_native and net.refused == {}
    net.check()
    given = {"x": np.full((3, 4), 0.5, np.float32)} if inputs else {}
    found = [net.run({**given, "seed": seed})["y"] for seed in (1, 2, 3, 1, 2, 3)]
    for one, again in zip(found[:3], found[3:], strict=True):
        np.testing.assert_array_equal(one, again)
    assert len({x.tobytes() for x in found}) > 1


@pytest.mark.parametrize("ratio", [0.0, 0.25, None])
def test_dropout_in_training(ratio: float | None) -> None:
    more = {} if ratio is None else {"ratio": np.float32(ratio)}
    node = wire.node("Dropout", ["x", "ratio" if more else "", "mode"], ["y", "mask"], "drop")
    data = wire.model(wire.graph([node], {"x": (200, 200)}, ["y", "mask"], {"mode": np.array(True), **more}))
    net, x, p = seeded_load(data), random(200, 200) + 5, 0.5 if ratio is None else ratio
    found = [net.run({"x": x, "seed": seed}) for seed in (3, 4, 3)]
    for one in found:
        stays, y = one["mask"], one["y"]
        assert stays.dtype == np.bool_
        np.testing.assert_allclose(y, np.where(stays, x / (1 - p), 0), rtol=1e-6)
        assert off(stays.astype(np.float32), 1 - p, (p * (1 - p)) ** 0.5 or 1) < SIGMAS
    np.testing.assert_array_equal(found[0]["y"], found[2]["y"])
    assert (found[0]["mask"] != found[1]["mask"]).any() == (p > 0)
    if p:
        with pytest.raises(dnn.Unimplemented, match="training_mode true"):
            dnn.load_onnx(data, engine=engine())


@pytest.mark.parametrize("is_known", [True, False])
def test_nodes_in_branches_and_after_data(is_known: bool) -> None:
    """A branch draws by the same seed, and so does what waits for data."""
    fields = [(1, wire.node("RandomNormalLike", ["x"], ["n"])), (2, "b"), (12, wire.value_info("n"))]
    branch = wire.message(fields)
    nodes = [
        wire.node("If", ["is"], ["noise"], then_branch=branch, else_branch=branch),
        wire.node("NonZero", ["x"], ["at"]),
        wire.node("Cast", ["at"], ["floats"], to=1),
        wire.node("RandomUniformLike", ["floats"], ["u"]),
    ]
    graph = [*((1, node) for node in nodes), (2, "g"), (11, wire.value_info("x", (6,)))]
    truth = [(5, wire.tensor(np.array(True), "is"))] if is_known else [(11, wire.value_info("is", (), "bool"))]
    ends = [(12, wire.value_info(name)) for name in ("noise", "u")]
    net = seeded_load(wire.model(wire.message([*graph, *truth, *ends])), fallback="numpy")
    x = np.array([1, 0, 2, 3, 0, 4], np.float32)
    given = {"x": x} if is_known else {"x": x, "is": np.array(True)}
    found = [net.run({**given, "seed": seed}) for seed in (5, 6, 5)]
    assert_normal(found[0]["noise"], normals(mixed(5, 0, 2**32) % 2**32, 6))
    assert found[0]["u"].shape == (1, 4)
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[2][name])
        assert (array != found[1][name]).all()


def test_seeds_that_are_wrong() -> None:
    data = noisy()
    for seed in ("x", "w", "n", "y", "", 7, ["s"]):
        with pytest.raises(dnn.InvalidArguments, match="seed must be a name that no value of the model has"):
            dnn.load_onnx(data, engine=engine(), seed=seed)  # type: ignore[arg-type]
    plain = wire.model(wire.graph([wire.node("Relu", ["x"], ["y"])], {"x": (3,)}, ["y"]))
    with pytest.raises(dnn.InvalidArguments, match="the model draws nothing at random: leave it out"):
        dnn.load_onnx(plain, engine=engine(), seed="seed")
    net = seeded_load(data)
    for wrong in (0.5, np.int32(3), [1], None, "x"):
        with pytest.raises(dnn.InvalidArguments, match="seed"):
            net.run({"x": random(4, 6), "seed": wrong})
    with pytest.raises(dnn.InvalidArguments, match="seed"):
        net.run({"x": random(4, 6)})


def test_seeded_networks_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in own_directory(tmp_path, monkeypatch):
        x, data = random(4, 6), noisy()
        wanted = seeded_load(data, shapes={"x": (4, 6)}).run({"x": x, "seed": 4})
        again = seeded_load(data, shapes={"x": (4, 6)})
        assert is_kept(again)
        for name, array in again.run({"x": x, "seed": 4}).items():
            np.testing.assert_array_equal(array, wanted[name])
        other = dnn.load_onnx(data, {"x": (4, 6)}, engine=engine(), seed="other")
        assert not is_kept(other) and not is_kept(dnn.load_onnx(data, {"x": (4, 6)}, engine=engine(), fallback="numpy"))
