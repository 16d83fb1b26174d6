"""dnn.ops.inner_product: every type against sums in float64 or int64, formats, what is kept, what is refused."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from tests.support.drawing import RANDOM, floats, integers

BF16 = np.dtype(ml_dtypes.bfloat16)
ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
RELU = (dnn.Eltwise("relu"),)


def rows(x: Any, kind: Any) -> Any:
    """As a matrix of a wider type."""
    return x.astype(kind).reshape(len(x), -1)


def product(x: Any, w: Any, kind: Any = np.int64) -> Any:
    return rows(x, kind) @ rows(w, kind).T


@pytest.mark.parametrize("dims", [(30,), (5, 3), (3, 4, 2), (4, 2, 3, 2)], ids=str)
@pytest.mark.parametrize(
    ("kinds", "dtype"),
    [
        ((np.float32, np.float32), None),
        ((np.float16, np.float16), None),
        ((BF16, BF16), None),
        ((BF16, BF16), dnn.f32),
        ((np.float32, BF16), None),
        ((np.float32, np.int8), None),
        ((np.float32, np.float32), dnn.bf16),
    ],
    ids=["f32", "f16", "bf16", "bf16 to f32", "f32 by bf16", "f32 by s8", "f32 to bf16"],
)
def test_floats(dims: tuple[int, ...], kinds: tuple[Any, Any], dtype: dnn.DataType | None) -> None:
    of_w = kinds[1]
    w = integers(of_w, 19, *dims) if np.dtype(of_w).kind == "i" else floats(19, *dims, kind=of_w)
    x, b = floats(7, *dims, kind=kinds[0]), floats(19)
    result = dnn.ops.inner_product(x, w, b, dtype=dtype, post_ops=RELU)
    asked = {None: kinds[0], dnn.f32: np.float32, dnn.bf16: BF16}[dtype]
    assert result.dtype == asked and result.shape == (7, 19)
    wanted = np.maximum(product(x, w, np.float64) + b, 0)
    size = product(np.abs(x), np.abs(w.astype(np.float64)), np.float64) + 1
    assert (np.abs(result - wanted) <= 64 * 2.0**-24 * size + wanted * ROUNDOFF[result.dtype.name]).all()


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("dims", [(50,), (5, 3, 3), (8, 2, 3)], ids=str)
def test_sums_of_bytes(kind: Any, dims: tuple[int, ...]) -> None:
    x, w = integers(kind, 6, *dims), integers(np.int8, 21, *dims)
    result = dnn.ops.inner_product(x, w)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, product(x, w))
    np.testing.assert_array_equal(dnn.ops.inner_product(x[::2, ::-1], w[:, ::-1]), product(x, w)[::2])
    shifted = dnn.ops.inner_product(x, w, zero_points={"x": -3})
    assert shifted.dtype == np.int32
    np.testing.assert_array_equal(shifted, rows(x, np.int64) @ rows(w, np.int64).T + 3 * rows(w, np.int64).sum(1))


def test_quantized_to_bytes() -> None:
    """By output channels, with a bias and zero points on both sides; then the kept call, with other numbers."""
    x, w, b = integers(np.uint8, 9, 40), integers(np.int8, 17, 40), floats(17)
    out = np.zeros((9, 17), np.uint8)
    for point in (77, 3):
        channels = (2.0 ** RANDOM.integers(-9, -5, 17)).astype(np.float32)
        scales = {"x": 0.5, "weights": channels, "out": 0.25}
        assert dnn.ops.inner_product(x, w, b, scales=scales, zero_points={"x": point, "out": 128}, out=out) is out
        exact = (0.5 * channels * product(x.astype(np.int64) - point, w) + b) / 0.25 + 128
        doubt = np.abs(exact - np.rint(exact)) > 0.499  # f32 may round these either way
        assert (np.abs(out - np.clip(np.rint(exact), 0, 255)) <= doubt).all()
    floating = dnn.ops.inner_product(x, w, scales={"weights": channels})
    assert floating.dtype == np.float32
    np.testing.assert_array_equal(floating, channels * product(x, w))


@pytest.mark.parametrize(("kind", "src"), [(np.int8, np.uint8), (BF16, BF16), (np.float32, np.float32)])
def test_weights_in_a_format_of_the_primitive(kind: Any, src: Any) -> None:
    """Packed once by a reorder: values are those of the plain ones, with small integers exactly."""
    x, w = (RANDOM.integers(0, 5, (rows, 64)).astype(t) for rows, t in ((12, src), (48, kind)))
    plain = dnn.Memory.from_array(w)
    wanted = dnn.MemoryDesc(w.shape, plain.desc.dtype, "any")
    images = dnn.Memory.from_array(x).desc
    desc = dnn.InnerProductForward(images, wanted, dnn.MemoryDesc((12, 48), dnn.f32, "ab"))
    packed = dnn.reorder(plain, dnn.primitive_desc(desc).weights_desc)
    assert packed.desc.inner_blocks
    np.testing.assert_array_equal(dnn.ops.inner_product(x, packed, dtype=dnn.f32), product(x, w))


def test_words_that_say_how() -> None:
    """fpmath_mode, Sum, a strided destination, no images."""
    x, w = floats(64, 256), floats(128, 256)
    fast = dnn.ops.inner_product(x, w, fpmath_mode="bf16", accumulation_mode="any")
    size = product(np.abs(x), np.abs(w), np.float64)
    assert (np.abs(fast - product(x, w, np.float64)) <= 2.0**-7 * size).all()
    wide = np.ones((64, 256), np.float32)
    out = wide[:, ::2]
    assert dnn.ops.inner_product(x, w, post_ops=[dnn.Sum(2.0)], out=out) is out
    assert (np.abs(out - 2 - product(x, w, np.float64)) <= 512 * 2.0**-24 * (size + 2)).all()
    assert (wide[:, 1::2] == 1).all()
    assert dnn.ops.inner_product(x[:0], w).shape == (0, 128)


X, W = integers(np.uint8, 4, 8), integers(np.int8, 3, 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": {"a": 1.0}}, "scales has 'a', it must be one of x, weights, out"),
        (
            {"scales": {"weights": [1.0, 2.0]}},
            r"scales\['weights'\] has 2 elements, it must have 1, or 3 for the output channels",
        ),
        ({"scales": {"x": [1.0, 2.0]}}, r"scales\['x'\] has 2 elements, it must have 1"),
        ({"zero_points": {"x": 0.5}}, r"zero_points\['x'\] must be whole numbers"),
        ({"zero_points": [1]}, "zero_points must map x, weights or out to numbers"),
        ({"dtype": np.float64}, "dtype must be one of f32"),
        ({"dtype": dnn.s8, "out": np.zeros((4, 3), np.uint8)}, "out is of u8, but dtype is s8"),
        ({"out": np.zeros((3, 4), np.int32)}, r"out has dims \(3, 4\), the result has \(4, 3\)"),
        ({"post_ops": [dnn.Sum()]}, "out must be given, post-op Sum adds what it holds"),
        ({"bias": np.zeros(4, np.float32)}, r"bias has dims \(4,\), it must be \(3,\)"),
        ({"weights": np.zeros((3, 8, 1), np.int8)}, r"weights has dims \(3, 8, 1\), x \(4, 8\)"),
        ({"weights": np.zeros((3, 7), np.int8)}, "all but the first must be equal"),
        ({"x": np.zeros(8, np.uint8)}, "x has 1 dim, it must have 2 to 5"),
        ({"fpmath_mode": "f33"}, "fpmath_mode"),
    ],
)
def test_bad_input(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.ops.inner_product(**{"x": X, "weights": W, **options})


def test_unsigned_weights_are_exact() -> None:
    x, w = integers(np.int8, 5, 8), integers(np.uint8, 3, 8)
    result = dnn.ops.inner_product(x, w)
    assert result.dtype == np.int32 and np.array_equal(result, product(x, w))


def test_what_nothing_multiplies() -> None:
    with pytest.raises(dnn.Unimplemented, match="zero points are for integers, and x is f16"):
        dnn.ops.inner_product(floats(3, 4, kind=np.float16), floats(5, 4, kind=np.float16), zero_points={"x": 1})
