"""Integers and truths between kernels: native, exact, and refused where they may not be."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random, reference
from tests.support.drawing import RANDOM

pytestmark = pytest.mark.isa("avx2")
Make = Callable[[dnn.Graph, Any, Any], Any]


def built(make: Make, dtype: Any = np.int64, **options: Any) -> dnn.Network:
    """Of two inputs of integers, a and b."""
    g = dnn.Graph("integers")
    return g.compile(y=make(g, g.input("a", (3, 5), dtype), g.input("b", (3, 5), dtype)), engine=engine(2), **options)


def feeds(least: int = -60, most: int = 60, dtype: Any = np.int64) -> dict[str, Any]:
    a, b = (RANDOM.integers(least, most, (3, 5)).astype(dtype) for _ in range(2))
    return {"a": a, "b": np.where(b == 0, 7, b).astype(dtype)}


def check(net: dnn.Network, given: dict[str, Any]) -> None:
    assert net.refused == {}
    net.check()
    found, wanted = net.run(given)["y"], reference(net, given)["y"]
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)
    assert all(difference.fits for difference in net.verify(given))


ROW = np.array([3, -1, 0, 9, 4])
OPERATORS: dict[str, Make] = {
    "add": lambda g, a, b: g.apply("Add", a, b),
    "sub": lambda g, a, b: g.apply("Sub", a, ROW),
    "mul": lambda g, a, b: g.apply("Mul", a, np.array(-7)),
    "div": lambda g, a, b: g.apply("Div", a, b),
    "div by a number": lambda g, a, b: g.apply("Div", a, np.array(-7)),
    "mod": lambda g, a, b: g.apply("Mod", a, b),
    "fmod": lambda g, a, b: g.apply("Mod", a, b, fmod=1),
    "signs": lambda g, a, b: g.apply("Abs", g.apply("Neg", a)) + g.apply("Sign", b),
    "extremes": lambda g, a, b: g.apply("Max", g.apply("Min", a, b), ROW),
    "clip": lambda g, a, b: g.apply("Clip", a, np.array(-5), np.array(20)),
    "relu": lambda g, a, b: g.apply("Relu", a),
    "equal": lambda g, a, b: g.apply("Equal", a, g.apply("Abs", a)),
    "less": lambda g, a, b: g.apply("Less", a, b),
    "logic": lambda g, a, b: g.apply("Xor", g.apply("Greater", a, b), g.apply("LessOrEqual", a, ROW)),
    "where": lambda g, a, b: g.apply("Where", g.apply("Greater", a, b), a, np.array(100)),
    "truths counted": lambda g, a, b: g.apply("ReduceSum", g.apply("Cast", g.apply("Less", a, b), to=7), np.array([1])),
    "truth of integers": lambda g, a, b: g.apply("Cast", g.apply("Relu", a), to=9),
    "truth of numbers": lambda g, a, b: g.apply("Cast", g.apply("Cast", g.apply("Relu", a), to=1), to=9),
    "numbers of truths": lambda g, a, b: g.apply("Cast", g.apply("Less", a, b), to=1),
    "narrow": lambda g, a, b: g.apply("Cast", g.apply("Add", a, b), to=6),
    "towards zero": lambda g, a, b: g.apply("Cast", g.apply("Cast", a, to=1) * 0.37, to=6),
    "sum": lambda g, a, b: g.apply("ReduceSum", a, np.array([0]), keepdims=0),
    "largest": lambda g, a, b: g.apply("ReduceMax", a, np.array([1])) - g.apply("ReduceMin", b, np.array([1])),
    "running sum": lambda g, a, b: g.apply("CumSum", a, np.array(1), exclusive=1),
    "position": lambda g, a, b: g.apply("ArgMax", a, axis=1),
    "best": lambda g, a, b: g.apply("TopK", a, np.array([2]), results=2, axis=0)[0],
    "places of the best": lambda g, a, b: g.apply("TopK", a, np.array([2]), results=2, axis=1)[1],
    "moves": lambda g, a, b: g.apply(
        "Slice", g.apply("Transpose", g.apply("Concat", a, b, axis=0), perm=(1, 0)), *map(np.array, ([1], [4], [1]))
    ),
    "split": lambda g, a, b: g.apply("Split", a, np.array([2, 3]), results=2, axis=1)[1] + np.array(1),
    "repeated": lambda g, a, b: g.apply("Expand", g.apply("Unsqueeze", a, np.array([0])), np.array([2, 3, 5])),
    "padded": lambda g, a, b: g.apply("Pad", a, np.array([1, 0, 0, 2]), np.array(-9)),
    "rows": lambda g, a, b: g.apply("Gather", a, np.array([2, 0, 2])),
    "triangle": lambda g, a, b: g.apply("Trilu", a, np.array(1)),
    "one hot": lambda g, a, b: g.apply("OneHot", a, np.array(9), np.array([4, -3])),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    check(built(OPERATORS[name]), feeds())


@pytest.mark.parametrize("name", ["add", "div", "less", "best", "moves", "running sum"])
def test_of_32_bits(name: str) -> None:
    check(built(OPERATORS[name], np.int32), feeds(dtype=np.int32))


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed: int) -> None:
    """Tangles of integers and truths are what numpy computes of them."""
    choose = np.random.default_rng(seed)

    def make(g: dnn.Graph, a: Any, b: Any) -> Any:
        known = [a, b, g.apply("Cast", g.apply("Less", a, b), to=7)]
        for _ in range(12):
            x, y = (known[i] for i in choose.integers(0, len(known), 2))
            kind = choose.integers(0, 7)
            if kind == 0:
                known.append(g.apply("Where", g.apply("GreaterOrEqual", x, y), x, y))
            elif kind == 1:
                known.append(g.apply("Mod", x, np.array(int(choose.integers(1, 30)))))
            elif kind == 2:
                known.append(g.apply("Div", x, np.array(int(choose.integers(1, 9)))))
            elif kind == 3:
                known.append(g.apply("Cast", g.apply("Equal", x, y), to=7))
            elif kind == 4:
                known.append(g.apply("Mod", g.apply("CumSum", x, np.array(1)), np.array(50)))
            else:
                known.append(g.apply(("Add", "Sub")[kind % 2], x, y))
        return g.apply("Concat", *known[-6:], axis=0)

    net = built(make, fallback="numpy")
    given = feeds()
    assert np.array_equal(net.run(given)["y"], reference(net, given)["y"])


def test_positions_of_tokens(tmp_path: Path) -> None:
    """As RoBERTa has them: running counts of what is no padding, looked up in a table; nothing in numpy."""
    g = dnn.Graph("tokens")
    ids = g.input("ids", (2, 7), np.int64)
    real = g.apply("Cast", g.apply("Not", g.apply("Equal", ids, np.array(1))), to=6)
    place = g.apply("Cast", g.apply("Mul", g.apply("CumSum", real, np.array(1)), real), to=7)
    words, places = random(20, 8), random(9, 8)
    y = g.apply("Gather", words, ids) + g.apply("Gather", places, g.apply("Add", place, np.array(1)))
    net = g.compile(y=y, place=place, engine=engine(2))
    given = {"ids": np.array([[3, 4, 5, 19, 1, 1, 1], [3, 9, 8, 7, 6, 5, 4]])}
    assert net.refused == {}
    net.check()
    found = net.run(given)
    wanted = reference(net, given)
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-6, atol=1e-7)
    assert np.array_equal(found["place"], wanted["place"])
    net.save(tmp_path / "net")
    assert np.array_equal(dnn.load_pack(tmp_path / "net", 1).run(given)["y"], found["y"])  # type: ignore[union-attr]


def test_indices_that_kernels_make_are_looked_at(tmp_path: Path) -> None:
    """One sentence for those out of range, and the network goes on."""
    net = built(lambda g, a, b: g.apply("Gather", random(20, 4), g.apply("Add", a, b)))
    good = {"a": np.full((3, 5), 12), "b": np.full((3, 5), -4)}
    check_rows = reference(net, good)["y"]
    bad = good | {"b": np.full((3, 5), 8)}
    net.save(tmp_path / "net")
    for each in (net, dnn.load_pack(tmp_path / "net", 1)):
        assert isinstance(each, dnn.Network)
        assert np.array_equal(each.run(good)["y"].astype(np.float64), check_rows)
        with pytest.raises(dnn.InvalidArguments, match=r"\[0, 0\] is 20, axis 0 of src has 20"):
            each.run(bad)
        assert np.array_equal(each.run(good)["y"].astype(np.float64), check_rows)
        with pytest.raises(dnn.InvalidArguments, match="looked at after a run"):
            each.bind(**good, y=np.empty((3, 5, 4), np.float32))
    small = built(lambda g, a, b: g.apply("Gather", random(20, 4), g.apply("Mod", a, np.array(10))))
    assert small.run(good)["y"].shape == (3, 5, 4)  # no sum can be out of range


def test_integers_between_native_parts() -> None:
    """Kernels write them as f32, and others, after nodes in numpy, read them as integers."""
    g = dnn.Graph("parts")
    x = g.input("x", (5, 5))
    rows = g.apply("Cast", x * 2.0, to=7)
    net = g.compile(y=g.apply("Gather", x * g.apply("Det", x), rows, axis=0), engine=engine(2), fallback="numpy")
    assert [*net.refused] == ["Det 'Det 2'"]
    given = {"x": np.random.default_rng(2).random((5, 5), np.float32)}
    np.testing.assert_allclose(net.run(given)["y"], reference(net, given)["y"], rtol=1e-4)
    with pytest.raises(dnn.InvalidArguments, match="axis 0 of src has 5"):
        net.run({"x": given["x"] + 2})
    first, *steps = net.profile(given, 1).splitlines()
    assert "1 of them nodes in numpy" in first
    assert len(steps) == len(net.times(given, 1))
    assert sum(line.endswith("Det 'Det 2': numpy") for line in steps) == 1
    assert "Det 'Det 2': numpy" in net.analyze(given, 1)
    assert " µs</span>" in net.page(given, 1)
    assert all(one.fits for one in net.verify(given))


def test_integers_that_are_too_large() -> None:
    """Inputs are checked for what the sums after them need; what cannot be exact has no kernel."""
    net = built(lambda g, a, b: g.apply("Add", a, b))
    good = feeds(-(1 << 23), 1 << 23)
    check(net, good)
    for number in (1 << 23, -(1 << 23) - 1, 1 << 40):
        bad = good | {"a": good["a"].copy()}
        bad["a"][1, 2] = number
        with pytest.raises(
            dnn.InvalidArguments, match=rf"a\[1, 2\] is {number}, .* of 24 bits: use -8388608 to 8388607"
        ):
            net.run(bad)
    check(net, good)
    with pytest.raises(dnn.Unimplemented, match="Mul"):
        built(lambda g, a, b: g.apply("Mul", a, b))
    large = built(lambda g, a, b: g.apply("Mul", a, b), fallback="numpy")
    given = feeds(-(1 << 40), 1 << 22)
    assert np.array_equal(large.run(given)["y"], given["a"] * given["b"])
    with pytest.raises(dnn.Unimplemented, match="Equal"):
        built(lambda g, a, b: g.apply("Equal", a, np.array((1 << 24) + 1)))


ELEMENTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, int]]] = {
    "first axis": ((5, 6), (3, 4), {"axis": 0}),
    "middle axis": ((2, 5, 4), (2, 7, 3), {"axis": 1}),
    "last axis": ((2, 3, 5), (1, 3, 9), {"axis": -1}),
}


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("made", [False, True])
def test_elements_by_indices(name: str, made: bool) -> None:
    """Of a caller, and of kernels; one that is out of range is named, and the network goes on."""
    dims, shape, attributes = ELEMENTS[name]
    g = dnn.Graph("elements")
    x, indices = g.input("x", dims), g.input("i", shape, np.int64)
    place = g.apply("Sub", indices, np.array(1)) if made else indices
    net = g.compile(y=g.apply("GatherElements", x, place, name="chosen", **attributes), engine=engine(2))
    given = {"x": random(*dims), "i": RANDOM.integers(-5, 5, shape) + made}
    assert net.refused == {}
    net.check()
    wanted = reference(net, given)["y"]
    assert np.array_equal(net.run(given)["y"], wanted)
    for wrong in (5, -6):
        bad = given | {"i": given["i"].copy()}
        bad["i"].flat[-1] = wrong + made
        said = "indices of GatherElements 'chosen'" if made else "i"
        where = rf"^{said}\[.*\] is {wrong}, axis {attributes['axis'] % len(dims)} of src has 5"
        with pytest.raises(dnn.InvalidArguments, match=where):
            net.run(bad)
    assert np.array_equal(net.run(given)["y"], wanted)


@pytest.mark.parametrize(("batch", "depth"), [(0, 1), (0, 3), (1, 1), (1, 2)])
def test_slices_by_indices(batch: int, depth: int) -> None:
    dims = (3, 4, 5)
    g = dnn.Graph("slices")
    shape = (3, 6, depth)
    x, indices = g.input("x", dims), g.input("i", shape, np.int32)
    net = g.compile(y=g.apply("GatherND", x, indices, batch_dims=batch), engine=engine(2))
    sizes = np.array(dims[batch : batch + depth])
    given = {"x": random(*dims), "i": RANDOM.integers(-sizes, sizes, shape).astype(np.int32)}
    assert net.refused == {}
    net.check()
    assert np.array_equal(net.run(given)["y"], reference(net, given)["y"])
    given["i"][1, 2, -1] = 9
    with pytest.raises(dnn.InvalidArguments, match=rf"is 9, axis {batch + depth - 1} of src has"):
        net.run(given)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_positions_in_a_scalar(op: str) -> None:
    """The axis of a scalar may be named; it has one element."""
    graph = dnn.Graph()
    x = graph.input("x", (), np.int64)
    net = graph.compile(y=graph.apply(op, x, keepdims=0), engine=dnn.Engine(isa="avx2", threads=1), fallback="numpy")
    assert net.run({"x": np.int64(7)})["y"] == 0


def test_indices_of_several_axes_are_those_of_their_node() -> None:
    """In a pack, too."""
    g = dnn.Graph("axes")
    places = g.apply("Sub", g.input("i", (4, 2), np.int64), np.array(1))
    net = g.compile(y=g.apply("GatherND", random(3, 5, 6), places, name="chosen"), engine=engine())
    loaded = pickle.loads(pickle.dumps(net))
    good = np.ones((4, 2), np.int64)
    for column, more, size in ((0, "", 3), (1, " along axis 1", 5)):
        bad = good.copy()
        bad[2, column] = 9
        for each in (net, loaded):
            assert each.run({"i": good})["y"].shape == (4, 6)
            message = rf"^indices of GatherND 'chosen'{more}\[2\] is 8, axis {column} of src has {size}"
            with pytest.raises(dnn.InvalidArguments, match=message):
                each.run({"i": bad})


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("op", ["Max", "Min"])
@pytest.mark.parametrize("after", ["maps", "a product"])
def test_the_larger_one_of_nan_is_nan(op: str, after: str) -> None:
    """On either side, of arrays, constants and several operands; behind a product, too."""
    function = np.maximum if op == "Max" else np.minimum
    x, other = np.zeros((4, 4), np.float32), np.arange(16, dtype=np.float32).reshape(4, 4) - 7
    x[0], x[1, 2], other[:, 3], other[2] = np.nan, np.nan, np.nan, np.nan
    g = dnn.Graph()
    a, b = g.input("a", x.shape), g.input("b", x.shape)
    value = a if after == "maps" else a @ np.eye(4, dtype=np.float32)
    row = np.float32([1, np.nan, -1, 2])
    outputs = {"ab": (value, b), "ba": (b, value), "row": (value, row), "turned": (row, value), "all": (value, b, row)}
    net = g.compile(engine=engine(1), **{name: g.apply(op, *some) for name, some in outputs.items()})
    assert net.is_native
    found, values = net.run({"a": x, "b": other}), {a.name: x, b.name: other}
    wanted_x = x if after == "maps" else x @ np.eye(4, dtype=np.float32)
    for name, some in outputs.items():
        arrays = [wanted_x if one is value else values[one.name] if one is b else one for one in some]
        wanted = arrays[0]
        for one in arrays[1:]:
            wanted = function(wanted, one)
        np.testing.assert_array_equal(found[name], wanted)
