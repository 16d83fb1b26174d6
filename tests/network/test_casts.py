"""Integer inputs that become numbers: natively, rounded as numpy rounds them, and never read in part."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.softmax import softmax
from asmdnn.network.element_types import extension_type
from tests.network.nets import engine, random, reference

pytestmark = pytest.mark.isa("avx2")


def masked(dtype: type) -> tuple[dnn.Graph, dict[str, Any]]:
    """Attention's scores with a mask of integers, as text encoders have it, and the mask as it is."""
    g = dnn.Graph("masked")
    mask, scores = g.input("mask", (3, 7), dtype), g.input("scores", (3, 2, 7, 7))
    lifted = g.apply("Unsqueeze", g.apply("Unsqueeze", mask, np.array([1])), np.array([2]))
    left_out = (1.0 - g.apply("Cast", lifted, to=1)) * -10_000.0
    return g, {"y": g.apply("Softmax", scores + left_out, axis=-1), "plain": g.apply("Cast", mask, to=1)}


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("threads", [1, 2])
def test_masks_are_native(dtype: type, threads: int, tmp_path: Path) -> None:
    g, outputs = masked(dtype)
    net = g.compile(engine=engine(threads), **outputs)
    feeds = {"mask": np.random.default_rng(0).integers(0, 2, (3, 7), dtype), "scores": random(3, 2, 7, 7)}
    found = net.run(feeds)
    wide = feeds["scores"] + (1.0 - feeds["mask"][:, None, None].astype(np.float64)) * -10_000.0
    np.testing.assert_allclose(found["y"], softmax(wide), rtol=0, atol=1e-6)
    assert np.array_equal(found["plain"], feeds["mask"])
    assert net.refused == {}
    net.check()
    assert all(difference.fits for difference in net.verify(feeds))
    net.save(tmp_path / "net")
    loaded = dnn.load_pack(tmp_path / "net", threads)
    assert isinstance(loaded, dnn.Network)
    assert np.array_equal(loaded.run(feeds)["y"], found["y"])


MOVES: dict[str, tuple[list[tuple[str, tuple[Any, ...], dict[str, Any]]], Callable[[Any], Any]]] = {
    "none": ([], lambda x: x),
    "reshape": ([("Reshape", (np.array([4, 3]),), {})], lambda x: x.reshape(4, 3)),
    "transpose": (
        [("Transpose", (), {"perm": (1, 0)}), ("Unsqueeze", (np.array([0]),), {})],
        lambda x: x.transpose()[None],
    ),
    "slice": (
        [("Slice", tuple(np.array([n]) for n in (1, 5, 1, 2)), {}), ("Flatten", (), {"axis": 0})],
        lambda x: x[:, 1:5:2].reshape(1, -1),
    ),
    "expand": (
        [("Unsqueeze", (np.array([2]),), {}), ("Expand", (np.array([2, 6, 5]),), {})],
        lambda x: np.broadcast_to(x[:, :, None], (2, 6, 5)),
    ),
}


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_moved_numbers_of_all_sizes(dtype: type, moves: str) -> None:
    """Rounded to nearest even where f32 has fewer bits."""
    nodes, moved = MOVES[moves]
    g = dnn.Graph()
    x = g.input("x", (2, 6), dtype)
    for op, operands, attributes in nodes:
        x = g.apply(op, x, *operands, **attributes)
    y = g.apply("Cast", x, to=1)
    net = g.compile(y=y, reader=g.apply("Abs", y), engine=engine())
    edges = [-(2**31), 2**31 - 1, 0, -1, 2**24 + 1, -(2**24) - 3, 2**25 + 2, 2**31 - 65, 5]
    feed = np.resize(np.array(edges), (2, 6)).astype(dtype)
    result, wanted = net.run({"x": feed}), moved(feed).astype(np.float32)
    assert np.array_equal(result["y"], wanted)
    assert np.array_equal(result["reader"], np.abs(wanted))


@pytest.mark.parametrize("dtype", [np.int16, np.int8, np.uint16, np.uint8])
def test_small_integers_become_numbers(dtype: type) -> None:
    """Such as the pixels of an image."""
    g, ends = dnn.Graph(), np.iinfo(dtype)
    y = g.apply("Cast", g.input("x", (3,), dtype), to=1)
    net = g.compile(y=y, engine=engine())
    assert net(np.array([1, ends.min, ends.max], dtype)).tolist() == [1, ends.min, ends.max]


def test_integers_beyond_32_bits_are_refused() -> None:
    g, outputs = masked(np.int64)
    net = g.compile(engine=engine(), **outputs)
    feeds = {"mask": np.ones((3, 7), np.int64), "scores": random(3, 2, 7, 7)}
    for number in (2**31, -(2**31) - 1, 2**32, 2**63 - 1):
        feeds["mask"][1, 2] = number
        with pytest.raises(
            dnn.InvalidArguments, match=rf"mask\[1, 2\] is {number}, which is read as an integer of 32 bits"
        ):
            net.run(feeds)
    feeds["mask"][1, 2] = 1
    assert np.array_equal(net.run(feeds)["plain"], feeds["mask"])


def test_an_input_may_choose_rows_and_be_a_number() -> None:
    g = dnn.Graph()
    ids = g.input("ids", (4,), np.int64)
    table = random(10, 8)
    y = g.apply("Gather", table, ids) + g.apply("Unsqueeze", g.apply("Cast", ids, to=1), np.array([1]))
    net = g.compile(y=y, engine=engine())
    feed = np.array([0, 9, -1, 3])
    np.testing.assert_array_equal(net(feed), table[feed] + feed[:, None].astype(np.float32))
    with pytest.raises(dnn.InvalidArguments, match="axis 0 of src has 10"):
        net(np.array([0, 10, 1, 1]))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("code", [6, 7])
def test_floats_become_integers_of_any_size(code: int) -> None:
    """Whole numbers of f32 are integers of callers; arithmetic with what may be too large stays with numpy."""
    dtype = {6: np.int32, 7: np.int64}[code]
    largest = [3e9, 1e12, -1e18, 9e18] if code == 7 else [-(2.0**31)]
    values = np.array([1.5, -2.7, -0.5, 2.0**24 + 2, *largest], np.float32)
    graph = dnn.Graph()
    x = graph.input("x", values.shape)
    net = graph.compile(y=graph.apply("Cast", x, to=code), engine=engine())
    assert net.is_native
    np.testing.assert_array_equal(net(values), values.astype(dtype))
    graph = dnn.Graph()
    number = graph.apply("Cast", graph.input("x", values.shape), to=code)
    net = graph.compile(y=graph.apply("Add", number, np.array(1, dtype)), engine=engine(), fallback="numpy")
    np.testing.assert_array_equal(net(values), values.astype(dtype) + 1)


@pytest.mark.parametrize("dtype", ["uint32", "uint64", "float64"])
def test_wide_numbers_become_f32_with_one_rounding(dtype: str) -> None:
    """As calls convert them, also where moves come first."""
    ends = [0, 1, 3, 2**24 + 1, 2**25 + 6, 2**31 + 129, 2**32 - 1, 7]
    values = np.array(ends if dtype != "float64" else [0.1, -1e300, np.inf, 1e-40, 3, 2**24 + 1, -0.0, 1 / 3], dtype)
    graph = dnn.Graph()
    x = graph.input("x", (2, 4), dtype)
    moved = graph.apply("Cast", graph.apply("Transpose", x, perm=(1, 0)), to=1)
    net = graph.compile(y=graph.apply("Cast", x, to=1), z=graph.apply("Abs", moved), engine=engine())
    assert net.is_native
    net.check()
    found = net.run({"x": values.reshape(2, 4)})
    with np.errstate(over="ignore"):
        wanted = values.astype(np.float32).reshape(2, 4)
    np.testing.assert_array_equal(found["y"], wanted)
    np.testing.assert_array_equal(found["z"], np.abs(wanted.T))


@pytest.mark.parametrize(
    ("source", "to", "words"),
    [
        ("uint32", 7, "Cast of uint32 to int64 has no kernel, to float32 it has one"),
        ("float64", 10, ""),
        ("float32", 11, "Cast of float32 to float64 has no kernel"),
        ("int4", 1, "Cast of int4 has no kernel, of float32, bool, .* it has some"),
    ],
)
def test_casts_without_a_kernel_say_both_types(source: str, to: int, words: str) -> None:
    found = extension_type(source) if source == "int4" else np.dtype(source)
    if found is None:
        pytest.skip("numpy types of few bits: pip install ml_dtypes")
    graph = dnn.Graph()
    y = graph.apply("Cast", graph.input("x", (4,), found), to=to)
    if not words:
        assert graph.compile(y=y, engine=engine()).is_native
        return
    with pytest.raises(dnn.Unimplemented, match=words):
        graph.compile(y=y, engine=engine())


THREE = np.array(-3)
SIGNED: dict[str, tuple[type, Callable[[dnn.Graph, Any], Any]]] = {
    "towards zero": (np.float32, lambda g, x: g.apply("Cast", g.apply("Clip", x, -9.0, 9.0), to=7)),
    "towards zero, of bytes": (np.float32, lambda g, x: g.apply("Cast", x, to=3)),
    "negated": (np.int64, lambda g, x: g.apply("Neg", x)),
    "multiplied": (np.int64, lambda g, x: g.apply("Mul", x, THREE)),
    "divided": (np.int64, lambda g, x: g.apply("Div", x, THREE)),
    "a remainder": (np.int64, lambda g, x: g.apply("Mod", x, THREE)),
    "doubled and moved": (np.int64, lambda g, x: g.apply("Transpose", (n := g.apply("Mul", x, THREE)) + n)),
}


@pytest.mark.parametrize("name", SIGNED)
def test_integers_have_no_negative_zero(name: str) -> None:
    """Their f32 have one inside of kernels; it does not come out, where its reciprocal would be another infinity."""
    dtype, make = SIGNED[name]
    g = dnn.Graph()
    numbers = g.apply("Cast", make(g, g.input("x", (2, 4), dtype)), to=1)
    net = g.compile(numbers=numbers, reciprocal=g.apply("Reciprocal", numbers), engine=engine())
    assert net.is_native
    x = np.array([[-0.5, 0.5, 0, -0.0], [-1, 2, -0.9, 6]]).astype(dtype)
    found = net.run({"x": x})
    with np.errstate(divide="ignore"):
        wanted = reference(net, {"x": x})["numbers"]
    np.testing.assert_array_equal(found["numbers"], wanted)
    assert not np.signbit(found["numbers"][wanted == 0]).any()
    assert (found["reciprocal"][wanted == 0] == np.inf).all()
