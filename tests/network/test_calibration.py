"""Networks of bf16 that stay within an error: what stays f32, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from tests.network import wire
from tests.network.nets import engine
from tests.network.test_precision import GRAPHS, feeds_of
from tests.support.drawing import RANDOM

BF16 = "avx512_core_bf16"


def error(net: dnn.Network, feeds: dict[str, Any]) -> float:
    """From definitions in float64."""
    return max(one.from_f64 for one in net.verify(feeds).outputs)


def weights(*dims: int) -> np.ndarray:
    return (RANDOM.standard_normal(dims) / dims[0] ** 0.5).astype(np.float32)


def one_matters() -> tuple[dnn.Graph, dict[str, Any]]:
    """Three products: rows are shifted by a large number before the second, so that bf16 loses what they differ by."""
    g = dnn.Graph("one matters")
    first = g.apply("Gemm", g.input("x", (64, 128)), weights(128, 128), name="first")
    balanced = weights(128, 128)
    balanced -= balanced.mean(axis=0)
    second = g.apply("Gemm", g.apply("Relu", first) + 100.0, balanced, name="second")
    return g, {"y": g.apply("Gemm", g.apply("Relu", second), weights(128, 64), name="third")}


@pytest.mark.isa(BF16)
@pytest.mark.parametrize("name", ["sentences", "residual"])
@pytest.mark.parametrize("part", [0.2, 0.7])
def test_outputs_are_within_the_limit(name: str, part: float) -> None:
    """Of a part of what bf16 alone makes of them; less stays f32 than everything."""
    g, outputs = GRAPHS[name]()
    said: dict[str, Any] = {"engine": engine(isa=BF16), "precision": "bf16"}
    plain = g.compile(**said, **outputs)
    feeds = feeds_of(plain)
    limit = part * error(plain, feeds)
    assert limit > 1e-4
    net = g.compile(**said, max_error=limit, feeds=feeds, **outputs)
    assert error(net, feeds) <= limit
    assert net.precision.word == "bf16"
    assert net.precision.keep_f32
    again = g.compile(**said, keep_f32=net.precision.keep_f32, **outputs)
    assert np.array_equal(*(one.run(feeds)["y"] for one in (net, again)))
    assert f"f32 stay {', '.join(net.precision.keep_f32)}" in net.explain()


@pytest.mark.isa(BF16)
def test_the_step_with_the_largest_error_stays_f32_and_no_other_product() -> None:
    g, outputs = one_matters()
    said: dict[str, Any] = {"engine": engine(isa=BF16), "precision": "bf16"}
    feeds = {"x": RANDOM.standard_normal((64, 128)).astype(np.float32)}
    plain = g.compile(**said, **outputs)
    assert error(plain, feeds) > 0.1
    net = g.compile(**said, max_error=0.05, feeds=feeds, **outputs)
    assert "second" in net.precision.keep_f32
    assert "third" not in net.precision.keep_f32
    assert error(net, feeds) <= 0.05


@pytest.mark.isa(BF16)
def test_what_is_near_enough_stays_as_it_is() -> None:
    g, outputs = GRAPHS["sentences"]()
    said: dict[str, Any] = {"engine": engine(isa=BF16), "precision": "bf16"}
    plain = g.compile(**said, **outputs)
    feeds = feeds_of(plain)
    net = g.compile(**said, max_error=0.5, feeds=feeds, **outputs)
    assert net.precision.keep_f32 == ()
    assert np.array_equal(net.run(feeds)["y"], plain.run(feeds)["y"])


@pytest.mark.isa(BF16)
def test_a_file_of_open_dims() -> None:
    """The dims are those of the feeds; other dims keep the same nodes in f32."""
    nodes = [wire.node("MatMul", ["x", "w"], ["p"], "one"), wire.node("MatMul", ["p", "v"], ["y"], "two")]
    body = wire.graph(nodes, {"x": ("n", 256)}, ["y"], {"w": weights(256, 256), "v": weights(256, 256)})
    feeds = {"x": RANDOM.standard_normal((64, 256)).astype(np.float32)}
    said: dict[str, Any] = {"engine": engine(isa=BF16), "precision": "bf16", "feeds": feeds}
    net = dnn.load_onnx(wire.model(body), **said, max_error=1e-4)
    assert isinstance(net, dnn.OpenNetwork)
    assert net.precision.keep_f32 == ("one", "two")
    assert error(net, feeds) < 1e-4
    assert error(pickle.loads(pickle.dumps(net)), {"x": feeds["x"][:32]}) < 1e-4


@pytest.mark.isa("avx2")
def test_states_start_as_they_are_declared() -> None:
    g = dnn.Graph()
    total = g.state("total", (1, 64))
    y = g.update(total, total + g.apply("Gemm", g.input("x", (1, 64)), weights(64, 64)))
    net = g.compile(y=y, engine=engine(), precision="bf16", max_error=1e-3, feeds={"x": np.ones((1, 64), np.float32)})
    assert not net.state["total"].any()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"max_error": 0.1}, "max_error=0.1 needs feeds, inputs by name"),
        ({"max_error": 0.1, "feeds": {}}, "feeds must be arrays for x"),
        ({"feeds": {"x": 1}}, "feeds are inputs by which max_error is kept"),
        ({"max_error": 0.0, "feeds": {"x": 1}}, "max_error must be a positive share of the largest value, not 0"),
        ({"max_error": -1, "feeds": {"x": 1}}, "max_error must be a positive share"),
        ({"max_error": float("nan"), "feeds": {"x": 1}}, "max_error must be a positive share"),
        ({"max_error": float("inf"), "feeds": {"x": 1}}, "max_error must be a positive share"),
        ({"max_error": True, "feeds": {"x": 1}}, "max_error must be a positive share"),
        ({"max_error": "1e-2", "feeds": {"x": 1}}, "max_error must be a positive share"),
        (
            {"max_error": 1e-12, "feeds": {"x": np.ones((64, 128), np.float32)}},
            "max_error=1e-12 is not reachable: in f32 outputs differ by .* from definitions in float64",
        ),
    ],
)
def test_limits_that_are_none(said: dict[str, Any], words: str) -> None:
    g, outputs = one_matters()
    with pytest.raises(InvalidArguments, match=words):
        g.compile(engine=engine(), precision="bf16", **said, **outputs)
