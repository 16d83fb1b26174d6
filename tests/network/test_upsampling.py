"""1x1 convolutions come before images are enlarged: what changes places, what does not, and the numbers."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.building import Symbol
from tests.network.nets import compiled, engine, random, reference

NONE = np.zeros(0, np.float32)
BF16 = "avx512_core_bf16"
ROUNDED = 0.03  # of the largest value: a handful of roundings to 8 bits one after another


def pixels(net: dnn.Network, kind: str = "Conv") -> list[tuple[int, ...]]:
    """Of the results of its convolutions, or of other nodes, in order."""
    segment = compiled(net)
    steps = [step for step in segment.steps if any(node.op == kind for node in step.nodes)]
    return [step.pd.plan.tensors["dst"].dims[2:] for step in steps]


def check(net: dnn.Network) -> None:
    net.check()
    feeds = {name: random(*dims) for name, (dims, _) in net.inputs.items()}
    wanted = reference(net, feeds)["y"]
    np.testing.assert_allclose(net.run(feeds)["y"], wanted, rtol=0, atol=1e-5 * abs(wanted).max())


def enlarged(g: dnn.Graph, x: Symbol, size: tuple[int, ...], **attributes: Any) -> Symbol:
    return g.apply("Resize", x, NONE, NONE, np.array(size, np.int64), **attributes)


def head(mode: str = "linear", **attributes: Any) -> tuple[dnn.Graph, Symbol]:
    """Three scales joined, as the heads of segmentation networks join them."""
    g = dnn.Graph()
    a, b, c = (g.input(name, (2, 32, n, n + 1)) for name, n in (("a", 12), ("b", 6), ("c", 3)))
    parts = [enlarged(g, x, (2, 32, 12, 13), mode=mode, **attributes) for x in (b, c)]
    joined = g.apply("Concat", parts[0], a, parts[1], axis=1)
    return g, g.apply("Relu", g.apply("Conv", joined, random(24, 96, 1, 1), random(24), name="fuse"))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "linear"},
        {"mode": "nearest"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ],
)
def test_parts_of_a_join_are_convolved_at_their_own_size(attributes: dict[str, Any]) -> None:
    g, y = head(**attributes)
    net = g.compile(y=y, engine=engine())
    assert sorted(pixels(net)) == [(3, 4), (6, 7), (12, 13)]
    assert pixels(net, "Concat") == []
    check(net)


@pytest.mark.isa(BF16)
def test_products_of_bf16_are_moved_too() -> None:
    g, y = head()
    net = g.compile(y=y, engine=engine(isa=BF16), precision="bf16")
    feeds = {name: random(*dims) for name, (dims, _) in net.inputs.items()}
    assert sorted(pixels(net)) == [(3, 4), (6, 7), (12, 13)]
    assert [str(one) for one in net.verify(feeds) if not one.fits] == []
    wanted = reference(net, feeds)["y"]
    assert np.abs(net.run(feeds)["y"] - wanted).max() <= ROUNDED * np.abs(wanted).max()


@pytest.mark.isa("avx2")
def test_one_image_alone_and_scales_instead_of_sizes() -> None:
    """The result is what resizes, and its name is the convolution's."""
    g = dnn.Graph()
    x = g.input("x", (1, 48, 5, 6))
    large = g.apply("Resize", x, NONE, np.float32([1, 1, 2, 3]), mode="linear")
    net = g.compile(y=g.apply("Conv", large, random(40, 48, 1, 1), random(40)), engine=engine())
    assert pixels(net) == [(5, 6)]
    check(net)
    g = dnn.Graph()
    old = g.apply("Resize", g.input("x", (1, 48, 5, 6)), NONE, NONE, np.array([10, 12]), mode="linear", axes=(2, 3))
    net = g.compile(y=g.apply("Conv", old, random(40, 48, 1, 1)), engine=engine())
    assert pixels(net) == [(5, 6)]
    check(net)


@pytest.mark.isa("avx2")
def test_a_join_of_enlarged_images_alone() -> None:
    g = dnn.Graph()
    images = [g.input(name, (1, 32, n, n)) for name, n in (("a", 4), ("b", 2))]
    joined = g.apply("Concat", *(enlarged(g, x, (1, 32, 8, 8), mode="linear") for x in images), axis=1)
    net = g.compile(y=g.apply("Conv", joined, random(16, 64, 1, 1), random(16)), engine=engine())
    assert sorted(pixels(net)) == [(2, 2), (4, 4)]
    check(net)


def stays(change: dict[str, Any]) -> dnn.Network:
    """A convolution after an enlarged image, in which something is otherwise."""
    size, channels, outputs = change.get("size", (12, 12)), change.get("channels", 32), change.get("outputs", 24)
    kernel, strides = change.get("kernel", 1), change.get("strides", 1)
    g = dnn.Graph()
    large = enlarged(g, g.input("x", (1, channels, 6, 6)), (1, channels, *size), mode=change.get("mode", "linear"))
    weights = random(outputs, channels // change.get("group", 1), kernel, kernel)
    more = {"strides": (strides,) * 2, "pads": (change.get("pads", 0),) * 4, "group": change.get("group", 1)}
    y = g.apply("Conv", large, weights, **more)
    return g.compile(y=y, z=large, engine=engine()) if "read" in change else g.compile(y=y, engine=engine())


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    "change",
    [
        {"kernel": 3, "pads": 1},
        {"strides": 2},
        {"pads": 1},
        {"group": 2},
        {"mode": "cubic"},
        {"size": (6, 9)},
        {"channels": 16},
        {"outputs": 80},
        {"read": "by another"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_stays_behind(change: dict[str, Any]) -> None:
    """Windows, steps, padding and groups; shares below 0; what saves nothing; and an image that others read."""
    net = stays(change)
    segment = compiled(net)
    kinds = [node.op for step in segment.steps for node in step.nodes if node.op in ("Conv", "Resize")]
    assert kinds == ["Resize", "Conv"]
    check(net)


@pytest.mark.isa("avx2")
def test_an_image_that_keeps_its_size_is_not_resized() -> None:
    g = dnn.Graph()
    x = g.apply("Relu", g.input("x", (1, 8, 6, 6)))
    net = g.compile(y=g.apply("Relu", enlarged(g, x, (1, 8, 6, 6), mode="linear")), engine=engine())
    assert pixels(net, "Resize") == []
    check(net)
