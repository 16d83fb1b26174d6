"""Convolutions whose weights are inputs: native, and equal to their definitions in double precision."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.joining.buffers import NetworkBuffers
from tests.network.nets import engine, random, reference

pytestmark = pytest.mark.isa("avx2")
IMAGE = (2, 6, 9, 8)
PADS = {"pads": (1, 1, 1, 1)}
CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ("Conv", IMAGE, (16, 6, 3, 3), PADS),
    "strides": ("Conv", IMAGE, (5, 6, 3, 2), {"strides": (2, 1), "auto_pad": "SAME_UPPER"}),
    "dilations": ("Conv", IMAGE, (8, 6, 2, 2), {"dilations": (2, 3)}),
    "groups": ("Conv", IMAGE, (9, 2, 3, 3), {"group": 3}),
    "depthwise": ("Conv", IMAGE, (6, 1, 3, 3), {"group": 6, **PADS}),
    "one axis": ("Conv", (2, 6, 11), (7, 6, 4), {}),
    "three axes": ("Conv", (1, 3, 4, 5, 6), (4, 3, 2, 2, 2), {}),
    "points": ("Conv", IMAGE, (10, 6, 1, 1), {}),
    "transposed": ("ConvTranspose", IMAGE, (6, 5, 3, 3), {"strides": (2, 2)}),
    "transposed groups": ("ConvTranspose", IMAGE, (6, 4, 3, 3), {"group": 2, **PADS}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bias", [False, True])
def test_weights_of_a_caller(name: str, bias: bool) -> None:
    op, dims, shape, attributes = CASES[name]
    g = dnn.Graph(op)
    x, weights = g.input("x", dims), g.input("w", shape)
    channels = shape[0] if op == "Conv" else shape[1] * attributes.get("group", 1)
    given = {"x": random(*dims), "w": random(*shape)}
    operands = [x, weights]
    if bias:
        operands.append(g.input("b", (channels,)))
        given["b"] = random(channels)
    net = g.compile(y=g.apply("Relu", g.apply(op, *operands, **attributes)), engine=engine(2))
    assert net.refused == {}
    net.check()
    for _ in range(2):
        np.testing.assert_allclose(net.run(given)["y"], reference(net, given)["y"], rtol=1e-5, atol=1e-5)
        given["w"] = given["w"] * 1.5


def test_a_bias_of_a_caller() -> None:
    g = dnn.Graph("bias")
    x, bias = g.input("x", IMAGE), g.input("b", (16,))
    net = g.compile(y=g.apply("Conv", x, random(16, 6, 3, 3), bias, **PADS), engine=engine())
    given = {"x": random(*IMAGE), "b": random(16)}
    np.testing.assert_allclose(net.run(given)["y"], reference(net, given)["y"], rtol=1e-5, atol=1e-5)


def test_what_is_around_them() -> None:
    """No pair, no folded scale, no padding folded into constants that are none."""
    g = dnn.Graph("around")
    x, first, second = g.input("x", (1, 16, 14, 14)), g.input("a", (32, 16, 1, 1)), g.input("b", (32, 1, 3, 3))
    y = g.apply("Clip", g.apply("Conv", x, first), 0.0, 6.0)
    y = g.apply("Conv", y, random(32, 1, 3, 3), group=32, **PADS)
    y = g.apply(
        "BatchNormalization", g.apply("Conv", y, second, group=32, **PADS), *(abs(random(32)) for _ in range(4))
    )
    scale = g.apply("Sigmoid", g.apply("GlobalAveragePool", y))
    y = g.apply("Conv", y * scale, g.apply("Transpose", g.apply("Relu", first), perm=(1, 0, 2, 3)))
    net = g.compile(y=y, engine=engine(2))
    given = {"x": random(1, 16, 14, 14), "a": random(32, 16, 1, 1), "b": random(32, 1, 3, 3)}
    assert net.refused == {}
    wanted = reference(net, given)["y"]
    np.testing.assert_allclose(net.run(given)["y"], wanted, rtol=0, atol=1e-5 * abs(wanted).max())


def names_of(net: dnn.Network) -> list[str]:
    (segment,) = net.planned("looked at").segments
    return [step.pd.implementation for step in segment.steps]  # type: ignore[union-attr]


def test_formats_between_them_are_those_that_kernels_like() -> None:
    """The first one reads nchw, the second one what it left, and the result is brought back."""
    g = dnn.Graph("two")
    x, first, second = g.input("x", (1, 16, 14, 14)), g.input("a", (32, 16, 5, 5)), g.input("b", (32, 32, 5, 5))
    y = g.apply("Conv", g.apply("Conv", x, first, pads=(2, 2, 2, 2)), second, pads=(2, 2, 2, 2))
    net = g.compile(y=y, engine=engine())
    assert [name.removesuffix(":avx2") for name in names_of(net)].count("pack+direct") == 2
    given = {"x": random(1, 16, 14, 14), "a": random(32, 16, 5, 5), "b": random(32, 32, 5, 5)}
    wanted = reference(net, given)["y"]
    np.testing.assert_allclose(net.run(given)["y"], wanted, rtol=0, atol=1e-5 * abs(wanted).max())


def test_a_transposed_one_of_stride_1_is_winograds() -> None:
    g = dnn.Graph("transposed")
    x, w, more = g.input("x", (2, 64, 28, 28)), g.input("w", (64, 64, 3, 3)), g.input("more", (2, 64, 28, 28))
    y = g.apply("Relu", g.apply("ConvTranspose", x, w, **PADS) + more)
    net = g.compile(y=y, engine=engine())
    assert any("winograd" in name for name in names_of(net))
    given = {"x": random(2, 64, 28, 28), "w": random(64, 64, 3, 3), "more": random(2, 64, 28, 28)}
    wanted = reference(net, given)["y"]
    np.testing.assert_allclose(net.run(given)["y"], wanted, rtol=0, atol=2e-4 * abs(wanted).max())


def test_other_numbers_of_one_name_have_a_buffer_of_their_own() -> None:
    """As of a constant that a convolution reads as it is, and a transposed one with inputs and outputs turned."""
    memory, w = NetworkBuffers(taken=()), random(16, 16, 3, 3)
    desc = dnn.MemoryDesc(w.shape, dnn.f32, "OIhw16i16o")
    first, again, copy = (memory.add_weight("w", x, desc).buffer for x in (w, w[:], w.copy()))
    turned = memory.add_weight("w", w.swapaxes(0, 1), desc).buffer
    assert first == again == copy != turned
    np.testing.assert_array_equal(memory.weights[first].array, w)
    np.testing.assert_array_equal(memory.weights[turned].array, w.swapaxes(0, 1))
