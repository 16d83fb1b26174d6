"""What files write with several operators, or in front of the one that has a kernel for it all."""

from collections.abc import Callable

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.building import Symbol
from asmdnn.primitives.pooling.description import PoolingForward
from tests.network.nets import compiled, engine, implementations, random, reference

Make = Callable[[dnn.Graph, Symbol], Symbol]
ROWS = (2, 5, 12)
IMAGE = (2, 3, 9, 8)
LARGE = 30.0  # a mean so much larger than the deviations costs E[x^2] - mean^2 three digits


def built(make: Make, dims: tuple[int, ...]) -> dnn.Network:
    g = dnn.Graph()
    return g.compile(y=make(g, g.input("x", dims)), engine=engine())


def check(net: dnn.Network, x: np.ndarray) -> None:
    net.check()
    wanted = reference(net, {"x": x})["y"]
    np.testing.assert_allclose(net(x), wanted, rtol=0, atol=1e-5 * abs(wanted).max())


def mean(g: dnn.Graph, x: Symbol) -> Symbol:
    return g.apply("ReduceMean", x, np.array([-1]))


def by_moments(g: dnn.Graph, x: Symbol, kept: str = "", by_product: bool = False) -> Symbol:
    """Layer normalisation by the means of x and of its square."""
    m = mean(g, x)
    variance = mean(g, x * x) - (g.apply("Pow", m, 2.0) if kept else m * m)
    variance = g.apply(kept, variance, *[0.0] * (kept == "Max")) if kept else variance
    root = g.apply("Sqrt", variance + 1e-5)
    d = x - m
    if not by_product:
        return d / root * random(12) + random(12)
    inverse = g.apply("Reciprocal", root) if kept else 1.0 / root
    return d * inverse * random(12) + random(12)


def nearly_normed(g: dnn.Graph, x: Symbol) -> Symbol:
    """The square of another mean."""
    m = mean(g, x)
    other = mean(g, x * 2.0)
    return (x - m) / g.apply("Sqrt", mean(g, x * x) - other * other + 4.0)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kept", ["", "Relu", "Max"])
@pytest.mark.parametrize("by_product", [False, True])
def test_layer_norms_by_moments(kept: str, by_product: bool) -> None:
    net = built(lambda g, x: by_moments(g, x, kept, by_product), ROWS)
    assert implementations(net) == ["layer_norm"]
    check(net, random(*ROWS))
    check(net, random(*ROWS) + np.float32(LARGE))


@pytest.mark.isa("avx2")
def test_what_is_nearly_a_norm_is_not() -> None:
    net = built(nearly_normed, ROWS)
    assert "layer_norm" not in implementations(net)
    check(net, random(*ROWS))


def pool(
    g: dnn.Graph, x: Symbol, op: str, value: float, widths: tuple[int, ...] = (1, 0, 1, 2), **more: object
) -> Symbol:
    top, left, bottom, right = widths
    padded = g.apply("Pad", x, np.array([0, 0, top, left, 0, 0, bottom, right]), value)
    return g.apply(op, padded, kernel_shape=(3, 3), strides=(2, 1), **more)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("make", "is_one"),
    [
        (lambda g, x: pool(g, x, "MaxPool", -np.inf), True),
        (lambda g, x: pool(g, g.apply("Relu", x), "MaxPool", 0.0), True),
        (lambda g, x: pool(g, g.apply("Clip", x, 0.0, 6.0), "MaxPool", 0.0), True),
        (lambda g, x: pool(g, x, "MaxPool", -np.inf, pads=(1, 1, 0, 0)), True),
        (lambda g, x: pool(g, x, "AveragePool", 0.0), True),
        (lambda g, x: pool(g, x, "AveragePool", 0.0, pads=(1, 1, 0, 0), count_include_pad=1), True),
        (lambda g, x: pool(g, x, "AveragePool", 0.0, pads=(1, 1, 0, 0)), False),
        (lambda g, x: pool(g, x, "AveragePool", 1.0), False),
        (lambda g, x: pool(g, x, "MaxPool", 0.0), False),
        (lambda g, x: pool(g, g.apply("Clip", x, -1.0, 6.0), "MaxPool", 0.0), False),
        (lambda g, x: pool(g, g.apply("Relu", x), "MaxPool", 1.0), False),
        (lambda g, x: pool(g, x, "MaxPool", -np.inf, (3, 0, 0, 0)), False),
        (lambda g, x: pool(g, x, "MaxPool", -1e30, ceil_mode=1), False),
    ],
)
def test_padding_in_front_of_poolings(make: Make, is_one: bool) -> None:
    net = built(make, IMAGE)
    segment = compiled(net)
    assert ("Pad" not in [node.op for step in segment.steps for node in step.nodes]) == is_one
    assert sum(isinstance(step.pd.desc, PoolingForward) for step in segment.steps) == 1
    x = random(*IMAGE)
    net.check()
    wanted = reference(net, {"x": x})["y"]
    np.testing.assert_allclose(net(x), wanted, rtol=1e-5, atol=1e-6)


def enlarged(g: dnn.Graph, x: Symbol, mode: str) -> Symbol:
    return g.apply("Resize", x, None, np.float32([1, 1, 2, 2]), mode=mode, coordinate_transformation_mode="asymmetric")


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_maps_after_a_resize(mode: str) -> None:
    """Those of its result alone are done by its kernel; a sum with another tensor is done by what makes the other."""
    alone = built(lambda g, x: g.apply("Sigmoid", enlarged(g, x, mode) * 2.0), IMAGE)
    assert len(implementations(alone)) == 1
    check(alone, random(*IMAGE))

    def joined(g: dnn.Graph, x: Symbol) -> Symbol:
        large = enlarged(g, x, mode)
        return g.apply("Relu", large + g.apply("Conv", large, random(3, 3, 3, 3), pads=(1, 1, 1, 1)))

    net = built(joined, IMAGE)
    assert len(implementations(net)) == 2
    assert "+ Add, Relu" in net.explain()
    check(net, random(*IMAGE))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("repeats", [(1, 1, 3), (2, 3, 1), (1, 1, 1), (3, 2, 2)])
def test_tiles(repeats: tuple[int, ...]) -> None:
    net = built(lambda g, x: g.apply("Relu", g.apply("Tile", x, np.array(repeats))), ROWS)
    assert not net.refused
    check(net, random(*ROWS))


def some_indices(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).integers(-5, 5, shape)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("axis", "indices"),
    [
        (1, some_indices(2, 7, 12)),  # any
        (-1, np.broadcast_to(some_indices(1, 5, 4), (2, 5, 4))),  # the same for every first index
        (1, np.broadcast_to(some_indices(1, 3, 1), (2, 3, 12))),  # rows
        (0, some_indices(1, 2, 3) % 2),  # of a corner
    ],
)
def test_elements_by_constant_indices(axis: int, indices: np.ndarray) -> None:
    net = built(lambda g, x: g.apply("GatherElements", x, np.array(indices), axis=axis), ROWS)
    assert implementations(net) == ["gather"]
    check(net, random(*ROWS))


def test_elements_after_the_end() -> None:
    with pytest.raises(dnn.AsmdnnError):
        built(lambda g, x: g.apply("GatherElements", x, np.full((2, 5, 1), 12), axis=2), ROWS)


@pytest.mark.isa("avx2")
def test_truths_of_other_dims_than_their_reader() -> None:
    """A mask of a matrix for a batch of them is a step of its own, native, and so is one that is a result."""
    g = dnn.Graph()
    x, mask = g.input("x", ROWS), g.input("mask", ROWS[1:])
    is_zero = g.apply("Equal", mask, 0.0)
    net = g.compile(y=g.apply("Where", is_zero, -1.0, x), z=g.apply("Not", is_zero), engine=engine())
    assert not net.refused
    feeds = {"x": random(*ROWS), "mask": (random(*ROWS[1:]) > 0).astype(np.float32)}
    net.check()
    found, wanted = net.run(feeds), reference(net, feeds)
    np.testing.assert_array_equal(found["y"], wanted["y"].astype(np.float32))
    np.testing.assert_array_equal(found["z"], wanted["z"])
    assert found["z"].dtype == np.bool_


def halves(g: dnn.Graph, x: Symbol, order: tuple[int, int]) -> Symbol:
    """The block of YOLOv8: both halves of a result, and what comes of one of them."""
    both = g.apply("Conv", x, random(32, 3, 1, 1))
    parts = [g.apply("Slice", both, np.array([a]), np.array([a + 16]), np.array([1])) for a in (0, 16)]
    made = g.apply("Relu", g.apply("Conv", parts[1], random(16, 16, 3, 3), pads=(1, 1, 1, 1)))
    return g.apply("Conv", g.apply("Concat", *(parts[i] for i in order), made), random(8, 48, 1, 1))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("order", "copies"), [((0, 1), 0), ((1, 0), 2)])
def test_pieces_after_one_another_are_joined_where_they_lie(order: tuple[int, int], copies: int) -> None:
    net = built(lambda g, x: halves(g, x, order), (1, 3, 9, 8))
    segment = compiled(net)
    assert sum("reorder" in step.label and "Slice" in step.label for step in segment.steps) == copies
    check(net, random(1, 3, 9, 8))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("turned", [0, 1])
def test_a_gemm_between_reshapes_is_a_product_with_batches(turned: int) -> None:
    def make(g: dnn.Graph, x: Symbol) -> Symbol:
        weights = random(7, 12) if turned else random(12, 7)
        rows = g.apply("Reshape", x, np.array([10, 12]))
        product = g.apply("Gemm", rows, weights, random(7), transB=turned)
        return g.apply("Relu", g.apply("Reshape", product, np.array([2, 5, 7])) + random(2, 5, 7))

    net = built(make, ROWS)
    assert implementations(net) == ["tiles"]
    check(net, random(*ROWS))
    torn = built(lambda g, x: g.apply("Reshape", g.apply("Gemm", x, random(12, 8)), np.array([5, 2, 2, 4])), (10, 12))
    check(torn, random(10, 12))


@pytest.mark.isa("avx2")
def test_a_clip_without_a_lower_bound_between_a_product_and_a_reshape() -> None:
    """An input that is left out has no dims."""
    net = built(
        lambda g, x: g.apply("Reshape", g.apply("Clip", x @ random(12, 8), None, 0.1), np.array((2, 3, 8))), (6, 12)
    )
    check(net, random(6, 12))
