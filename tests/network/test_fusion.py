"""Rewrites of graphs: which primitives are left, and that they compute the same."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random
from tests.network.test_lowering import built, implementations, stem
from tests.network.test_network import check_values

pytestmark = pytest.mark.isa("avx2")


def one_hot_net(dtype: Any = np.int32) -> dnn.Network:
    """Bytes, their rows with a single one, a product and an activation, as jax writes them."""
    g = dnn.Graph()
    x = g.apply("Unsqueeze", g.input("x", (2, 5), dtype), np.array([2]))
    chosen = g.apply("Equal", x, np.arange(7, dtype=dtype).reshape(1, 1, 7))
    y = g.apply("MatMul", g.apply("Cast", chosen, to=1), random(7, 12)) + random(12)
    return g.compile(y=g.apply("MatMul", y * g.apply("Sigmoid", y), random(12, 4)), engine=engine())


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_product_with_single_ones_is_a_look_up(dtype: Any) -> None:
    net = one_hot_net(dtype)
    net.check()
    assert implementations(net) in (["gather", "tiles"], ["gather", "dots"])  # of a few columns
    x = np.arange(10).reshape(2, 5).astype(dtype) - 2
    check_values(net, {"x": x})
    assert all(difference.fits for difference in net.verify({"x": x}))
    x[1, 1] = 14
    with pytest.raises(dnn.InvalidArguments, match=r"x\[1, 1\] is 14"):
        net.run({"x": x})


@pytest.mark.parametrize("view", ["squeeze", "transpose"])
def test_maps_after_a_view_go_into_the_kernel_in_front(view: str) -> None:
    def make(g: dnn.Graph, x: Any) -> Any:
        y = g.apply("Conv", x, random(16, 3, 3, 1), pads=(1, 0, 1, 0))
        if view == "squeeze":
            y, bias = g.apply("Squeeze", y, np.array([3])), random(16, 1)
        else:
            y, bias = g.apply("Transpose", y, perm=(0, 2, 3, 1)), random(16)
        y = y + bias
        return y * g.apply("Sigmoid", y * 1.7)

    net = built(make, (1, 3, 9, 1))
    net.check()
    assert implementations(net) == ["direct"]
    check_values(net, {"x": random(1, 3, 9, 1)})


def test_moves_that_move_nothing_cost_nothing() -> None:
    def make(g: dnn.Graph, x: Any) -> Any:
        y = g.apply("Slice", stem(g, x), np.array([0, 0]), np.array([99, 2**31 - 1]), np.array([0, 2]))
        y = g.apply("Pad", g.apply("Transpose", y, perm=(0, 1, 2, 3)), np.zeros(8, np.int64))
        return g.apply("Relu", g.apply("Expand", g.apply("Concat", y, axis=1), np.array([2, 16, 9, 8])))

    net = built(make, (2, 3, 9, 8))
    net.check()
    assert implementations(net) == ["few_inputs"]
    check_values(net, {"x": random(2, 3, 9, 8)})


@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID"])
def test_padding_goes_into_the_convolution(auto_pad: str) -> None:
    def make(g: dnn.Graph, x: Any) -> Any:
        pads = {"pads": (0, 1, 0, 0)} if auto_pad == "NOTSET" else {}
        y = g.apply("Pad", stem(g, x), np.array([0, 0, 1, 0, 0, 0, 2, 1]))
        return g.apply("Conv", y, random(8, 16, 3, 3), auto_pad=auto_pad, strides=(2, 1), **pads)

    net = built(make, (2, 3, 9, 8))
    net.check()
    assert implementations(net) == ["few_inputs", "direct"]
    check_values(net, {"x": random(2, 3, 9, 8)})


def test_padding_with_other_numbers_stays() -> None:
    def make(g: dnn.Graph, x: Any) -> Any:
        return g.apply("Conv", g.apply("Pad", x, np.array([0, 0, 1, 0, 0, 0, 1, 0]), 1.0), random(8, 3, 3, 3))

    net = built(make, (2, 3, 9, 8))
    assert implementations(net)[0] == "pad"
    check_values(net, {"x": random(2, 3, 9, 8)})


@pytest.mark.parametrize("dims", [(1, 1, 640), (1, 1, 640, 1)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_few_frames_of_one_channel_are_a_product(dims: tuple[int, ...], has_bias: bool) -> None:
    """As a Fourier transform of frames, whose squares are added."""

    def make(g: dnn.Graph, x: Any) -> Any:
        bias = (random(34),) if has_bias else ()
        kernel = random(34, 1, 256, *[1] * (len(dims) - 3))
        y = g.apply("Relu", g.apply("Conv", x, kernel, *bias, strides=(128, *[1] * (len(dims) - 3))))
        parts = g.apply("Split", y, np.array([17, 17]), axis=1, results=2)
        power = g.apply("Sqrt", parts[0] * parts[0] + parts[1] * parts[1])
        return g.apply("Conv", power, random(8, 17, *[1] * (len(dims) - 2)))

    net = built(make, dims)
    net.check()
    assert implementations(net)[0] == "tiles"
    x = random(*dims)
    check_values(net, {"x": x})
    assert all(difference.fits for difference in net.verify({"x": x}))


@pytest.mark.parametrize("images", [1, 2])
def test_squeeze_and_excite_has_no_pass_of_its_own(images: int) -> None:
    """The convolution after it multiplies; a vector of channels needs no reorder."""

    def make(g: dnn.Graph, x: Any) -> Any:
        y = stem(g, x)
        small = g.apply("Relu", g.apply("Conv", g.apply("GlobalAveragePool", y), random(8, 16, 1, 1)))
        excite = g.apply("HardSigmoid", g.apply("Conv", small, random(16, 8, 1, 1)))
        return g.apply("Relu", g.apply("Conv", y * excite, random(8, 16, 1, 1), random(8)))

    net = built(make, (images, 3, 9, 8))
    net.check()
    found = implementations(net)
    assert len(found) == 5
    assert found[-1].startswith("scale_")
    x = random(images, 3, 9, 8)
    check_values(net, {"x": x})
    assert all(difference.fits for difference in net.verify({"x": x}))


def test_truths_that_are_results_are_bool() -> None:
    """Kernels compute with them as 1 and 0."""
    g = dnn.Graph()
    x = g.input("x", (2, 3), np.bool_)
    y, z = g.apply("ReduceMax", x, np.array([1])), g.apply("Transpose", x)
    net = g.compile(y=y, z=z, engine=engine())
    x = np.array([[True, False, False], [False, False, False]])
    found = net.run({"x": x})
    assert all(array.dtype == bool for array in found.values())
    np.testing.assert_array_equal(found["y"], [[True], [False]])
    np.testing.assert_array_equal(found["z"], x.T)
