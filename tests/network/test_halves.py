"""Floats of 16 bits: in files, at the ends of a network, in packs and in the cache."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.element_types import CODES
from tests.network import wire
from tests.network.nets import engine, random

ml_dtypes = pytest.importorskip("ml_dtypes", reason="numpy's type of bf16: pip install ml_dtypes")
pytestmark = pytest.mark.isa("avx2")
BF16 = np.dtype(ml_dtypes.bfloat16)
HALVES = (np.dtype(np.float16), BF16)
STEP = {np.dtype(np.float16): 2.0**-11, BF16: 2.0**-8}  # half a step of rounding


def declared(name: str, dtype: np.dtype[Any], *dims: int) -> bytes:
    shape = wire.message([(1, wire.message([(1, n)])) for n in dims])
    kind = wire.message([(1, wire.message([(1, CODES[dtype.name]), (2, shape)]))])
    return wire.message([(1, name), (2, kind)])


def tensor(name: str, array: np.ndarray) -> bytes:
    fields = [*[(1, n) for n in array.shape], (2, CODES[array.dtype.name]), (8, name), (9, array.tobytes())]
    return wire.message(fields)


def model(dtype: np.dtype[Any]) -> tuple[bytes, np.ndarray, np.ndarray]:
    """Relu(x w) + 1 of 16 bits throughout, and a Cast of it to f32."""
    w, one = random(24, 40).astype(dtype), np.ones(1, dtype)
    nodes = [
        wire.node("MatMul", ["x", "w"], ["p"]),
        wire.node("Relu", ["p"], ["r"]),
        wire.node("Add", ["r", "one"], ["y"]),
        wire.node("Cast", ["y"], ["wide"], to=1),
    ]
    fields = [*[(1, node) for node in nodes], (5, tensor("w", w)), (5, tensor("one", one))]
    fields += [(11, declared("x", dtype, 6, 24)), (12, declared("y", dtype, 6, 40))]
    fields += [(12, declared("wide", np.dtype(np.float32), 6, 40))]
    return wire.model(wire.message(fields), 22), random(6, 24).astype(dtype), w


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("threads", [1, 2])
def test_files_of_halves_are_native(dtype: np.dtype[Any], threads: int, tmp_path: Path) -> None:
    """Products are of the widened numbers, results are rounded once, and a pack answers alike."""
    data, x, w = model(dtype)
    net = dnn.load_onnx(data, engine=engine(threads))
    assert net.refused == {}
    assert net.inputs["x"][1] == net.outputs["y"][1] == dtype
    found = net.run({"x": x})
    exact = np.maximum(x.astype(np.float64) @ w.astype(np.float64), 0) + 1
    assert found["y"].dtype == dtype and found["wide"].dtype == np.float32
    bound = 25 * 2.0**-24 * (np.abs(x).astype(np.float64) @ np.abs(w).astype(np.float64) + 1)
    assert (np.abs(found["wide"] - exact) <= bound).all()
    assert (np.abs(found["y"].astype(np.float64) - exact) <= bound + STEP[dtype] * exact * 1.01).all()
    net.check()
    assert all(one.fits for one in net.verify({"x": x}))
    net.save(tmp_path / "net.pack")
    again = dnn.load_network(tmp_path / "net.pack").run({"x": x})
    assert all(again[name].tobytes() == found[name].tobytes() for name in found)


@pytest.mark.parametrize("dtype", HALVES)
def test_bound_calls_take_halves(dtype: np.dtype[Any]) -> None:
    data, x, _ = model(dtype)
    net = dnn.load_onnx(data, engine=engine())
    y, wide = np.zeros((6, 40), dtype), np.zeros((6, 40), np.float32)
    net.bind(x=x, y=y, wide=wide)()
    assert y.tobytes() == net.run({"x": x})["y"].tobytes()


def graph() -> tuple[dnn.Graph, Any]:
    g = dnn.Graph()
    y = g.apply("Relu", g.apply("Conv", g.input("x", (1, 8, 9, 9)), random(16, 8, 3, 3), pads=(1, 1, 1, 1)))
    return g, y


@pytest.mark.parametrize("io", ["bf16", "f16"])
def test_ends_have_the_type_that_is_said(io: str) -> None:
    """The numbers of f32, for inputs that were rounded before, rounded at the end."""
    g, y = graph()
    dtype = BF16 if io == "bf16" else np.dtype(np.float16)
    net, wide = g.compile(y=y, io=io, engine=engine()), g.compile(y=y, engine=engine())
    x = random(1, 8, 9, 9).astype(dtype)
    assert net.inputs["x"][1] == net.outputs["y"][1] == dtype
    assert net(x).tobytes() == wide(x.astype(np.float32)).astype(dtype).tobytes()
    with pytest.raises(dnn.InvalidArguments, match="the network takes"):
        net(x.astype(np.float32))


@pytest.mark.parametrize("dtype", HALVES)
def test_files_of_halves_with_ends_of_f32(dtype: np.dtype[Any]) -> None:
    data, x, _ = model(dtype)
    net = dnn.load_onnx(data, io="f32", engine=engine())
    assert {net.inputs["x"][1], net.outputs["y"][1]} == {np.dtype(np.float32)}
    wide = net.run({"x": x.astype(np.float32)})
    assert np.array_equal(wide["y"], wide["wide"])
    assert wide["y"].tobytes() == dnn.load_onnx(data, engine=engine()).run({"x": x})["wide"].tobytes()


def test_integers_keep_their_type() -> None:
    g = dnn.Graph()
    ids = g.input("ids", (3,), np.int64)
    table = random(5, 4)
    net = g.compile(y=g.apply("Gather", table, ids), io="f16", engine=engine())
    assert net.inputs["ids"][1] == np.int64 and net.outputs["y"][1] == np.float16
    assert np.array_equal(net(np.array([0, 4, 2])), table.astype(np.float16)[[0, 4, 2]])


def test_states_stay_f32() -> None:
    g = dnn.Graph()
    s, x = g.state("s", (4,)), g.input("x", (4,))
    g.update(s, s + x)
    net = g.compile(y=s + x, io="f16", engine=engine())
    for count in (1, 2):
        assert np.array_equal(net.run({"x": np.ones(4, np.float16)})["y"], np.full(4, count, np.float16))
    assert net.state["s"].dtype == np.float32


@pytest.mark.parametrize("io", ["int8", "", 3, None])
def test_unknown_words_are_refused(io: Any) -> None:
    g, y = graph()
    with pytest.raises(dnn.InvalidArguments, match="io must be one of file, f32, bf16, f16, not"):
        g.compile(y=y, io=io, engine=engine())


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from asmdnn.network import passing

    monkeypatch.setattr(passing, "extension_type", lambda name: None)
    g, y = graph()
    with pytest.raises(dnn.Unimplemented, match="pip install ml_dtypes"):
        g.compile(y=y, io="bf16", engine=engine())
