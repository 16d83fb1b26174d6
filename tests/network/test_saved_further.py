"""Shapes that the file of an open network does not have, from the network of its model."""

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.open import OpenNetwork
from tests.network import wire
from tests.network.nets import random

pytestmark = pytest.mark.isa("avx2")

SAVED, OTHER = [(1, 8, 9, 16), (2, 8, 8, 24)], [(1, 8, 9, 24), (3, 8, 5, 7)]
W, V = random(16, 8, 3, 3), random(4, 16, 1, 1)
ENGINE = dnn.Engine(isa="avx2", threads=1)


def model(w: np.ndarray[Any, Any] = W) -> bytes:
    nodes = [wire.node("Conv", ["x", "w"], ["h"], pads=[1] * 4), wire.node("Relu", ["h"], ["r"]),
             wire.node("Conv", ["r", "v"], ["c"]), wire.node("Mul", ["c", "s"], ["y"])]  # fmt: skip
    return wire.model(wire.graph(nodes, {"x": ("n", 8, "h", "w"), "s": ()}, ["y"], {"w": w, "v": V}))


def network(
    w: np.ndarray[Any, Any] = W, scale: float = 2, precision: str = "f32", engine: dnn.Engine = ENGINE
) -> dnn.Network:
    return dnn.load_onnx(model(w), constants={"s": np.float32(scale)}, engine=engine, precision=precision)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    net, path = network(), tmp_path_factory.mktemp("further") / "net.pack"
    assert isinstance(net, OpenNetwork)
    net.prepare({"x": dims} for dims in SAVED)
    net.save(path)
    return path


class Calls:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> dnn.Network:
        self.count += 1
        return network()


def test_further_shapes_are_planned_of_the_model_which_is_read_when_the_first_one_comes(
    file: Path, tmp_path: Path
) -> None:
    load, alone = Calls(), network()
    net: Any = dnn.load_pack(file, 1, further=load)
    for dims in SAVED:
        x = random(*dims)
        assert net(x).tobytes() == alone(x).tobytes()
    assert load.count == 0
    for dims in [*OTHER, *SAVED, *OTHER]:
        x = random(*dims)
        assert net(x).tobytes() == alone(x).tobytes()
    assert load.count == 1
    assert [shape["x"] for shape in net.shapes] == [*SAVED, *OTHER]
    net.check()
    net.save(tmp_path / "more.pack")
    more: Any = dnn.load_network(tmp_path / "more.pack", 1)
    assert sorted(shape["x"] for shape in more.shapes) == sorted([*SAVED, *OTHER])
    for dims in OTHER:
        x = random(*dims)
        assert more(x).tobytes() == alone(x).tobytes()
    again: Any = dnn.load_network(tmp_path / "more.pack", 1, further=load)
    assert again(random(1, 8, 4, 4)).shape == (1, 4, 4, 4)


def test_it_pickles_with_what_loads_the_model(file: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(model())
    load = partial(dnn.load_onnx, tmp_path / "model.onnx", constants={"s": np.float32(2)}, engine=ENGINE)
    net: Any = pickle.loads(pickle.dumps(dnn.load_pack(file, 1, further=load)))
    x = random(*OTHER[0])
    assert net(x).tobytes() == network()(x).tobytes()


def raising() -> dnn.Network:
    raise KeyError("nowhere")


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (partial(network, W + 1), "another model"),
        (partial(network, W, 3), "other constants"),
        (partial(network, W, 2, "bf16"), "another precision"),
        (partial(network, engine=dnn.Engine(isa="avx512_core", threads=1)), "for avx512_core, and .* is for avx2"),
        (lambda: network().at({"x": SAVED[0]}), "must give a network with open dims"),
        (lambda: None, "must give a network with open dims, not None"),
        (raising, r"further\(\) raised KeyError"),
        (partial(dnn.load_onnx, "nowhere.onnx"), "nowhere.onnx"),
    ],
)
def test_what_is_no_network_of_this_model_is_refused(file: Path, load: Any, words: str) -> None:
    net: Any = dnn.load_pack(file, 1, further=load)
    x = random(*SAVED[0])
    wanted = network()(x).tobytes()
    for _ in range(2):
        with pytest.raises(dnn.InvalidArguments, match=words):
            net(random(*OTHER[0]))
        assert net(x).tobytes() == wanted


def test_other_packs_have_no_further_shapes(file: Path, tmp_path: Path) -> None:
    with pytest.raises(dnn.InvalidArguments, match="further must be a function"):
        dnn.load_pack(file, 1, further=3)  # type: ignore[arg-type]
    net: Any = network()
    net.save(tmp_path / "one.pack", shape={"x": SAVED[0]})
    with pytest.raises(dnn.InvalidArguments, match="has none: leave it out"):
        dnn.load_pack(tmp_path / "one.pack", 1, further=network)
    graph = dnn.Graph("state")
    past = graph.state("past", (1, 4), np.float32)
    x = graph.input("x", ("n", 4))
    graph.update(past, graph.apply("ReduceSum", x, np.array((0,))))
    kept: Any = graph.compile(y=x + past, engine=ENGINE)
    kept(np.ones((2, 4), np.float32))
    kept.save(tmp_path / "state.pack")
    with pytest.raises(dnn.InvalidArguments, match="has states, which no other network shares"):
        dnn.load_pack(tmp_path / "state.pack", 1, further=network)
