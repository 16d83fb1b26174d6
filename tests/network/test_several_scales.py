"""QuantizeLinear and DequantizeLinear by scales that are data or several, and sums of integers that nobody casts."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random
from tests.support.drawing import integers

pytestmark = pytest.mark.isa("avx2")
SCALES = np.random.default_rng(5).uniform(0.01, 0.1, 5).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("is_data", [False, True])
def test_scales_along_an_axis(dtype: Any, is_data: bool) -> None:
    """Bits of the definitions, but for constants, of which scale and zero point are one multiply-add."""
    g, feeds = dnn.Graph(), {"q": integers(dtype, 2, 5, 7), "x": random(2, 5, 7) * 3}
    zeros = integers(dtype, 5)
    q, x = g.input("q", (2, 5, 7), dtype), g.input("x", (2, 5, 7))
    scale, zero = SCALES, zeros
    if is_data:
        scale, zero = g.input("scale", (5,)), g.input("zero", (5,), dtype)
        feeds |= {"scale": SCALES, "zero": zeros}
    floats = g.apply("DequantizeLinear", q, scale, zero, axis=1)
    net = g.compile(floats=floats, q2=g.apply("QuantizeLinear", x, scale, zero, axis=1), engine=engine())
    assert net.refused == {}
    found = net.run(feeds)
    by = (5, 1)
    wanted = (feeds["q"].astype(np.float32) - zeros.reshape(by).astype(np.float32)) * SCALES.reshape(by)
    largest = np.abs(zeros.astype(np.float32)).max() + np.abs(feeds["q"].astype(np.float32)).max()
    bound = 0 if is_data else 2.0**-22 * largest * SCALES.max()
    np.testing.assert_allclose(found["floats"], wanted, rtol=0, atol=bound)
    steps = np.rint(feeds["x"] / SCALES.reshape(by)).astype(np.int64) + zeros.reshape(by)
    info = np.iinfo(dtype)
    assert found["q2"].dtype == dtype
    assert np.array_equal(found["q2"], np.clip(steps, info.min, info.max).astype(dtype))


def test_one_scale_that_is_data() -> None:
    g = dnn.Graph()
    a, b = g.input("a", (4, 6), np.uint8), g.input("b", (6, 3), np.int8)
    scale = g.input("scale", ())
    left = g.apply("DequantizeLinear", a, scale, np.array(7, np.uint8))
    y = g.apply("MatMul", left, g.apply("DequantizeLinear", b, np.float32(0.25)))
    net = g.compile(y=y, engine=engine())
    feeds = {"a": integers(np.uint8, 4, 6), "b": integers(np.int8, 6, 3), "scale": np.float32(0.5)}
    assert net.refused == {}
    wanted = (feeds["a"].astype(np.float64) - 7) @ feeds["b"] / 8
    assert np.array_equal(net.run(feeds)["y"], wanted)


@pytest.mark.parametrize("is_data", [False, True])
@pytest.mark.parametrize("b_type", [np.int8, np.uint8])
def test_sums_of_products(b_type: Any, is_data: bool) -> None:
    """MatMulInteger as an output, and what integer arithmetic makes of it."""
    g, weights = dnn.Graph(), integers(b_type, 60, 9)
    a, b = g.input("a", (4, 60), np.uint8), g.input("b", (60, 9), b_type) if is_data else weights
    sums = g.apply("MatMulInteger", a, b, np.array(3, np.uint8), np.array(2, b_type))
    net = g.compile(sums=sums, twice=g.apply("Add", sums, sums), engine=engine())
    assert net.refused == {}
    feeds = {"a": integers(np.uint8, 4, 60)} | ({"b": weights} if is_data else {})
    wanted = (feeds["a"].astype(np.int32) - 3) @ (weights.astype(np.int32) - 2)
    found = net.run(feeds)
    assert found["sums"].dtype == np.int32
    assert np.array_equal(found["sums"], wanted) and np.array_equal(found["twice"], 2 * wanted)


@pytest.mark.parametrize("is_data", [False, True])
def test_sums_of_windows(is_data: bool) -> None:
    """ConvInteger with padding, which stands for the zero point, and a zero point for each channel."""
    g, weights, zeros = dnn.Graph(), integers(np.int8, 6, 4, 3, 3), np.arange(6).astype(np.int8)
    x, w = g.input("x", (1, 4, 5, 5), np.uint8), g.input("w", weights.shape, np.int8) if is_data else weights
    sums = g.apply("ConvInteger", x, w, np.array(9, np.uint8), zeros, pads=(1, 1, 1, 1))
    net = g.compile(y=sums, engine=engine())
    assert net.refused == {}
    feeds = {"x": integers(np.uint8, 1, 4, 5, 5)} | ({"w": weights} if is_data else {})
    padded = np.pad(feeds["x"][0].astype(np.int64) - 9, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    wanted = np.einsum("cijkl,ockl->oij", windows, weights.astype(np.int64) - zeros.reshape(6, 1, 1, 1))
    assert np.array_equal(net.run(feeds)["y"][0], wanted)


def test_sums_beyond_f32_are_not_rounded() -> None:
    """Of more terms than 24 bits hold: no kernel, and numpy where it is allowed."""
    g, k = dnn.Graph(), 1024
    a, b = g.input("a", (2, k), np.uint8), g.input("b", (k, 3), np.uint8)
    y = g.apply("MatMulInteger", a, b)
    with pytest.raises(dnn.Unimplemented, match="MatMulInteger"):
        g.compile(y=y, engine=engine())
    full = np.full((2, k), 255, np.uint8)
    net = g.compile(y=y, engine=engine(), fallback="numpy")
    assert (net.run({"a": full, "b": np.full((k, 3), 255, np.uint8)})["y"] == k * 255 * 255).all()


def test_a_scale_below_0() -> None:
    """Which has no kernel of integers: floats are made by arithmetic."""
    g, scale, zero = dnn.Graph(), np.float32(-0.25), np.uint8(128)
    bytes_ = g.apply("QuantizeLinear", g.input("x", (4, 40)), scale, zero)
    net = g.compile(y=g.apply("DequantizeLinear", bytes_, scale, zero), engine=engine())
    feeds = {"x": random(4, 40)}
    found = net.run(feeds)["y"]
    assert net.is_native
    assert np.array_equal(found, np.rint(feeds["x"] / scale) * scale)
    assert np.abs(found).max() > 0


def blocks(x: np.ndarray, size: int) -> np.ndarray:
    """Each element of the last axis so often, but for those that 8 elements have no place for."""
    return np.repeat(x, size, -1)[..., :8]


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("has_points", [False, True])
@pytest.mark.parametrize("dims", [(), (8,), (4, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_scales_that_are_data_in_any_place(
    dtype: Any, dims: tuple[int, ...], has_points: bool, is_constant: bool
) -> None:
    """Of data and of constants, by blocks of three, the last of which is cut: f32 inside, rounded once."""
    g, q = dnn.Graph(), integers(np.uint8, 4, 8)
    feeds = {"scale": np.asarray(np.random.default_rng(7).uniform(0.01, 0.1, dims).astype(dtype))}
    given = [g.input("scale", dims, dtype)]
    if not is_constant:
        feeds["q"] = q
    if has_points:
        feeds["zero"] = integers(np.uint8, *dims)
        given.append(g.input("zero", dims, np.uint8))
    how: dict[str, Any] = {"axis": 1, "block_size": 3} if len(dims) > 1 else {"axis": 1}
    floats = g.apply("DequantizeLinear", q if is_constant else g.input("q", (4, 8), np.uint8), *given, **how)
    net = g.compile(y=floats, engine=engine())
    assert net.is_native
    found = net.run(feeds)["y"]
    spread = [blocks(x.astype(np.float32), 3) if len(dims) > 1 else x.astype(np.float32) for x in feeds.values()]
    named = dict(zip(feeds, spread, strict=True))
    wanted = (q.astype(np.float32) - named.get("zero", np.float32(0))) * named["scale"]
    assert found.dtype == dtype and np.array_equal(found, wanted.astype(dtype))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_bytes_by_blocks_that_are_data(dtype: Any) -> None:
    g = dnn.Graph()
    feeds = {"x": random(4, 8) * 3, "scale": SCALES[:1] * np.ones((4, 3), np.float32), "zero": integers(dtype, 4, 3)}
    feeds["scale"][1, 2] /= 3
    given = [g.input(name, x.shape, x.dtype) for name, x in feeds.items()]
    net = g.compile(y=g.apply("QuantizeLinear", *given, axis=1, block_size=3), engine=engine())
    assert net.is_native
    steps = np.rint(feeds["x"] / blocks(feeds["scale"], 3)) + blocks(feeds["zero"].astype(np.int64), 3)
    ends = np.iinfo(dtype)
    assert np.array_equal(net.run(feeds)["y"], np.clip(steps, ends.min, ends.max).astype(dtype))


def test_sums_of_32_bits_become_floats() -> None:
    g = dnn.Graph()
    sums, scale = g.input("sums", (3, 5), np.int32), np.float32(0.25)
    net = g.compile(y=g.apply("DequantizeLinear", sums, scale), engine=engine())
    assert net.is_native
    feed = np.random.default_rng(3).integers(-(2**31), 2**31, (3, 5)).astype(np.int32)
    assert np.array_equal(net(feed), feed.astype(np.float32) * scale)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"output_dtype": 3}, "output_dtype is int8, its zero point is uint8"),
        ({"precision": 10}, "precision is 10, 0 and 1 are defined"),
    ],
)
def test_types_that_contradict_each_other(how: dict[str, Any], words: str) -> None:
    g = dnn.Graph()
    y = g.apply("QuantizeLinear", g.input("x", (4, 8)), np.float32(0.1), np.uint8(3), **how)
    with pytest.raises(dnn.InvalidArguments, match=f"QuantizeLinear.*{words}"):
        g.compile(y=y, engine=engine())


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("has_root", [False, True])
def test_what_is_no_number_is_the_least_integer(dtype: Any, has_root: bool) -> None:
    """As in onnxruntime; the definition, by which `verify` judges, says the same."""
    g, x = dnn.Graph(), np.array([[np.nan, -4, np.inf, 9, 1, -np.inf]], np.float32)
    floats = g.input("x", x.shape)
    y = g.apply("QuantizeLinear", g.apply("Sqrt", floats) if has_root else floats, np.float32(0.5), dtype(9))
    net = g.compile(y=y, engine=engine())
    ends = np.iinfo(dtype)
    roots = [ends.min, ends.min, ends.max, 15, 11, ends.min]
    wanted = roots if has_root else [ends.min, max(1, ends.min), ends.max, 27, 11, ends.min]
    assert net.is_native and net.run({"x": x})["y"].tolist() == [wanted]
    assert all(one.fits for one in net.verify({"x": x}))
