"""dnn.ops.pack_quantized_weights, and products of arrays with what it packs."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from tests.support.drawing import RANDOM, floats

BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("dtype", ["s4", "u4", "s8", "u8"])
@pytest.mark.parametrize("group", [16, 64])
def test_real_numbers_are_rounded_to_the_nearest(dtype: Any, group: int) -> None:
    """Within half a step, of 15 between the least and the largest or 14 around 0, or 255 and 254; 0 stays 0."""
    b = floats(128, 37)
    b[5] = 0
    packed = ops.pack_quantized_weights(b, dtype=dtype, group=group)
    rows = b.reshape(-1, group, 37)
    ends = np.abs(rows).max(1) if dtype[0] == "s" else np.maximum(rows.max(1), 0) - np.minimum(rows.min(1), 0)
    step = ends / {"s4": 7, "u4": 15, "s8": 127, "u8": 255}[dtype]
    exact = packed.dequantize()
    error = np.abs(exact - b).reshape(rows.shape)
    assert (error <= (0.5 if dtype[0] == "s" else 1) * step[:, None] + 1e-6).all()
    assert (np.abs(exact[5]) < 1e-6).all()
    assert (packed.dims, packed.group, packed.dtype) == ((128, 37), group, dtype)
    size = 128 * int(dtype[1]) // 8  # two of 4 bits in a byte
    assert packed.weights.desc.size_bytes == size * packed.weights.desc.padded_dims[1]


def test_integers_stay(isa: str) -> None:
    """As scales and zero points say; products are of these, and of rows rounded to 8 bits."""
    engine = dnn.Engine(isa=isa, threads=2)
    for dtype, least, most in (("s4", -8, 7), ("u4", 0, 15), ("s8", -128, 127), ("u8", 0, 255)):
        b = RANDOM.integers(least, most, (96, 21), endpoint=True)
        scales = RANDOM.uniform(0.5, 2, (3, 21)).astype(np.float32)
        points = RANDOM.integers(0, most + 1, (3, 21)) if dtype[0] == "u" else None
        packed = ops.pack_quantized_weights(b, scales, points, dtype=dtype, engine=engine)  # type: ignore[arg-type]
        shifted = b.reshape(3, 32, 21) - (0 if points is None else points[:, None])
        exact = (shifted * scales[:, None].astype(np.float64)).reshape(96, 21)
        np.testing.assert_allclose(packed.dequantize(), exact, 1e-5, 1e-3)
        a = floats(2, 3, 96)
        steps = np.abs(a).reshape(2, 3, 3, 32).max(-1).repeat(32, -1) / 254
        found = ops.matmul(a, packed, engine=engine)
        assert (np.abs(found - a @ exact) <= steps @ np.abs(exact) * (1 + 1e-4) + 1e-3).all()


@pytest.mark.parametrize("kind", [np.dtype(np.float32), BF16, np.dtype(np.float16)], ids=str)
def test_what_matmul_takes(kind: Any) -> None:
    """Batches, a bias, post-ops, types of results, destinations; the same bits in every way."""
    packed, a, bias = ops.pack_quantized_weights(floats(64, 50)), floats(2, 3, 64, kind=kind), floats(50)
    whole = ops.matmul(a, packed, bias, post_ops=[dnn.Eltwise("relu")])
    assert (whole.dtype, whole.shape) == (kind, (2, 3, 50))
    exact = ops.matmul(a, packed, bias.astype(BF16).astype(np.float32), dtype=dnn.f32)
    np.testing.assert_array_equal(exact, ops.matmul(a, packed, dtype=dnn.f32) + bias.astype(BF16).astype(np.float32))
    np.testing.assert_array_equal(exact, ops.matmul(a, packed, bias.astype(BF16), dtype=dnn.f32))
    np.testing.assert_array_equal(whole, np.maximum(ops.matmul(a, packed, bias, dtype=dnn.f32), 0).astype(kind))
    out = np.zeros((2, 3, 50), kind)
    assert ops.matmul(a, packed, bias, post_ops=[dnn.Eltwise("relu")], out=out) is out
    np.testing.assert_array_equal(out, whole)
    columns = np.zeros((6, 60), kind)[:, 5:55]
    ops.matmul(a.reshape(6, 64), packed, bias, post_ops=[dnn.Eltwise("relu")], out=columns)
    np.testing.assert_array_equal(columns, whole.reshape(6, 50))
    np.testing.assert_array_equal(ops.matmul(a[:, ::-1], packed), ops.matmul(a, packed)[:, ::-1])


def test_one_row_and_many_have_the_same_bits(isa: str) -> None:
    packed, a = ops.pack_quantized_weights(floats(256, 130), engine=dnn.Engine(isa=isa)), floats(11, 256)
    many = [ops.matmul(a, packed, engine=dnn.Engine(isa=isa, threads=n)) for n in (1, 2, 3)]
    rows = [ops.matmul(a[i : i + 1], packed, engine=dnn.Engine(isa=isa)) for i in range(11)]
    for found in (many[1], many[2], np.concatenate(rows)):
        assert np.array_equal(found, many[0])


@pytest.mark.parametrize("dtype", ["s4", "u8"])
def test_sums_of_f32_take_rows_as_they_are(isa: str, dtype: Any) -> None:
    """Within (k + 8) roundings of what is summed; the other mode's calls are others."""
    engine = dnn.Engine(isa=isa)
    packed, a = ops.pack_quantized_weights(floats(128, 70), dtype=dtype, engine=engine), floats(5, 128)
    exact = packed.dequantize().astype(np.float64)
    for rows in (1, 5):
        found = ops.matmul(a[:rows], packed, accumulation_mode="f32", engine=engine)
        size = np.abs(a[:rows].astype(np.float64)) @ np.abs(exact) + 16 * np.abs(a[:rows]).sum(1, keepdims=True)
        assert (np.abs(found - a[:rows] @ exact) <= (128 + 8) * 2.0**-24 * size).all()
        assert not np.array_equal(found, ops.matmul(a[:rows], packed, engine=engine))


B, SCALES = np.random.default_rng(4).integers(0, 8, (64, 5)), np.ones((2, 5), np.float32)


@pytest.mark.parametrize(("arguments", "options", "says"), [
    ((floats(64, 5),), {"dtype": "s5"}, "dtype must be one of s4, u4, s8, u8"),
    ((floats(65, 5),), {}, "group is 32, it must be a whole number that divides the 65 rows of b"),
    ((floats(64, 5),), {"group": 8}, "groups are of 8 k, they must be of 16 to 256, a multiple of 16"),
    ((floats(64),), {}, "b has dims"),
    ((np.full((64, 5), np.nan),), {}, "b has NaN or infinities"),
    ((floats(64, 5), None, B), {}, "zero_points are of integers with scales"),
    ((floats(64, 5), SCALES), {}, "b has dtype float32, with scales it must be of integers"),
    ((B - 9, SCALES), {}, "b has numbers from -9 to -2, they must be -8 to 7"),
    ((B, SCALES, B[:2]), {}, "zero_points are given, but s4 has none"),
    ((B, SCALES, B[:1]), {"dtype": "u4"}, r"zero_points have dims \(1, 5\), they must be"),
    ((B, SCALES, B[:2] + 9), {"dtype": "u4"}, "zero_points has numbers from .* they must be 0 to 15"),
    ((B, SCALES[:, :4]), {}, r"scales have dims \(2, 4\), they must be \(k / group, n\): \(2, 5\)"),
    ((B, np.ones((3, 5))), {}, "scales have 3 rows, they must divide k, 64"),
    ((B, SCALES * 0), {}, r"scales\[0, 0\] is 0.0, scales must be numbers above 0"),
    ((B, SCALES * np.nan), {}, "is nan, scales must be numbers above 0"),
    ((B, -SCALES), {}, "is -1.0, scales must be numbers above 0"),
])  # fmt: skip
def test_junk_is_not_packed(arguments: tuple[Any, ...], options: dict[str, Any], says: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=says):
        ops.pack_quantized_weights(*arguments, **options)


@pytest.mark.parametrize(("arguments", "options", "says"), [
    ((floats(2, 63),), {}, r"a has dims \(2, 63\), it must have 2 or more, the last one k of the weights, 64"),
    ((floats(64),), {}, "a has dims"),
    ((floats(2, 64), floats(4)), {}, r"bias has dims \(4,\), it must be a vector of 5"),
    ((floats(2, 64),), {"scales": {"a": 2}}, "give them to pack_quantized_weights"),
    ((floats(2, 64),), {"out": np.zeros((2, 4), np.float32)}, "out has dims"),
    ((floats(2, 3, 64),), {"out": np.zeros((2, 4, 5), np.float32)[:, :3]}, "which make no matrix of its rows"),
    ((np.zeros((2, 64)),), {}, "a has dtype float64"),
])  # fmt: skip
def test_junk_is_not_multiplied(arguments: tuple[Any, ...], options: dict[str, Any], says: str) -> None:
    a, *bias = arguments
    with pytest.raises(dnn.InvalidArguments, match=says):
        ops.matmul(a, ops.pack_quantized_weights(B, SCALES), *bias, **options)


def test_integers_are_not_multiplied() -> None:
    with pytest.raises(dnn.Unimplemented, match="a is u8, only f32, bf16, f16 is implemented"):
        ops.matmul(np.ones((2, 64), np.uint8), ops.pack_quantized_weights(B, SCALES))
