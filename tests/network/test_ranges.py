"""Ranges of open dims: all their shapes are planned ahead, and none of them generates a kernel later."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from asmdnn.cli.shape_words import several_dims
from asmdnn.network.dims import open_dims
from asmdnn.network.graph import TensorType
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs.kept_shapes import KeptShapes
from asmdnn.network.ranges import MOST_SHAPES, shapes_of
from asmdnn.runtime.kernels import kernel_cache
from asmdnn.runtime.networks import networks
from tests.network import wire
from tests.network.nets import engine, random
from tests.network.test_open import open_network, recogniser

pytestmark = pytest.mark.isa("avx2")

F32 = np.dtype(np.float32)
WIDTHS = dnn.Dim("width", 8, 40, multiple=8)
RANGE = {"x": (dnn.Dim("batch", 1, 2), 3, 9, WIDTHS)}
ALL = [(batch, 3, 9, width) for batch in (1, 2) for width in range(8, 41, 8)]


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    before = networks.limit_bytes
    networks.clear()
    yield
    dnn.set_memory_limits(networks=before)
    networks.clear()


def fresh_kernels(patch: pytest.MonkeyPatch) -> None:
    """Nothing on disk; what is generated is counted."""
    patch.setattr(kernel_cache(), "_store", None)


def no_kernels(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(kernel_cache(), "_generate", None)


@pytest.mark.parametrize("threads", [1, 3])
def test_no_shape_of_a_range_generates_a_kernel(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its schedule is dropped, and nothing is on disk."""
    fresh_kernels(monkeypatch)
    g, outputs = recogniser()
    net = open_network(g, outputs, threads, shapes=RANGE)
    dnn.set_memory_limits(networks=1 << 16)
    done = []
    net.prepare(progress=lambda *how_far: done.append(how_far))
    assert done == [(i, len(ALL)) for i in range(len(ALL))]
    assert len(net.shapes) < len(ALL) / 2
    with monkeypatch.context() as patch:
        no_kernels(patch)
        before = kernel_cache().counts.generated
        feeds = {dims: random(*dims) for dims in reversed(ALL)}
        found = {dims: net(x) for dims, x in feeds.items()}
        assert kernel_cache().counts.generated == before
    (line,) = net.explain().splitlines()[-1:]
    assert f"prepared for {len(ALL)} shapes, which need no other than these" in line
    for dims, y in found.items():
        own = g.compile({"x": dims}, engine=engine(1), **outputs)
        np.testing.assert_array_equal(y, own(feeds[dims]))


@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (1, "progress must be a function of two numbers, or None, not 1"),
        (lambda done: None, r"progress\(0, \d+\) raised .*TypeError"),
    ],
)
def test_what_is_no_progress(progress: Any, said: str) -> None:
    g, outputs = recogniser()
    net = open_network(g, outputs, 1, shapes=RANGE)
    with pytest.raises(dnn.InvalidArguments, match=said):
        net.prepare(progress=progress)
    net.prepare([dict.fromkeys(net.inputs, ALL[0])])  # the network is usable


def test_without_preparing_kernels_are_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above may fail."""
    fresh_kernels(monkeypatch)
    g = dnn.Graph("with kernels that no other test here has")
    y = g.apply("Conv", g.input("x", ("n", 3, 9, "w")), random(40, 3, 5, 3), pads=(2, 1, 2, 1))
    net = open_network(g, {"y": g.apply("Sigmoid", y)})
    net.prepare([{"x": ALL[0]}])
    before = kernel_cache().counts.generated
    for dims in ALL[1:]:
        net(random(*dims))
    assert kernel_cache().counts.generated > before


def test_a_pack_has_all_shapes_of_a_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose schedules were dropped."""
    fresh_kernels(monkeypatch)
    net = open_network(*recogniser(), shapes=RANGE)
    dnn.set_memory_limits(networks=1 << 16)
    net.prepare()
    last = net.last
    net.save(tmp_path / "net.pack")
    assert net.last is last
    feeds = {dims: random(*dims) for dims in ALL}
    wanted = {dims: net(x) for dims, x in feeds.items()}
    no_kernels(monkeypatch)
    other = dnn.load_network(tmp_path / "net.pack", 1)
    assert isinstance(other, OpenNetwork)
    assert sorted(each["x"] for each in other.shapes) == ALL
    for dims, y in wanted.items():
        np.testing.assert_array_equal(other(feeds[dims]), y)
    assert f"the file has {len(ALL)} shapes, and" in other.explain()
    other.prepare()
    with pytest.raises(dnn.InvalidArguments, match="a dim of which is 44, width is from 8 to 40"):
        other(random(1, 3, 9, 44))


INPUTS = {
    "ids": TensorType(F32, ("batch", "tokens")),
    "mask": TensorType(F32, ("batch", "tokens")),
    "table": TensorType(F32, (None, 4)),
}
TOKENS, ROWS = dnn.Dim("tokens", 3, 5), dnn.Dim("rows", 1, 2)


@pytest.mark.parametrize(
    ("loaded", "asked", "wanted"),
    [
        # Dims of one name have one size; what a file calls the same is the same where nobody says otherwise.
        ({"ids": (1, TOKENS), "mask": (1, TOKENS)}, {"table": (2, 4)}, [(n, n, 2) for n in (3, 4, 5)]),
        ({}, {"ids": (1, TOKENS), "mask": (1, None), "table": (1, 4)}, [(n, n, 1) for n in (3, 4, 5)]),
        ({}, {"ids": (1, dnn.Dim("a", 1, 2)), "mask": (1, dnn.Dim("b", 3, 4)), "table": (1, 4)},
         [(a, b, 1) for a in (1, 2) for b in (3, 4)]),
        ({}, {"ids": (1, dnn.Dim("n", 1, 2)), "mask": (1, "n"), "table": ("n", 4)}, [(n, n, n) for n in (1, 2)]),
        # Both ranges hold, and multiples of both.
        ({"ids": (1, dnn.Dim("n", 0, 60, multiple=6))}, {"ids": (1, dnn.Dim("m", 10, 99, multiple=4)),
         "mask": (1, 7), "table": (ROWS, 4)}, [(n, 7, r) for n in (12, 24, 36, 48, 60) for r in (1, 2)]),
        # A number that a caller has said fixes all dims of that name.
        ({"ids": (1, TOKENS), "mask": (1, TOKENS)}, {"ids": (1, 4), "table": (ROWS, 4)}, [(4, 4, r) for r in (1, 2)]),
    ],
)  # fmt: skip
def test_shapes_of_ranges(loaded: Any, asked: Any, wanted: list[tuple[int, int, int]]) -> None:
    dims = open_dims(INPUTS, loaded, ())
    shapes, is_range = shapes_of(dims, asked)
    assert is_range
    assert [(each["ids"][1], each["mask"][1], each["table"][0]) for each in shapes] == wanted
    for each in shapes:
        dims.check(dict(each))


def test_several_ranges_and_shapes() -> None:
    dims = open_dims({"x": TensorType(F32, ("n",))}, {}, ())
    asked = [{"x": (dnn.Dim("n", 1, 3),)}, {"x": (9,)}, {"x": (dnn.Dim("n", 20, 30, multiple=10),)}]
    assert [each["x"] for each in shapes_of(dims, asked)[0]] == [(1,), (2,), (3,), (9,), (20,), (30,)]
    assert shapes_of(dims, [{"x": (9,)}]) == ([{"x": (9,)}], False)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (None, "batch of x float32.* has no largest size: give it a range, as dnn.Dim.'batch', 1, 64."),
        ({"x": (1, 3, 9, dnn.Dim("w", 8))}, "w of .* has no largest size: give it a range"),
        ({"x": (1, 3, 9, dnn.Dim("w", 9, 15, multiple=8))}, "w has no size that all of its ranges allow: make"),
        ({"x": (dnn.Dim("w", 1, 5), 3, 9, dnn.Dim("w", 6, 9))}, "w has no size that all of its ranges allow"),
        ({"x": (dnn.Dim("b", 1, 101), 3, 9, dnn.Dim("w", 1, 100))},
         f"prepare takes {MOST_SHAPES} shapes, and there are 10100 of 101 b, 100 w: give dims a multiple"),
        ([{"x": (1, 3, 9, dnn.Dim("w", 1, 9000))}] * 2, "and there are 18000 of 2 ranges"),
        ({"x": (1, 3, dnn.Dim("w", 1, 9))}, "does not fit the model's"),
        ({"y": (1, None)}, "'y' is no input of the model"),
        ({"x": (1, dnn.Dim("c", 1, 9), 9, 8)}, None),
        ({"x": (1, dnn.Dim("c", 4, 9), 9, 8)}, "does not fit the model's"),
        (5, "shapes must be several"),
        ({"x": 5}, "shapes must be dims"),
        ([None], "shapes must have dims of x"),
    ],
)  # fmt: skip
def test_ranges_that_cannot_be_prepared(asked: Any, said: str | None) -> None:
    net = open_network(*recogniser())
    if said is None:
        net.prepare(asked)
        assert net.shapes == [{"x": (1, 3, 9, 8)}]
        return
    with pytest.raises(dnn.InvalidArguments, match=said) as error:
        net.prepare(asked)
    assert str(error.value).count(". ") == 0
    assert net.shapes == []
    assert net(random(1, 3, 4, 4)).shape == (1, 7)


def test_a_shape_in_a_range_that_does_not_fit_the_model() -> None:
    g = dnn.Graph()
    net = open_network(g, {"y": g.apply("Conv", g.input("x", (1, 1, "h", 8)), random(4, 1, 3, 3))})
    with pytest.raises(dnn.InvalidArguments, match="does not fit into"):
        net.prepare({"x": (1, 1, dnn.Dim("h", 1, 4), 8)})
    assert net(random(1, 1, 4, 8)).shape == (1, 4, 2, 6)


def test_dims_as_words() -> None:
    wanted = [(b, 3, w) for b, w in product((1, 2), (16, 24))]
    assert several_dims("x", "1..2x3x10..24/8") == wanted
    assert several_dims("x", "4x3x7,1..2x3x10..24/8") == [(4, 3, 7), *wanted]
    assert several_dims("x", "1x3x48x320") == [(1, 3, 48, 320)]


@pytest.fixture
def model(tmp_path: Path) -> str:
    node = wire.node("MatMul", ["x", "w"], ["y"])
    path = tmp_path / "open.onnx"
    path.write_bytes(wire.model(wire.graph([node], {"x": ("n", 8)}, ["y"], {"w": random(8, 16)})))
    return str(path)


@pytest.mark.parametrize("most", [2, 64])
def test_shapes_of_short_ranges_are_kept_on_disk(model: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of long ones are not, at their first call either: writing one takes as long as planning it."""
    kept = list[Any]()

    def put(self: KeptShapes, dims: Any, network: dnn.Network) -> bool:
        is_ready = all(part.is_ready for part in network._runnable.natives)
        kept.extend([dims] * is_ready)
        return is_ready

    monkeypatch.setattr("asmdnn.network.open.MOST_KEPT", most)
    monkeypatch.setattr(KeptShapes, "put", put)
    monkeypatch.setattr(KeptShapes, "find", lambda *_: None)
    net = dnn.load_onnx(model, {"x": (dnn.Dim("n", 11, 13), 8)}, engine=engine(1))
    assert isinstance(net, OpenNetwork)
    net.prepare()
    for n in (11, 12, 13):
        net(random(n, 8))
    assert kept == ([{"x": (n, 8)} for n in (11, 12, 13)] if most > 2 else [])


def test_the_command_packs_ranges(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "--shape=x:2..8/2x8,1x8", "--threads=1", model, f"--output={tmp_path}/net.pack"]) == 0
    net = dnn.load_network(tmp_path / "net.pack", 1)
    assert isinstance(net, OpenNetwork)
    assert [each["x"][0] for each in net.shapes] == [2, 4, 6, 8, 1]
    capsys.readouterr()
    assert main(["run", "--shape=x:1..2x8", "--threads=1", model]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("x:")] == ["x:1x8", "x:2x8"]


def test_the_command_packs_nodes_in_numpy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [wire.node("Cast", ["x"], ["i"], to=7), wire.node("BitwiseNot", ["i"], ["n"]),
             wire.node("BitwiseAnd", ["n", "i"], ["y"])]  # fmt: skip
    path = tmp_path / "bits.onnx"
    path.write_bytes(wire.model(wire.graph(nodes, {"x": ("n", 3)}, ["y"]), opset=18))
    words = ["pack", "--threads=1", "--shape=x:1..2x3", str(path), f"--output={tmp_path}/net.pack"]
    assert main(words) == 2 and "fallback='numpy' computes" in capsys.readouterr().err
    assert main([*words, "--fallback=numpy"]) == 0
    assert main([*words, "--fallback=nump"]) == 2 and "fallback must be None or 'numpy'" in capsys.readouterr().err
    net = dnn.load_network(tmp_path / "net.pack", 1)
    x = random(2, 3) * 9
    np.testing.assert_array_equal(net(x), np.zeros((2, 3), np.int64))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shape=x:9..2x8"], "9..2 has no sizes: say one such as 8..64/8"),
        (["--shape=x:9..15/8x8"], "9..15/8 has no sizes"),
        (["--shape=x:1..9/0x8"], "1..9/0 has no sizes"),
        (["--shape=x:1..x8"], "has no dims such as 1x3x48x320, or 1x3x48x32..640/8"),
        (["--shape=x:1..10001x8"], "has more than 10000 shapes: say larger steps"),
        (["--shape=x:1..2x8", "--max-error=0.1"], "--max-error is kept at one shape"),
    ],
)
def test_ranges_that_the_command_refuses(
    words: list[str], said: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pack", *words, model, f"--output={tmp_path}/net.pack"]) == 2
    assert said in capsys.readouterr().err
