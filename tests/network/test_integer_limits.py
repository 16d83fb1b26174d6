"""Integers at the border of what f32 holds, 2^24, and beyond: exact, or refused in one sentence."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.network.nets import engine, random, reference

pytestmark = pytest.mark.isa("avx2")
EXACT = 1 << 24
Make = Callable[[dnn.Graph, Any, Any], Any]


def const(*numbers: int) -> np.ndarray:
    return np.array(numbers if len(numbers) > 1 else numbers[0])


OPERATORS: dict[str, Make] = {
    "add": lambda g, a, b: g.apply("Add", a, b),
    "add one": lambda g, a, b: g.apply("Add", a, const(1)),
    "sub twice": lambda g, a, b: g.apply("Sub", g.apply("Sub", a, b), a),
    "twice": lambda g, a, b: g.apply("Mul", a, const(2)),
    "square": lambda g, a, b: g.apply("Mul", a, a),
    "div": lambda g, a, b: g.apply("Div", a, b),
    "mod": lambda g, a, b: g.apply("Mod", a, b),
    "fmod": lambda g, a, b: g.apply("Mod", a, b, fmod=1),
    "abs": lambda g, a, b: g.apply("Abs", g.apply("Neg", a)),
    "clip": lambda g, a, b: g.apply("Clip", a, const(-EXACT), const(EXACT)),
    "largest": lambda g, a, b: g.apply("Max", a, const(EXACT)),
    "sum": lambda g, a, b: g.apply("ReduceSum", a, np.array([1])),
    "running sum": lambda g, a, b: g.apply("CumSum", a, const(1)),
    "equal": lambda g, a, b: g.apply("Equal", g.apply("Add", a, const(1)), b),
    "less": lambda g, a, b: g.apply("Less", a, g.apply("Add", b, const(1))),
    "where": lambda g, a, b: g.apply("Where", g.apply("Greater", a, b), g.apply("Add", a, const(1)), b),
    "position": lambda g, a, b: g.apply("ArgMax", g.apply("Add", a, b), axis=1),
    "best": lambda g, a, b: g.apply("TopK", g.apply("Sub", a, b), np.array([2]), results=2, axis=1)[0],
    "padded": lambda g, a, b: g.apply("Pad", a, np.array([1, 0, 0, 2]), const(EXACT)),
    "range": lambda g, a, b: g.apply("Add", a, g.apply("Range", const((EXACT >> 1) - 5), const(EXACT >> 1), const(1))),
    "a number": lambda g, a, b: g.apply("Cast", a, to=1),
    "number of a sum": lambda g, a, b: g.apply("Cast", g.apply("Add", a, b), to=1),
    "32 bits": lambda g, a, b: g.apply("Cast", g.apply("Sub", a, b), to=6),
    "truth of a product": lambda g, a, b: g.apply("Cast", g.apply("Mul", a, b), to=9),
    "products": lambda g, a, b: g.apply("MatMul", a, g.apply("Transpose", b, perm=(1, 0))),
    "scattered": lambda g, a, b: g.apply("ScatterElements", a, np.zeros((3, 5), np.int64), b, axis=1, reduction="add"),
}
NEVER = {"square", "products"}  # what has no kernel
BORDERS = (1 << 8, 1 << 20, EXACT >> 2, EXACT >> 1, EXACT - 1, EXACT, (1 << 31) - 4, 1 << 40)


CASES = [(name, np.int64) for name in OPERATORS]  # those of other types have no constants
CASES += [(name, np.int32) for name in ("add", "div", "mod", "fmod", "sub twice", "position")]
CASES += [(name, np.int16) for name in ("add", "div", "sub twice")]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_integers_of_a_caller(name: str, dtype: Any) -> None:
    """At each border either all numbers are right, or the call says which one is too large."""
    g, random_numbers, held, exact = dnn.Graph(name), np.random.default_rng(3), np.iinfo(dtype), 0
    y = OPERATORS[name](g, *(g.input(x, (3, 5), dtype) for x in "ab"))
    if name in NEVER:
        with pytest.raises(dnn.Unimplemented, match="has no kernel"):
            g.compile(y=y, engine=engine())
        return
    net = g.compile(y=y, engine=engine())
    for border in BORDERS:
        for _ in range(6):
            given = {}
            for x in "ab":
                numbers = random_numbers.choice([-1, 1], (3, 5)) * border + random_numbers.integers(-3, 4, (3, 5))
                given[x] = np.clip(np.where(numbers == 0, 1, numbers), held.min, held.max).astype(dtype)
            try:
                found = net.run(given)["y"]
            except dnn.InvalidArguments as reason:
                assert "use " in str(reason) and border >= 1 << 20, reason
                continue
            with np.errstate(all="ignore"):
                wanted = reference(net, given)["y"]
            exact += 1
            assert found.dtype == wanted.dtype
            assert np.array_equal(found, wanted), (border, given)
    assert exact >= 6


LONG = lambda g, x: g.apply("Cast", x, to=7)  # noqa: E731
FROM_FLOATS: dict[str, Callable[[dnn.Graph, Any], Any]] = {
    "64 bits": LONG,
    "32 bits": lambda g, x: g.apply("Cast", x, to=6),
    "64, then 32": lambda g, x: g.apply("Cast", LONG(g, x), to=6),
    "32, then 64": lambda g, x: g.apply("Cast", g.apply("Cast", x, to=6), to=7),
    "and back": lambda g, x: g.apply("Cast", LONG(g, x), to=1),
    "mod": lambda g, x: g.apply("Mod", LONG(g, x), const(7)),
    "mod of a negative": lambda g, x: g.apply("Mod", LONG(g, x), const(-1000)),
    "mod of much": lambda g, x: g.apply("Mod", LONG(g, x), const(EXACT)),
    "fmod": lambda g, x: g.apply("Mod", LONG(g, x), const(7), fmod=1),
    "clip": lambda g, x: g.apply("Clip", LONG(g, x), const(-5), const(EXACT)),
    "sign": lambda g, x: g.apply("Sign", LONG(g, x)),
    "less": lambda g, x: g.apply("Less", LONG(g, x), const(EXACT)),
    "position": lambda g, x: g.apply("ArgMax", LONG(g, x), axis=1),
    "truth": lambda g, x: g.apply("Cast", LONG(g, x), to=9),
    "one hot": lambda g, x: g.apply("OneHot", LONG(g, x), const(9), np.array([4.0, -3.0], np.float32)),
}


@pytest.mark.parametrize("name", FROM_FLOATS)
def test_integers_of_floats(name: str) -> None:
    """Those up to 2^63 have no bound to be checked: they are what the type holds, and wrap around as it does."""
    g = dnn.Graph(name)
    net = g.compile(y=FROM_FLOATS[name](g, g.input("x", (3, 4))), engine=engine())
    assert net.refused == {}
    for size in (3.7, 1e3, 2.0**24 - 1, 2.0**24, 5e7, 2.0**31 - 128, 2.0**31, 3e9, 2.0**32, 1e11, 1e15, 9.2e18):
        x = np.full((3, 4), size, np.float32)
        x[0, 0], x[1, 1], x[2, 2] = 1, -size, size / 3
        found, wanted = net.run({"x": x})["y"], reference(net, {"x": x})["y"]
        assert np.array_equal(found, wanted), size


def test_sums_that_may_be_too_large_have_no_kernel() -> None:
    for op, more in (("Add", (const(1),)), ("Div", (const(3),)), ("ReduceSum", (np.array([1]),)), ("Neg", ())):
        g = dnn.Graph(op)
        y = g.apply(op, LONG(g, g.input("x", (3, 4))), *more)
        with pytest.raises(dnn.Unimplemented, match=op):
            g.compile(y=y, engine=engine())


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("index", [EXACT - 1, EXACT, EXACT + 1, 1 << 31, 1 << 40, -1, -(1 << 33)])
def test_indices_that_are_far_too_large(index: int, made: bool) -> None:
    """No row is read that is none, whatever the index wraps to."""
    g = dnn.Graph("rows")
    given = g.input("i", (2,), np.int64)
    table = random(20, 8)
    net = g.compile(y=g.apply("Gather", table, g.apply("Add", given, const(1)) if made else given), engine=engine())
    if index == -1:
        assert np.array_equal(net.run({"i": np.array([3, -1])})["y"], table[[3 + made, -1 + made]])
        return
    with pytest.raises(dnn.InvalidArguments, match=r"is -?\d+, .*use -"):
        net.run({"i": np.array([3, index])})


@pytest.mark.parametrize("op", ["ArgMax", "TopK"])
def test_positions_beyond_2_24_have_no_kernel(op: str) -> None:
    g = dnn.Graph(op)
    x = g.input("x", (1, EXACT + 1))
    y = g.apply("ArgMax", x, axis=1) if op == "ArgMax" else g.apply("TopK", x, np.array([1]), results=2, axis=1)[1]
    with pytest.raises(dnn.Unimplemented, match="axis 1 has 16777217 elements, positions are counted up to 16777216"):
        g.compile(y=y, engine=engine())


def test_counts_beyond_2_24_have_no_kernel() -> None:
    g = dnn.Graph("counts")
    true = g.apply("Cast", g.apply("Less", g.input("x", (1, EXACT + 1)), np.float32(2)), to=7)
    for y in (g.apply("ReduceSum", true, np.array([1])), g.apply("CumSum", true, const(1))):
        with pytest.raises(AsmdnnError, match="has no kernel"):
            g.compile(y=y, engine=engine())


def test_masks_of_pairs_of_tokens() -> None:
    """Which are products of masks that are nothing but truths, as DeBERTa has them."""
    g = dnn.Graph("pairs")
    mask, x = g.input("mask", ("n", "t"), np.int64), g.input("x", ("n", "t", "t"))
    rows, columns = (g.apply("Unsqueeze", mask, np.array([axis])) for axis in (1, 2))
    truth = g.apply("Cast", g.apply("Mul", rows, columns), to=9)
    net = g.compile(y=g.apply("Where", g.apply("Not", truth), np.float32(-9), x), engine=engine())
    for n, t in ((1, 3), (2, 7), (3, 16)):
        masks = np.random.default_rng(t).integers(0, 2, (n, t)) * np.array([1, -EXACT, EXACT - 1])[:n, None]
        given = {"mask": masks, "x": random(n, t, t)}
        np.testing.assert_array_equal(net.run(given)["y"], reference(net, given)["y"])
    with pytest.raises(dnn.InvalidArguments, match=rf"mask\[0, 0\] is {EXACT},"):
        net.run({"mask": np.full((1, 3), EXACT), "x": random(1, 3, 3)})


@pytest.mark.parametrize("what", ["a number, too", "an output, too", "int32, whose products wrap around to 0"])
def test_products_of_masks_that_are_more_than_truths(what: str) -> None:
    g = dnn.Graph("pairs")
    dtype = np.int32 if what.startswith("int32") else np.int64
    product = g.apply("Mul", g.input("a", (3,), dtype), g.input("b", (3,), dtype))
    outputs = {"y": g.apply("Cast", product, to=9)}
    more = {"a number, too": {"z": g.apply("Cast", product, to=1)}, "an output, too": {"z": product}}
    with pytest.raises(dnn.Unimplemented, match="Mul"):
        g.compile(**outputs, **more.get(what, {}), engine=engine())


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_definitions_divide_the_least_integer(dtype: Any) -> None:
    """Whose magnitude its type does not hold: towards zero all the same."""
    least = np.iinfo(dtype).min
    a = np.array([least, least, least, least + 1, -7, 7, -7, 6], dtype)
    b = np.array([3, -5, 100, 2, 2, -2, 7, 0], dtype)
    g = dnn.Graph("div")
    y = g.apply("Div", g.input("a", (8,), dtype), g.input("b", (8,), dtype))
    net = g.compile(y=y, engine=engine(), fallback="numpy")
    with np.errstate(all="ignore"):
        found = reference(net, {"a": a, "b": b})["y"]
    exact = [
        0 if d == 0 else abs(x) // abs(d) * (1 if (x < 0) == (d < 0) else -1)
        for x, d in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert found.dtype == dtype
    assert found.tolist() == exact
