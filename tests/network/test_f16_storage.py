"""precision="f16" on levels that widen it: weights of one or two rows and values that only maps and moves read."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.packs import kept
from tests.network.nets import engine
from tests.network.test_precision import expected, random, types

HALF_STEP = 2.0**-12  # of a number, or of the largest of a column
UNIT_ROUNDOFF = 2.0**-24
K, N = 700, 300  # 840 kB of f32, more than L2 of any class
WEIGHTS = random(K, N)


def compiled(rows: int | str, weights: np.ndarray = WEIGHTS, isa: str = "avx2", **said: Any) -> dnn.Network:
    """x @ weights with a word of precision, f16 unless another one is said."""
    g = dnn.Graph("head")
    y = g.apply("MatMul", g.input("x", (rows, len(weights))), weights, name="head")
    small = dnn.Engine(isa=isa, threads=1, l2_bytes=1 << 19)  # type: ignore[arg-type]
    return g.compile(y=y, **{"engine": small, "precision": "f16", **said})


def weights_of(net: dnn.Network, name: str = "head") -> str:
    return types(net, "weights")[name]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("rows", [1, 2])
def test_weights_are_rounded_once_and_nothing_else(rows: int) -> None:
    net, x = compiled(rows), random(rows, K) * np.float32(30)
    assert (weights_of(net), types(net, "src")["head"]) == ("f16", "f32")
    exact = x.astype(np.float64) @ WEIGHTS
    terms = np.abs(x).astype(np.float64) @ np.abs(WEIGHTS)
    largest = np.abs(x).sum(1, dtype=np.float64)[:, None] * np.abs(WEIGHTS).max(0)
    off = np.abs(net.run({"x": x})["y"] - exact)
    assert (off <= HALF_STEP * largest + K * UNIT_ROUNDOFF * terms).all()
    assert off.max() > 4 * K**0.5 * UNIT_ROUNDOFF  # which f32 stays below
    report = net.verify({"x": x})
    assert all(one.fits for one in report)
    assert 1e-6 < report.outputs[0].from_f64 < 4 * HALF_STEP
    net.check()


@pytest.mark.isa("avx2")
def test_a_gemm_keeps_its_bias_and_alpha() -> None:
    g, x, bias = dnn.Graph("gemm"), random(1, K), random(N)
    y = g.apply("Gemm", g.input("x", (1, K)), WEIGHTS.T.copy(), bias, transB=1, alpha=3.0, beta=0.5, name="head")
    net = g.compile(y=y, precision="f16", engine=dnn.Engine(isa="avx2", threads=1, l2_bytes=1 << 19))
    assert weights_of(net) == "f16"
    exact = 3.0 * (x.astype(np.float64) @ WEIGHTS) + 0.5 * bias
    largest = 3.0 * np.abs(x).sum() * np.abs(WEIGHTS).max(0) + np.abs(bias)
    assert (np.abs(net.run({"x": x})["y"] - exact) <= (HALF_STEP + K * UNIT_ROUNDOFF) * largest).all()


def changed(column: int, factor: float) -> np.ndarray:
    weights = WEIGHTS.copy()
    weights[:, column] *= np.float32(factor)
    return weights


@pytest.mark.parametrize(
    ("rows", "weights", "said"),
    [
        (3, WEIGHTS, {}),
        (1, WEIGHTS[:, :100], {}),  # in L2
        (1, changed(7, 1e7), {}),  # too large for f16
        (1, changed(7, 1e-6), {}),  # would be denormals
        (1, WEIGHTS, {"keep_f32": ["head"]}),
        (1, WEIGHTS, {"precision": "bf16"}),
    ],
)
def test_other_weights_stay_f32_and_explain_says_so(rows: int, weights: np.ndarray, said: dict[str, Any]) -> None:
    net = compiled(rows, weights, **said)
    assert weights_of(net) == "f32"
    assert "nothing is expected to gain by it, all is f32" in net.explain()
    if net.engine.isa == "avx2":
        x = {"x": random(rows, K)}
        assert np.array_equal(net.run(x)["y"], compiled(rows, weights, precision="f32").run(x)["y"])


def test_columns_of_zeros_and_either_sign_are_no_hindrance() -> None:
    weights = changed(3, 0.0)
    weights[:, 4] = -np.abs(weights[:, 4])
    assert weights_of(compiled(1, weights)) == "f16"


@pytest.mark.parametrize("isa", ["avx2_vnni", "avx512_core", "avx512_core_bf16"])
def test_every_level_widens_them(isa: str) -> None:
    assert weights_of(compiled(1, isa=isa)) == "f16"
    assert weights_of(compiled(1, isa=isa, precision="fast")) == ("bf16" if isa.endswith("bf16") else "f16")


def test_bits_that_may_not_depend_on_the_batch_are_those_of_f32() -> None:
    same = dnn.Engine(isa="avx2", threads=1, l2_bytes=1 << 19, deterministic="batch")
    assert weights_of(compiled(1, engine=same)) == "f32"


def decoder() -> tuple[dnn.Graph, dict[str, Any]]:
    """Two convolutions beside one another, joined, and a map that two read: all beyond L2."""
    g = dnn.Graph("decoder")
    x = g.input("x", (2, 16, 96, 96))
    one = g.apply("Conv", x, random(32, 16, 1, 1), random(32), name="one")
    two = g.apply("Relu", g.apply("Conv", x, random(32, 16, 3, 3), pads=(1,) * 4, name="two"))
    mixed = g.apply("Mul", g.apply("Sigmoid", g.apply("Concat", one, two, axis=1)), np.float32(2), name="mixed")
    return g, {"y": g.apply("ReduceMean", mixed, np.array([2, 3])), "z": g.apply("Slice", mixed, [1], [3], [1])}


@pytest.mark.isa("avx2")
def test_values_that_are_converted_on_the_way_are_halves() -> None:
    g, outputs = decoder()
    small = dnn.Engine(isa="avx2", threads=1, l2_bytes=1 << 19)
    net, wide = (g.compile(engine=small, precision=word, **outputs) for word in ("f16", "f32"))
    assert {name: dtype for name, dtype in types(net, "dst").items() if dtype == "f16"} == {"one": "f16", "two": "f16"}
    x = {"x": random(2, 16, 96, 96) * np.float32(50)}
    found, exact = net.run(x), wide.run(x)
    for name in found:  # sigmoid's slope is 1/4, the factor 2
        largest = np.abs(wide.run(x)["z"]).max() + 16 * 9
        assert 0 < np.abs(found[name] - exact[name]).max() <= HALF_STEP * largest
    assert all(one.fits for one in net.verify(x))
    net.check()
    layouts = [one.segments[0].layout for one in (net, wide)]  # type: ignore[union-attr]
    assert layouts[0].arena_bytes < 0.8 * layouts[1].arena_bytes
    assert expected(net) <= expected(wide)
    assert "precision f16: 3 values are stored so" in net.explain()


def test_named_values_stay_f32() -> None:
    g, outputs = decoder()
    small = dnn.Engine(isa="avx2", threads=1, l2_bytes=1 << 19)
    net = g.compile(engine=small, precision="f16", keep_f32=["one"], **outputs)
    assert "f16" not in types(net, "dst").values()  # what it is joined with would have to be converted


@pytest.mark.isa("avx2")
def test_an_error_that_f16_does_not_keep_brings_f32_back() -> None:
    x = {"x": random(1, K)}
    assert weights_of(compiled(1, max_error=1e-3, feeds=x)) == "f16"
    net = compiled(1, max_error=2e-6, feeds=x)
    assert (weights_of(net), net.precision.keep_f32) == ("f32", ("head",))


@pytest.mark.isa("avx2")
def test_shapes_of_an_open_network_choose_for_themselves() -> None:
    net = compiled("rows")
    for rows in (1, 5, 2):
        x = {"x": random(rows, K)}
        assert np.array_equal(net.run(x)["y"], compiled(rows).run(x)["y"])


@pytest.mark.isa("avx2")
def test_a_pack_and_the_key_of_the_cache(tmp_path: Path) -> None:
    net, x = compiled(1), {"x": random(1, K)}
    net.save(tmp_path / "net.pack")
    assert (tmp_path / "net.pack").stat().st_size < 0.6 * WEIGHTS.nbytes + 2**17
    loaded = dnn.load_network(tmp_path / "net.pack", threads=1)
    assert np.array_equal(loaded.run(x)["y"], net.run(x)["y"])
    assert loaded.precision == net.precision == pickle.loads(pickle.dumps(loaded)).precision
    kept_in_f32 = compiled(1, keep_f32=["head"], io="f16")
    kept_in_f32.save(tmp_path / "f32.pack")
    assert dnn.load_network(tmp_path / "f32.pack", threads=1).precision == Precision("f16", ("head",), "f16")
    words = ("f32", "f16", "bf16", "fast")
    keys = {kept.key_of(b"a model", None, None, engine(), None, Precision(word)) for word in words}
    assert len(keys) in (1, len(words))  # 1: None, where nothing is kept
