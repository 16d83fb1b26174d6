"""dnn.ops.conv2d and its relatives of f16, bf16 and bytes, with scales and zero points."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.convolution import convolution
from asmdnn.definitions.windows import SlidingWindow
from asmdnn.ops.calls import calls
from tests.support.drawing import RANDOM, floats, integers

BF16 = np.dtype(ml_dtypes.bfloat16)
ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}


def sums(x: Any, w: Any, stride: int = 1, padding: int = 0, groups: int = 1) -> Any:
    """Of a convolution, in the arithmetic of the arrays, of any spatial axes."""
    sizes = ((size,) * (w.ndim - 2) for size in (stride, 1, padding, padding))
    return convolution(x, w, SlidingWindow(w.shape[2:], *sizes), groups)


@pytest.mark.parametrize("kind", [np.float16, BF16], ids=["f16", "bf16"])
@pytest.mark.parametrize("dtype", [None, dnn.f32], ids=["own", "f32"])
@pytest.mark.parametrize("groups", [1, 6])
def test_floats_of_16_bits(kind: Any, dtype: dnn.DataType | None, groups: int) -> None:
    x, w, b = floats(2, 6, 7, 8, kind=kind), floats(12, 6 // groups, 3, 3, kind=kind), floats(12, kind=np.float32)
    packed = dnn.ops.pack_conv_weights(w, padding=1, groups=groups)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    wide, factors = x.astype(np.float64), w.astype(np.float64)
    wanted = np.maximum(sums(wide, factors, padding=1, groups=groups) + b.reshape(-1, 1, 1), 0)
    size = sums(np.abs(wide), np.abs(factors), padding=1, groups=groups) + 1
    for image, weights in ((x, w), (last, packed)):
        result = dnn.ops.conv2d(
            image, weights, b, padding=1, groups=groups, dtype=dtype, post_ops=[dnn.Eltwise("relu")]
        )
        assert result.dtype == (kind if dtype is None else np.float32) and result.shape == wanted.shape
        assert (np.abs(result - wanted) <= 64 * 2.0**-24 * size + wanted * ROUNDOFF[result.dtype.name]).all()


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("transposed", [False, True], ids=["conv", "transpose"])
def test_f32_with_weights_that_a_mode_packed(transposed: bool, groups: int) -> None:
    """Rounded to bf16 once, not in every call: bits are those of plain weights in that mode."""
    ops = dnn.ops
    conv, pack = ops.conv2d, ops.pack_conv_weights
    if transposed:
        conv, pack = ops.conv_transpose2d, ops.pack_conv_transpose_weights  # type: ignore[assignment]
    engine = dnn.Engine(isa="avx512_core_bf16", machine="zen3")
    window: dict[str, Any] = {"padding": 1, "groups": groups, "engine": engine, "fpmath_mode": "bf16"}
    x, w, b = (floats(*dims, kind=np.float32) for dims in ((2, 64, 14, 14), (64, 64 // groups, 3, 3), (64,)))
    packed = pack(w, x.shape, **window)
    assert packed.desc.dtype == dnn.bf16
    assert pack(w, x.shape, **{**window, "fpmath_mode": "strict"}).desc.dtype == dnn.f32
    wanted = conv(x, w, b, **window)
    exact = conv(x, w, b, **{**window, "fpmath_mode": "strict"})
    size = conv(np.abs(x), np.abs(w), np.abs(b), **{**window, "fpmath_mode": "strict"})
    assert np.abs(wanted - exact).max() > 0 and (np.abs(wanted - exact) <= 2.0**-7 * size).all()
    for _ in range(2):
        result = conv(x, packed, b, **window)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, wanted)
    assert any(packed.desc in key for key in calls.entries), "described in every call, which takes ten times as long"
    half = np.zeros(wanted.shape, np.float16)
    assert conv(x, packed, b.astype(np.float16), out=half, **window) is half
    assert (np.abs(half - wanted) <= 2.0**-10 * (size + 1)).all()


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_sums_of_bytes(kind: Any, axes: int) -> None:
    conv = (dnn.ops.conv1d, dnn.ops.conv2d, dnn.ops.conv3d)[axes - 1]
    x, w = integers(kind, 2, 9, *(5, 6, 7)[:axes]), integers(np.int8, 10, 9, *(3,) * axes)
    wide, factors = x.astype(np.int64), w.astype(np.int64)
    for weights in (w, dnn.ops.pack_conv_weights(w, stride=2, padding=1)):
        result = conv(x, weights, stride=2, padding=1)
        assert result.dtype == np.int32
        np.testing.assert_array_equal(result, sums(wide, factors, stride=2, padding=1))
    shifted = conv(x, w, padding=1, zero_points={"x": 77})
    np.testing.assert_array_equal(shifted, sums(wide - 77, factors, padding=1))


def test_quantized_to_bytes() -> None:
    """By output channels, of groups too, with a bias, zero points on both sides, and a sum."""
    for groups in (1, 2, 8):
        x, w, b = integers(np.uint8, 1, 8, 6, 6), integers(np.int8, 16, 8 // groups, 3, 3), floats(16, kind=np.float32)
        channels = (2.0 ** RANDOM.integers(-9, -5, 16)).astype(np.float32)
        out = integers(np.uint8, 1, 16, 6, 6)
        exact = 0.5 * sums(x.astype(np.int64) - 77, w.astype(np.int64), padding=1, groups=groups)
        exact = (channels.reshape(-1, 1, 1) * exact + b.reshape(-1, 1, 1) + out.astype(np.int64)) / 0.25 + 128
        scales, points = {"x": 0.5, "weights": channels, "out": 0.25}, {"x": 77, "out": 128}
        options: dict[str, Any] = {"scales": scales, "zero_points": points, "post_ops": [dnn.Sum()], "out": out}
        assert dnn.ops.conv2d(x, w, b, padding=1, groups=groups, **options) is out
        doubt = np.abs(exact - np.rint(exact)) > 0.499  # f32 may round these either way
        assert (np.abs(out - np.clip(np.rint(exact), 0, 255)) <= doubt).all()
    floating = dnn.ops.conv2d(x, w, groups=groups, scales={"weights": channels})
    assert floating.dtype == np.float32
    wanted = sums(x.astype(np.int64), w.astype(np.int64), groups=groups)
    np.testing.assert_array_equal(floating, channels.reshape(-1, 1, 1) * wanted)


def adjoint(x: Any, w: Any, stride: int, groups: int) -> Any:
    """Every element of x adds its weights to a window of the result."""
    n, c, *pixels = x.shape
    sizes = [(p - 1) * stride + k for p, k in zip(pixels, w.shape[2:], strict=True)]
    result = np.zeros((n, groups, w.shape[1], *sizes), x.dtype)
    for tap in np.ndindex(*w.shape[2:]):
        window = tuple(slice(t, t + stride * (p - 1) + 1, stride) for t, p in zip(tap, pixels, strict=True))
        factors = w[(..., *tap)].reshape(groups, c // groups, -1)
        products = np.einsum("ngc...,gco->ngo...", x.reshape(n, groups, -1, *pixels), factors)
        result[(slice(None), slice(None), slice(None), *window)] += products
    return result.reshape(n, -1, *sizes)


@pytest.mark.parametrize("level", [pytest.param(n, marks=pytest.mark.isa(n)) for n in ("avx2", "avx512_core_vnni")])
@pytest.mark.parametrize("groups", [1, 2, 18])
@pytest.mark.parametrize("stride", [1, 2])
def test_adjoints_of_bytes(level: str, groups: int, stride: int) -> None:
    engine = dnn.Engine(isa=level, threads=1)
    x, w = integers(np.int8, 2, 18, 4, 5), integers(np.int8, 18, 36 // groups, 3, 3)
    wanted = adjoint(x.astype(np.int64) + 3, w.astype(np.int64), stride, groups)
    for weights in (w, dnn.ops.pack_conv_transpose_weights(w, stride=stride, groups=groups, engine=engine)):
        result = dnn.ops.conv_transpose2d(
            x, weights, stride=stride, groups=groups, zero_points={"x": -3}, engine=engine
        )
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("level", [pytest.param(n, marks=pytest.mark.isa(n)) for n in ("avx2", "avx512_core_bf16")])
@pytest.mark.parametrize("kind", [np.float16, BF16], ids=["f16", "bf16"])
@pytest.mark.parametrize("groups", [1, 2, 18])
@pytest.mark.parametrize("stride", [1, 2])
def test_adjoints_of_floats_of_16_bits(level: str, kind: Any, groups: int, stride: int) -> None:
    """Sums of f32, of at most 9 kernel positions and a bias, within gamma of their absolute values; rounded once."""
    engine = dnn.Engine(isa=level, threads=1)
    x, w, b = floats(2, 18, 4, 5, kind=kind), floats(18, 36 // groups, 3, 3, kind=kind), floats(36, kind=np.float32)
    wide, factors, bias = x.astype(np.float64), w.astype(np.float64), b.reshape(-1, 1, 1).astype(np.float64)
    wanted = adjoint(wide, factors, stride, groups) + bias
    size = adjoint(np.abs(wide), np.abs(factors), stride, groups) + np.abs(bias)
    terms = (9 * 18 // groups + 2) * 2.0**-24
    bound = size * terms / (1 - terms)
    packed = dnn.ops.pack_conv_transpose_weights(w, stride=stride, groups=groups, engine=engine)
    for weights, dtype in ((w, None), (packed, None), (packed, dnn.f32)):
        made = dnn.ops.conv_transpose2d(x, weights, b, stride=stride, groups=groups, dtype=dtype, engine=engine)
        assert made.dtype == (kind if dtype is None else np.float32) and made.shape == wanted.shape
        half_ulp = (np.abs(wanted) + bound) * ROUNDOFF[made.dtype.name]
        assert (np.abs(made.astype(np.float64) - wanted) <= bound + half_ulp + 2.0**-25).all()


@pytest.mark.parametrize("level", [pytest.param(n, marks=pytest.mark.isa(n)) for n in ("avx2", "avx512_core_vnni")])
def test_sums_are_modulo_2_to_the_32(level: str) -> None:
    """From as many channels on as docs/low-precision.md says."""
    x, w = np.full((1, 65_794, 1, 2), 255, np.uint8), np.full((16, 65_794, 1, 1), -128, np.int8)
    made = dnn.ops.conv2d(x, w, engine=dnn.Engine(isa=level, threads=1))
    assert (made == 2**32 - 255 * 128 * 65_794).all()


def test_bits_of_bf16_without_its_package() -> None:
    """A Memory that says what its words are gives words."""
    x, w = floats(1, 4, 5, 5, kind=BF16), floats(8, 4, 3, 3, kind=BF16)
    words = [dnn.Memory.from_array(a.view(np.uint16), dnn.bf16) for a in (x, w)]
    result = dnn.ops.conv2d(*words)
    np.testing.assert_array_equal(result.view(np.uint16), dnn.ops.conv2d(x, w).view(np.uint16))


X, W = integers(np.uint8, 1, 4, 6, 6), integers(np.int8, 8, 4, 3, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": {"a": 1.0}}, "scales has 'a', it must be one of x, weights, out"),
        (
            {"scales": {"weights": [1.0, 2.0]}},
            r"scales\['weights'\] has 2 elements, it must have 1, or 8 for the output channels",
        ),
        ({"scales": {"x": "y"}}, r"scales\['x'\] must be numbers"),
        ({"zero_points": {"x": 0.5}}, r"zero_points\['x'\] must be whole numbers"),
        ({"zero_points": {"x": -(2**31) - 1}}, r"\['x'\] has -2147483649, zero points must be -2147483648 to"),
        ({"zero_points": {"weights": [1] * 8}}, r"zero_points\['weights'\] has 8 elements, it must have 1"),
        ({"zero_points": [1]}, "zero_points must map x, weights or out to numbers"),
        ({"dtype": np.float64}, "dtype must be one of f32"),
        ({"out": np.zeros((1, 8, 4, 5), np.uint8)}, r"out has dims \(1, 8, 4, 5\), the result has \(1, 8, 4, 4\)"),
        ({"out": [1]}, "out must be an array in memory that can be written"),
        ({"post_ops": [dnn.Sum()]}, "out must be given, post-op Sum adds what it holds"),
        ({"groups": 3}, "the first must be a multiple of groups"),
        ({"bias": np.zeros((3, 5), np.float32)}, "bias"),
    ],
)
def test_bad_input(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.ops.conv2d(X, W, **options)


def test_unsigned_weights_are_exact() -> None:
    w = W.view(np.uint8)
    result = dnn.ops.conv2d(X, w)
    assert result.dtype == np.int32
    assert np.array_equal(result, sums(X.astype(np.int64), w.astype(np.int64)))


def test_types_that_nothing_multiplies() -> None:
    with pytest.raises(dnn.Unimplemented, match="zero points are for integers"):
        dnn.ops.conv2d(floats(1, 4, 5, 5, kind=np.float16), floats(8, 4, 3, 3, kind=np.float16), zero_points={"x": 1})
    with pytest.raises(dnn.InvalidArguments, match="x has 3 dims, 4 are needed"):
        dnn.ops.conv2d(X[0], W)
