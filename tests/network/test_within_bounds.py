"""What data choose, natively within a bound: numbers of places by CumSum, moves by ScatterElements, and a count.

Dims of NonZero, Compress and Unique depend on data.  Written so, results have `most` places, of which `count` count.
"""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")
INT64 = 7


def chosen(g: dnn.Graph, is_chosen: Any, size: int, most: int) -> tuple[Any, Any]:
    """Where truths are, i64[most], zeros after the last one; and how many there are, i64[1]."""
    ones = g.apply("Cast", is_chosen, to=INT64)
    number = g.apply("CumSum", ones, np.array(0)) - np.array(1)
    fits = g.apply("And", is_chosen, g.apply("Less", number, np.array(most)))
    to = g.apply("Where", fits, number, np.array(most))
    found = g.apply("ScatterElements", np.zeros(most + 1, np.int64), to, np.arange(size), axis=0)
    count = g.apply("ReduceSum", ones, np.array([0]), keepdims=1)
    return g.apply("Slice", found, np.array([0]), np.array([most])), count


@pytest.mark.parametrize("most", [1, 5, 24, 30])
@pytest.mark.parametrize("threads", [1, 2])
def test_non_zero(most: int, threads: int) -> None:
    g = dnn.Graph()
    x = g.input("x", (4, 6))
    is_chosen = g.apply("Not", g.apply("Equal", g.apply("Reshape", x, np.array([-1])), 0.0))
    at, count = chosen(g, is_chosen, 24, most)
    rows = g.apply("Div", at, np.array(6))
    net = g.compile(rows=rows, columns=at - rows * np.array(6), count=count, engine=engine(threads))
    assert net.is_native
    net.check()
    draw = np.random.default_rng(0)
    for share in (0.0, 0.1, 0.5, 1.0):
        given = np.where(draw.random((4, 6)) < share, draw.standard_normal((4, 6)), 0).astype(np.float32)
        found, wanted = net.run({"x": given}), np.nonzero(given)
        assert found["count"] == len(wanted[0])
        kept = min(most, len(wanted[0]))
        for name, places in zip(("rows", "columns"), wanted, strict=True):
            assert found[name].dtype == np.int64 and found[name].shape == (most,)
            np.testing.assert_array_equal(found[name][:kept], places[:kept])
            assert not found[name][kept:].any()


def test_compress() -> None:
    """Rows of a matrix; those after the last one are zeros."""
    g, most = dnn.Graph(), 4
    x, keep = g.input("x", (7, 5)), g.input("keep", (7,), bool)
    at, count = chosen(g, keep, 7, most)
    is_there = g.apply("Less", np.arange(most), count)
    rows = g.apply("Where", g.apply("Unsqueeze", is_there, np.array([1])), g.apply("Gather", x, at), 0.0)
    net = g.compile(rows=rows, count=count, engine=engine())
    assert net.is_native
    draw = np.random.default_rng(1)
    for share in (0.0, 0.4, 1.0):
        given, mask = draw.standard_normal((7, 5)).astype(np.float32), draw.random(7) < share
        found, wanted = net.run({"x": given, "keep": mask}), given[mask][:most]
        assert found["count"] == mask.sum()
        np.testing.assert_array_equal(found["rows"][: len(wanted)], wanted)
        assert not found["rows"][len(wanted) :].any()


def test_unique() -> None:
    """Sorted, and how often each comes."""
    g, size, most = dnn.Graph(), 12, 8
    x = g.input("x", (size,))
    ordered, _ = g.apply("TopK", x, np.array([size]), largest=0, results=2)
    before = g.apply("Slice", ordered, np.array([0]), np.array([size - 1]))
    after = g.apply("Slice", ordered, np.array([1]), np.array([size]))
    is_new = g.apply("Concat", np.array([True]), g.apply("Not", g.apply("Equal", before, after)), axis=0)
    at, count = chosen(g, is_new, size, most)
    values = g.apply("Where", g.apply("Less", np.arange(most), count), g.apply("Gather", ordered, at), 0.0)
    net = g.compile(values=values, count=count, engine=engine())
    assert net.is_native
    draw = np.random.default_rng(2)
    for kinds in (1, 3, 6, 40):
        given = draw.integers(0, kinds, size).astype(np.float32)
        found, wanted = net.run({"x": given}), np.unique(given)
        assert found["count"] == len(wanted)
        np.testing.assert_array_equal(found["values"][: len(wanted)], wanted[:most])
        assert not found["values"][len(wanted) :].any()
