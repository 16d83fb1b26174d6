"""Networks with open dims: each shape as a network of its own would have it, weights once, and what does not fit."""

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.network.open import OpenNetwork
from asmdnn.runtime.networks import networks
from tests.network import wire
from tests.network.nets import engine, random, reference

pytestmark = pytest.mark.isa("avx2")

SHAPES = [(1, 3, 9, 16), (2, 3, 8, 33), (1, 3, 9, 16), (3, 3, 5, 5), (2, 3, 8, 33), (1, 3, 40, 3)]


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    before = networks.limit_bytes
    networks.clear()
    yield
    dnn.set_memory_limits(networks=before)
    networks.clear()


def recogniser(*dims: Any) -> tuple[dnn.Graph, dict[str, Any]]:
    """Convolutions, a mean over what is open, and a product."""
    g = dnn.Graph("recogniser")
    x = g.input("x", dims or ("batch", 3, None, "width"))
    y = g.apply("Relu", g.apply("Conv", x, random(16, 3, 3, 3), random(16), pads=(1, 1, 1, 1)))
    y = g.apply("Add", y, g.apply("Conv", y, random(16, 16, 3, 3), pads=(1, 1, 1, 1)))
    y = g.apply("GlobalAveragePool", y)
    return g, {"y": g.apply("Flatten", y) @ random(16, 7)}


def open_network(g: dnn.Graph, outputs: dict[str, Any], threads: int = 1, **more: Any) -> OpenNetwork:
    net = g.compile(engine=engine(threads), **more, **outputs)
    assert isinstance(net, OpenNetwork)
    return net


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_each_shape_has_the_bits_of_its_own_network(threads: int) -> None:
    g, outputs = recogniser()
    net = open_network(g, outputs, threads)
    for dims in SHAPES:
        feeds = {"x": random(*dims)}
        alone = g.compile({"x": dims}, engine=engine(1), **outputs)
        result = net.run(feeds)["y"]
        assert np.array_equal(result, alone.run(feeds)["y"])
        assert np.array_equal(result, net(feeds["x"]))
        net.check()
        assert net.outputs == {"y": ((dims[0], 7), np.float32)}
        np.testing.assert_allclose(result, reference(net, feeds)["y"], rtol=0, atol=1e-4)
    assert {shape["x"] for shape in net.shapes} == set(SHAPES)


def test_weights_are_packed_once() -> None:
    g, outputs = recogniser()
    net = open_network(g, outputs)
    shapes = [(1, 3, 16, width) for width in (64, 80, 96, 97)]
    net.prepare({"x": dims} for dims in shapes)
    blobs = [net.at({"x": dims})._native("looked at").runner.weights for dims in shapes]
    assert len({blob.address(0) for blob in blobs}) == 1
    alone = g.compile({"x": shapes[1]}, engine=engine(), **outputs)._native("looked at").runner.weights
    assert np.array_equal(blobs[0].whole(), alone.whole())


def test_weights_of_other_formats_and_data_stay_apart() -> None:
    """A constant that depends on the dims has one name and other data at each shape."""
    g = dnn.Graph()
    x = g.input("x", ("n", 4))
    count = g.apply("Cast", g.apply("Shape", x), to=1)
    y = g.apply("MatMul", x, g.apply("Mul", random(4, 4), g.apply("ReduceSum", count, keepdims=0)))
    net = open_network(g, {"y": y})
    for n in (2, 3, 2, 7):
        feeds = {"x": random(n, 4)}
        assert np.array_equal(net.run(feeds)["y"], g.compile({"x": (n, 4)}, engine=engine(), y=y).run(feeds)["y"])


def test_what_looks_at_a_network_takes_the_last_shape(tmp_path: Path) -> None:
    net = open_network(*recogniser())
    x = random(2, 3, 8, 8)
    with pytest.raises(dnn.InvalidArguments, match=r"no shape is known yet: run the network, or say it by at\("):
        net.explain()
    assert all(difference.fits for difference in net.verify({"x": x}))
    assert "2x3x8x8" in net.explain()
    assert "Conv" in net.profile({"x": random(1, 3, 4, 4)}, 1)
    assert "1x3x4x4" in net.explain()
    assert "<html" in net.page()
    y = np.empty((2, 7), np.float32)
    net.bind(x=x, y=y)()
    assert np.array_equal(y, net(x))
    net.save(tmp_path / "net.asmdnn")
    loaded = dnn.load_pack(tmp_path / "net.asmdnn")
    assert isinstance(loaded, dnn.Network)
    assert np.array_equal(loaded(x), y)
    assert net.inputs["x"] == (("batch", 3, None, "width"), np.float32)
    assert repr(net) == "<OpenNetwork 'recogniser' of x float32[batch, 3, ?, width]>"


def test_names_and_ranges_of_a_caller() -> None:
    g, outputs = recogniser()
    width = dnn.Dim("width", 8, 64, multiple=8)
    net = open_network(g, outputs, shapes={"x": (1, 3, 8, width)})
    assert net.inputs["x"][0] == (1, 3, 8, width)
    assert net(random(1, 3, 8, 24)).shape == (1, 7)
    for dims, message in (
        ((1, 3, 8, 72), "a dim of which is 72, width is from 8 to 64"),
        ((1, 3, 8, 12), "a dim of which is 12, width is a multiple of 8"),
        ((2, 3, 8, 16), r"input x is \[2, 3, 8, 16\], the network takes float32\[1, 3, 8, width\]"),
        ((1, 4, 8, 16), "the network takes"),
        ((1, 3, 8), "the network takes"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=message):
            net(random(*dims))
    assert net(random(1, 3, 8, 24)).shape == (1, 7)


def test_dims_of_one_name_are_equal() -> None:
    g = dnn.Graph()
    a, b = g.input("a", (None, 4)), g.input("b", (None, 4))
    net = open_network(g, {"y": g.apply("Concat", a, b, axis=0)}, shapes={"a": ("n", 4), "b": ("n", 4)})
    assert net.run({"a": random(2, 4), "b": random(2, 4)})["y"].shape == (4, 4)
    with pytest.raises(dnn.InvalidArguments, match="n is 2 in input a and 3 in input b: make them equal"):
        net.run({"a": random(2, 4), "b": random(3, 4)})


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": (1, 4, 8, "width")},
        {"x": (1, 3, 8)},
        {"x": (1, 3, 8, 2.5, "w")},
        {"x": "1x3"},
        {"z": (1, 3, 8, "w")},
        {"x": (1, dnn.Dim("c", 4, 8), 8, 8)},
        {3: (1, 3, 8, 8)},
    ],
)
def test_shapes_that_do_not_fit(shapes: Any) -> None:
    g, outputs = recogniser()
    with pytest.raises(dnn.InvalidArguments):
        g.compile(shapes, engine=engine(), **outputs)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dnn.Dim(""),
        lambda: dnn.Dim(3),  # type: ignore[arg-type]
        lambda: dnn.Dim("n", 5, 4),
        lambda: dnn.Dim("n", -1),
        lambda: dnn.Dim("n", 1, 2.0),  # type: ignore[arg-type]
        lambda: dnn.Dim("n", multiple=0),
    ],
)
def test_dims_that_are_none(make: Any) -> None:
    with pytest.raises(dnn.InvalidArguments, match="Dim"):
        make()


def test_dims_of_fixed_inputs_are_checked_at_known_shapes_too() -> None:
    g = dnn.Graph()
    net = open_network(g, {"y": g.input("x", ("n", 4)) + g.input("bias", (4,))})
    for _ in range(2):
        assert net.at({"x": (2, 4), "bias": (4,)}) is net.at({"x": (2, 4)})
        with pytest.raises(dnn.InvalidArguments, match=r"input bias is \[5\], the network takes float32\[4\]"):
            net.at({"x": (2, 4), "bias": (5,)})


@pytest.mark.parametrize("feeds", [{}, {"x": 3}, {"y": random(1, 3, 4, 4)}, 5, {"x": [[1], [2, 3]]}])
def test_feeds_that_do_not_fit(feeds: Any) -> None:
    net = open_network(*recogniser())
    with pytest.raises(dnn.InvalidArguments):
        net.run(feeds)
    with pytest.raises(dnn.InvalidArguments):
        net.at(feeds)
    assert net(random(1, 3, 4, 4)).shape == (1, 7)


def test_shapes_that_the_model_has_no_room_for() -> None:
    """The network is as good as before after each."""
    g = dnn.Graph()
    x = g.input("x", (1, 1, "h", "w"))
    pooled = g.apply("MaxPool", g.apply("Conv", x, random(4, 1, 3, 3)), kernel_shape=(2, 2), strides=(2, 2))
    net = open_network(g, {"y": pooled})
    y = net(first := random(1, 1, 8, 8))
    for dims in ((1, 1, 2, 5), (1, 1, 3, 3)):
        with pytest.raises(dnn.InvalidArguments, match="does not fit into"):
            net(random(*dims))
    with pytest.raises((dnn.OutOfMemory, dnn.InvalidArguments)):
        net.prepare([{"x": (1, 1, 1 << 30, 1 << 30)}])
    assert np.array_equal(net(first), y)


LOOK_UPS: dict[str, Any] = {
    "Gather": lambda x, i: x[i], "GatherElements": lambda x, i: np.take_along_axis(x[:, :1], i, 0),
    "GatherND": lambda x, i: x[i[:, 0]],
}  # fmt: skip


@pytest.mark.parametrize("op", LOOK_UPS)
def test_indices_that_are_none(op: str) -> None:
    """Of a call, at a shape that is known and at one that is not."""
    g = dnn.Graph()
    x, i = g.input("x", ("n", 4)), g.input("i", ("m", 1), np.int64)
    net = open_network(g, {"y": g.apply(op, x, i)})
    for rows in (3, 3, 5):
        data, good = random(rows, 4), np.array([[0], [rows - 1], [-rows]])
        assert np.array_equal(net.run({"x": data, "i": good})["y"], LOOK_UPS[op](data, good))
        for bad in (rows, -rows - 1, 1 << 40):
            with pytest.raises(dnn.InvalidArguments):
                net.run({"x": data, "i": np.array([[0], [bad], [0]])})


def test_numbers_up_to_an_open_dim() -> None:
    g = dnn.Graph()
    x = g.input("x", ("n", 3))
    count = g.apply("Squeeze", g.apply("Shape", x, start=0, end=1), np.array([0]))
    places = g.apply("Range", np.array(0), count, np.array(1))
    y = x + g.apply("Unsqueeze", g.apply("Cast", places, to=1), np.array([1]))
    net = open_network(g, {"y": y})
    for n in (2, 5, 1, 2):
        data = random(n, 3)
        assert np.array_equal(net(data), data + np.arange(n, dtype=np.float32)[:, None])


def test_shapes_are_bounded_in_bytes_and_the_last_one_stays() -> None:
    net = open_network(*recogniser())
    dnn.set_memory_limits(networks=0)
    feeds = [random(1, 3, 8, n) for n in range(1, 40)]
    wanted = [net(x) for x in feeds]
    assert net.shapes == []
    assert net.at({"x": feeds[-1].shape}) is net.last
    assert np.array_equal(net(feeds[3]), wanted[3])
    dnn.set_memory_limits(networks=1 << 30)
    for x in feeds:
        net(x)
    assert len(net.shapes) == len(feeds)
    assert 0 < dnn.memory_report().networks.held_bytes < len(feeds) << 20
    del net
    gc.collect()
    assert dnn.memory_report().networks.count == 0


def test_weights_go_with_the_shapes_that_read_them() -> None:
    """A constant that depends on an open dim gives each shape weights of its own: they are counted, and go with it.
    All others are held once."""
    g = dnn.Graph("table")
    x = g.input("x", ("n", 64))
    rows = g.apply("Slice", random(600, 64), np.array([0]), g.apply("Shape", x, start=0, end=1), np.array([0]))
    net = open_network(g, {"y": g.apply("Add", x, rows) @ random(64, 256)})
    common, one, most = 64 * 256 * 4, 500 * 64 * 4, 538 * 64 * 4
    dnn.set_memory_limits(networks=0)
    shapes = [(n, 64) for n in range(500, 538)]
    for dims in shapes:
        net(random(*dims))
    gc.collect()
    pool = net.last.planned().segments[0].pool  # type: ignore[union-attr]
    assert common + one <= pool.size_bytes <= common + 2 * most  # the table of the first shape lies beside the weights
    dnn.set_memory_limits(networks=20 * one)
    for dims in shapes:
        net(random(*dims))
    gc.collect()
    assert 5 < len(net.shapes) < 21
    assert common + len(net.shapes) * one <= pool.size_bytes <= common + (len(net.shapes) + 2) * most
    assert (len(net.shapes) - 2) * one < dnn.memory_report().networks.held_bytes <= 21 * most


def test_threads_may_bring_new_shapes_at_once() -> None:
    net = open_network(*recogniser())
    feeds = [random(1, 3, 6, n % 4 + 4) for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(net, feeds))
    for x, result in zip(feeds, results, strict=True):
        assert np.array_equal(net(x), result)
    assert len(net.shapes) == 4


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    node = [wire.node("Relu", ["x"], ["y"])]
    made = {
        "batch": wire.graph(node, {"x": ("batch", 4)}, ["y"], {}),
        "image": wire.graph(node, {"x": ("batch", 3, "height", "")}, ["y"], {}),
        "mask": wire.graph(
            [wire.node("Mul", ["x", "m"], ["y"])], {"x": ("batch", "tokens"), "m": ("batch", "tokens")}, ["y"], {}
        ),
    }
    for name, graph in made.items():
        (tmp_path / f"{name}.onnx").write_bytes(wire.model(graph))
    return {name: str(tmp_path / f"{name}.onnx") for name in made}


def test_a_file_takes_any_batch(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    net = dnn.load_onnx(files["batch"], engine=engine())
    for n in (1, 5, 2):
        x = random(n, 4)
        assert np.array_equal(net(x), np.maximum(x, 0))
    assert main(["run", "--threads=1", files["batch"]]) == 0
    assert "y float32 1x4 from" in capsys.readouterr().out


def test_the_command_asks_for_other_dims(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--threads=1", files["image"]]) == 2
    error = capsys.readouterr().err
    assert "x float32[batch, 3, height, ?]: say dims that are open, such as --shape=x:1x3x64x64" in error
    assert main(["run", "--threads=1", "--shape=x:1x3x64x64", files["image"]]) == 0
    assert main(["run", "--threads=1", files["mask"]]) == 2
    assert capsys.readouterr().err.rstrip().endswith("such as --shape=x:1x64")
    assert main(["run", "--threads=1", "--shape=x:2x5", files["mask"]]) == 0
    assert "y float32 2x5 from" in capsys.readouterr().out


def test_what_looks_at_a_network_takes_a_shape(tmp_path: Path) -> None:
    """Of one that was never run; without one it is the last that was run or asked for."""
    g, outputs = recogniser()
    net = open_network(g, outputs)
    with pytest.raises(dnn.InvalidArguments, match="no shape is known yet"):
        net.check()
    small, large = {"x": (1, 3, 9, 16)}, {"x": (2, 3, 8, 33)}
    net.check(small)
    assert "x 1x3x9x16" in net.explain()
    assert "x 2x3x8x33" in net.explain(large) and "x 2x3x8x33" in net.explain()
    assert "1x16x9x16" in net.page(shape=small)
    net.dump(tmp_path / "dumped", ("bin",), shape=large)
    assert "x 2x3x8x33" in (tmp_path / "dumped" / "network.txt").read_text()
    net.save(tmp_path / "one.pack", shape=small)
    alone = dnn.load_network(tmp_path / "one.pack", threads=1)
    assert not isinstance(alone, OpenNetwork) and alone.inputs["x"][0] == small["x"]
    x = random(*small["x"])
    assert np.array_equal(alone(x), net(x))
    net.save(tmp_path / "all.pack")
    every = dnn.load_network(tmp_path / "all.pack", threads=1)
    assert isinstance(every, OpenNetwork) and len(every.shapes) == 2
    every.check(large)
    with pytest.raises(dnn.InvalidArguments, match=r"has 2 shapes.*none for x 1x3x4x4"):
        every.explain({"x": (1, 3, 4, 4)})


@pytest.mark.parametrize("shape", [{"x": (1, 3, 9)}, {"y": (1, 3, 9, 9)}, {"x": (1, 4, 9, 9)}, 7, {"x": None}])
def test_shapes_that_do_not_fit_are_no_shapes_to_look_at(shape: Any, tmp_path: Path) -> None:
    net = open_network(*recogniser())
    for look in (net.check, net.explain):
        with pytest.raises(dnn.InvalidArguments):
            look(shape)
    for look in (lambda: net.page(shape=shape), lambda: net.save(tmp_path / "pack", shape=shape)):
        with pytest.raises(dnn.InvalidArguments):
            look()
    with pytest.raises(dnn.InvalidArguments, match="leave one of them out"):
        net.page({"x": random(1, 3, 9, 9)}, shape={"x": (1, 3, 9, 9)})
