"""Networks in pickles, as copies, and from files that are trusted by their sha256."""

import copy
import hashlib
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")


def perceptron(*dims: Any, **options: Any) -> dnn.Network:
    g = dnn.Graph("perceptron")
    x = g.input("x", dims)
    y = g.apply("Relu", x @ random(8, 6))
    y = g.apply("Pad", y, np.array([0, 1, 0, -1]), mode="wrap") if options else y
    return g.compile(y=y, engine=engine(), **options)


@pytest.mark.parametrize("kind", ["native", "open", "numpy"])
def test_a_pickle_computes_the_same(kind: str) -> None:
    net = {
        "native": lambda: perceptron(3, 8),
        "open": lambda: perceptron("n", 8),
        "numpy": lambda: perceptron(3, 8, fallback="numpy"),
    }[kind]()
    x = random(3, 8)
    wanted = net(x)
    other = pickle.loads(pickle.dumps(net))
    assert other is not net
    assert (other.is_open, other.is_native if kind != "open" else True) == (net.is_open, kind != "numpy")
    assert np.array_equal(other(x), wanted)
    assert np.array_equal(pickle.loads(pickle.dumps(other))(x), wanted)  # and of what came from one
    assert copy.deepcopy({"net": net})["net"] is net
    assert copy.copy(net) is net


def test_of_one_shape_of_an_open_network() -> None:
    net = perceptron("n", 8)
    x = random(5, 8)
    assert np.array_equal(pickle.loads(pickle.dumps(net.at({"x": (5, 8)})))(x), net(x))  # type: ignore[attr-defined]


def test_a_pickle_of_a_loaded_pack(tmp_path: Path) -> None:
    net, x = perceptron(3, 8), random(3, 8)
    net.save(tmp_path / "net.pack")
    loaded = dnn.load_network(tmp_path / "net.pack", 1)
    assert np.array_equal(pickle.loads(pickle.dumps(loaded))(x), net(x))


def test_damaged_pickles() -> None:
    function, (image, threads) = perceptron(3, 8).__reduce__()
    for wrong in (b"", image[:-1], image[:5000] + bytes([image[5000] ^ 1]) + image[5001:]):
        with pytest.raises(dnn.InvalidArguments, match="in a pickle"):
            function(wrong, threads)


def call(net: dnn.Network, x: np.ndarray) -> np.ndarray:
    return net(x)


def test_in_another_process() -> None:
    net, x = perceptron(3, 8), random(3, 8)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert np.array_equal(pool.submit(call, net, x).result(), net(x))


def test_a_file_by_its_sha256(tmp_path: Path) -> None:
    net, path, x = perceptron(3, 8), tmp_path / "net.pack", random(3, 8)
    net.save(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for load in (dnn.load_network, dnn.load_pack):
        assert np.array_equal(load(path, 1, sha256=digest.upper())(x), net(x))  # type: ignore[operator]
        with pytest.raises(dnn.InvalidArguments, match=f"has the sha256 {digest}, not {'0' * 64}"):
            load(path, 1, sha256="0" * 64)
        for junk in ("00", "x" * 64, 3, None, b"0" * 64):
            with pytest.raises(dnn.InvalidArguments, match="sha256 must be 64 hexadecimal digits"):
                load(path, 1, sha256=junk)  # type: ignore[arg-type]


def test_only_networks_are_networks(tmp_path: Path) -> None:
    (tmp_path / "x.pack").write_bytes(b"something else")
    with pytest.raises(dnn.InvalidArguments, match="no saved network"):
        dnn.load_network(tmp_path / "x.pack")
    with pytest.raises(dnn.InvalidArguments, match="path"):
        dnn.load_network(3)  # type: ignore[arg-type]
