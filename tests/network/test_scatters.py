"""ONNX's scatters in networks: natively, by constants, inputs and what kernels make; integers too; their gradient."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import compiled, engine
from tests.support.drawing import RANDOM

X = np.random.default_rng(11).standard_normal((4, 6, 5)).astype(np.float32)
COMBINE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
REDUCTIONS = ("none", *COMBINE)


def combined(places: tuple[Any, ...], x: Any, updates: Any, reduction: str) -> Any:
    result = x.copy()
    if reduction == "none":
        result[places] = updates
    else:
        COMBINE[reduction].at(result, places, updates)
    return result


def scatters(net: dnn.Network) -> int:
    """How many, all in one native segment."""
    segment = compiled(net)
    return [step.pd.implementation for step in segment.steps].count("scatter:avx2")


def check(op: str, given: tuple[Any, Any, Any], places: tuple[Any, ...], is_constant: bool, **words: Any) -> None:
    x, indices, updates = given
    g = dnn.Graph()
    numbers = indices if is_constant else g.input("i", indices.shape, indices.dtype)
    y = g.apply(op, g.input("x", x.shape, x.dtype), numbers, g.input("u", updates.shape, updates.dtype), **words)
    net = g.compile(y=y, engine=engine(2))
    assert scatters(net) == 1
    net.check()
    feeds = {"x": x, "u": updates} | ({} if is_constant else {"i": indices})
    found = net.run(feeds)["y"]
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, combined(places, x, updates, words["reduction"]))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_scatter_nd(depth: int, reduction: str, is_constant: bool) -> None:
    indices = np.array([[1, 2, 0], [0, -1, 4], [3, 0, -5]], np.int64)[:, :depth]
    updates = RANDOM.standard_normal((3, *X.shape[depth:])).astype(np.float32)
    check("ScatterND", (X, indices, updates), tuple(indices.T), is_constant, reduction=reduction)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis: int, reduction: str, is_constant: bool) -> None:
    """Without a reduction no element twice, as ONNX wants it."""
    dims, size = (2, 3, 4), X.shape[axis]
    whole = np.stack([RANDOM.permutation(size) for _ in range(24)], axis=0).reshape(2, 3, 4, size)
    along = [np.arange(n).reshape([-1 if i == k else 1 for i in range(3)]) for k, n in enumerate(dims)]
    indices = np.take_along_axis(whole[:1, :1, :1] + np.zeros_like(whole), along[axis % 3][..., None], 3)[..., 0]
    if reduction != "none":
        indices = RANDOM.integers(-size, size, dims)
    updates = RANDOM.standard_normal(dims).astype(np.float32)
    places: list[Any] = list(np.ogrid[tuple(slice(n) for n in dims)])
    places[axis] = indices
    given = X, indices.astype(np.int32), updates
    check("ScatterElements", given, tuple(places), is_constant, axis=axis, reduction=reduction)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("reduction", ["none", "add", "max", "min"])
def test_integers(reduction: str) -> None:
    x, updates = RANDOM.integers(-99, 99, (6, 3)), RANDOM.integers(-99, 99, (4, 3))
    indices = np.array([[0], [5], [-6], [2]]) if reduction != "none" else np.array([[0], [5], [1], [2]])
    check("ScatterND", (x, indices, updates), (indices[:, 0],), False, reduction=reduction)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_sums_of_many_integers(op: str, dtype: Any) -> None:
    """As many as may name one place bound what each may be: beyond that a call is refused, and the next one is not."""
    count, limit = 5000, 1 << 10
    g = dnn.Graph()
    x, updates = g.input("x", (50,), dtype), g.input("u", (count,), dtype)
    i = g.input("i", (count,) if op == "ScatterElements" else (count, 1), np.int64)
    net = g.compile(y=g.apply(op, x, i, updates, reduction="add"), engine=engine())
    assert scatters(net) == 1 and net.is_native
    net.check()
    for places in (np.full(count, 7), RANDOM.integers(-50, 50, count)):
        feeds = {"x": RANDOM.integers(-limit, limit, 50), "u": RANDOM.integers(-limit, limit, count)}
        feeds = {name: array.astype(dtype) for name, array in feeds.items()} | {"i": places.reshape(i.shape)}
        found = net.run(feeds)["y"]
        wanted = feeds["x"].copy()
        np.add.at(wanted, places, feeds["u"])
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)
        said = r"u\[0\] is .* which is read as an integer of 12 bits: use -2048 to 2047"
        with pytest.raises(dnn.InvalidArguments, match=said):
            net.run(feeds | {"u": feeds["u"] + dtype(1 << 20)})


@pytest.mark.isa("avx2")
def test_truths_are_moved() -> None:
    x, updates = RANDOM.random((6, 3)) < 0.5, RANDOM.random((2, 3)) < 0.5
    indices = np.array([[5], [0]])
    check("ScatterND", (x, indices, updates), (indices[:, 0],), False, reduction="none")


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("is_constant", [True, False])
def test_products_of_integers_that_stay_exact(is_constant: bool) -> None:
    """By signs as often as one likes, and by constants as long as 2^24 is not exceeded."""
    x = np.arange(-9, 9).reshape(6, 3)
    signs = np.array([[-1, 0, 1], [1, -1, -1], [-1, 1, 0], [-1, 1, 1]])
    indices = np.array([[5], [0], [5], [-1]])
    for updates in (signs, 2 * signs) if is_constant else (signs,):
        g = dnn.Graph()
        numbers = indices if is_constant else g.input("i", indices.shape, indices.dtype)
        y = g.apply("ScatterND", g.input("x", x.shape, x.dtype), numbers, updates, reduction="mul")
        net = g.compile(y=y, engine=engine())
        assert scatters(net) == 1
        net.check()
        found = net.run({"x": x} | ({} if is_constant else {"i": indices}))["y"]
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, combined((indices[:, 0],), x, updates, "mul"))


def test_products_of_integers_that_may_be_large_are_left_to_numpy() -> None:
    g = dnn.Graph()
    x, u = g.input("x", (6, 3), np.int64), g.input("u", (1, 3), np.int64)
    y = g.apply("ScatterND", x, np.array([[2]]), u, reduction="mul")
    with pytest.raises(dnn.Unimplemented, match=r"ScatterND .ScatterND 0. \(as ScatterRows\): x is int64, whose"):
        g.compile(y=y, engine=engine())
    net = g.compile(y=y, engine=engine(), fallback="numpy")
    feeds = {"x": np.full((6, 3), 7), "u": np.full((1, 3), 1 << 40)}
    assert net.run(feeds)["y"][2].tolist() == [7 << 40] * 3
    by_seven = g.apply("ScatterND", x, np.full((40, 1), 2), np.full((40, 3), 7), reduction="mul")
    with pytest.raises(dnn.Unimplemented, match="ScatterRows"):
        g.compile(y=by_seven, engine=engine())


@pytest.mark.isa("avx2")
def test_indices_out_of_range_are_refused() -> None:
    """Of an input before the run, of a constant when the network is made, of what kernels make after it."""
    g = dnn.Graph()
    x, u, i = g.input("x", (6, 3)), g.input("u", (2, 3)), g.input("i", (2, 1), np.int64)
    feeds = {"x": np.zeros((6, 3), np.float32), "u": np.ones((2, 3), np.float32)}
    net = g.compile(y=g.apply("ScatterND", x, i, u), engine=engine())
    with pytest.raises(dnn.InvalidArguments, match=r"\[1\] is 6, axis 0 of src has 6: use -6 to 5"):
        net.run({**feeds, "i": np.array([[0], [6]])})
    assert net.run({**feeds, "i": np.array([[0], [-1]])})["y"].sum(1).tolist() == [3, 0, 0, 0, 0, 3]
    made = g.compile(y=g.apply("ScatterND", x, g.apply("Add", i, np.array(2)), u), engine=engine())
    with pytest.raises(dnn.InvalidArguments, match="is 7, axis 0 of src has 6"):
        made.run({**feeds, "i": np.array([[0], [5]])})
    with pytest.raises(dnn.AsmdnnError):
        g.compile(y=g.apply("ScatterND", x, np.array([[0], [6]]), u), engine=engine())


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("op", ["ScatterND", "ScatterElements"])
def test_open_dims(op: str) -> None:
    """A template of the second shape serves the others."""
    g = dnn.Graph()
    x, u = g.input("x", ("rows", 6)), g.input("u", ("some", 6))
    width = 1 if op == "ScatterND" else 6
    i = g.input("i", ("some", width), np.int64)
    net = g.compile(y=g.apply(op, x, i, u, reduction="add"), engine=engine())
    for rows, some in ((5, 3), (7, 4), (9, 2), (30, 11), (9, 2)):
        feeds = {
            "x": RANDOM.standard_normal((rows, 6)).astype(np.float32),
            "i": RANDOM.integers(-rows, rows, (some, width)),
            "u": RANDOM.standard_normal((some, 6)).astype(np.float32),
        }
        wanted = feeds["x"].copy()
        np.add.at(wanted, (feeds["i"], np.arange(6)), feeds["u"])
        np.testing.assert_array_equal(net.run(feeds)["y"], wanted)


@pytest.mark.isa("avx2")
def test_halves() -> None:
    g = dnn.Graph()
    x, u = g.input("x", (4, 3), np.float16), g.input("u", (1, 3), np.float16)
    net = g.compile(y=g.apply("ScatterND", x, np.array([[1]]), u, reduction="add"), engine=engine())
    assert scatters(net) == 1
    found = net.run({"x": np.ones((4, 3), np.float16), "u": np.full((1, 3), 0.5, np.float16)})["y"]
    assert found.dtype == np.float16 and found.tolist() == [[1.0] * 3, [1.5] * 3, [1.0] * 3, [1.0] * 3]


@pytest.mark.isa("avx2")
def test_gradients_of_look_ups() -> None:
    """Rows that are read again get sums, and no matrix of ones is made."""
    g = dnn.Graph()
    values = RANDOM.standard_normal((7, 5)).astype(np.float32)
    table, ids = g.input("table", values.shape), g.input("i", (6,), np.int64)
    rows = g.apply("Gather", table, ids)
    (found,) = g.gradients(g.apply("ReduceSum", rows * rows, keepdims=0), wrt=[table])
    net = g.compile(d=found, engine=engine())
    assert scatters(net) == 1
    numbers = np.array([0, 6, -1, 3, 0, 0])
    wanted = np.zeros((7, 5), np.float32)
    np.add.at(wanted, numbers, 2 * values[numbers])
    np.testing.assert_allclose(net.run({"table": values, "i": numbers})["d"], wanted, rtol=1e-6)
