"""dnn.ops.matmul of f16, bf16 and bytes, with scales and zero points."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.ops.calls import calls
from tests.support.drawing import RANDOM, floats, integers

BF16 = np.dtype(ml_dtypes.bfloat16)
ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}


@pytest.mark.parametrize("kind", [np.float16, BF16], ids=["f16", "bf16"])
@pytest.mark.parametrize("dtype", [None, dnn.f32], ids=["own", "f32"])
def test_floats_of_16_bits(kind: Any, dtype: dnn.DataType | None) -> None:
    a, b, bias = floats(2, 7, 30, kind=kind), floats(30, 19, kind=kind), floats(19, kind=np.float32)
    for columns in (b, np.ascontiguousarray(b.T).T, dnn.ops.pack_weights(b)):
        result = dnn.ops.matmul(a, columns, bias, dtype=dtype, post_ops=[dnn.Eltwise("relu")])
        assert result.dtype == (kind if dtype is None else np.float32) and result.shape == (2, 7, 19)
        wanted = np.maximum(a.astype(np.float64) @ b.astype(np.float64) + bias, 0)
        size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) + 1
        assert (np.abs(result - wanted) <= 64 * 2.0**-24 * size + wanted * ROUNDOFF[result.dtype.name]).all()


@pytest.mark.parametrize("first", [np.float16, BF16], ids=["f16", "bf16"])
@pytest.mark.parametrize(("second", "small"), [(np.float32, 2.0**-20), (np.float16, 2.0**-10), (BF16, 2.0**-20)])
def test_floats_of_two_types_are_not_rounded(isa: str, first: Any, second: Any, small: float) -> None:
    """Numbers that another type of 16 bits has not, or not beside 1, whose sums f32 has."""
    engine, a = dnn.Engine(isa=isa, threads=1), np.ones((3, 8), first)
    b = np.full((8, 5), 1 if second == BF16 else 1 + small, np.float32).astype(second)
    b[0] = small
    result = dnn.ops.matmul(a, b, dtype="f32", engine=engine)
    np.testing.assert_array_equal(result, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_sums_of_bytes(kind: Any) -> None:
    a, b = integers(kind, 6, 50), integers(np.int8, 50, 21)
    wanted = a.astype(np.int64) @ b.astype(np.int64)
    for columns in (b, dnn.ops.pack_weights(b)):
        result = dnn.ops.matmul(a, columns)
        assert result.dtype == np.int32
        np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(dnn.ops.matmul(a[::2, ::-1], b[::-1]), wanted[::2])
    shifted = dnn.ops.matmul(a, b, zero_points={"a": -3})
    np.testing.assert_array_equal(shifted, (a.astype(np.int64) + 3) @ b.astype(np.int64))


def test_quantized_to_bytes() -> None:
    """By columns of b, with a bias, and zero points on both sides."""
    a, b, bias = integers(np.uint8, 9, 40), integers(np.int8, 40, 17), floats(17, kind=np.float32)
    columns = (2.0 ** RANDOM.integers(-9, -5, 17)).astype(np.float32)
    scales = {"a": 0.5, "b": columns, "out": 0.25}
    out = np.zeros((9, 17), np.uint8)
    result = dnn.ops.matmul(a, b, bias, scales=scales, zero_points={"a": 77, "out": 128}, out=out)
    assert result is out
    exact = (0.5 * columns * ((a.astype(np.int64) - 77) @ b.astype(np.int64)) + bias) / 0.25 + 128
    doubt = np.abs(exact - np.rint(exact)) > 0.499  # f32 may round these either way
    assert (np.abs(out - np.clip(np.rint(exact), 0, 255)) <= doubt).all()
    floating = dnn.ops.matmul(a, b, scales={"b": columns})
    np.testing.assert_array_equal(floating, columns * (a.astype(np.int64) @ b.astype(np.int64)))


@pytest.mark.isa("avx512_core_bf16")
def test_f32_with_weights_that_a_mode_packed() -> None:
    """Bits are those of plain weights in that mode; calls are kept."""
    engine = dnn.Engine(isa="avx512_core_bf16", machine="zen3")
    a, b = floats(64, 256, kind=np.float32), floats(256, 64, kind=np.float32)
    packed = dnn.ops.pack_weights(b, engine, fpmath_mode="bf16")
    assert packed.desc.dtype == dnn.bf16
    wanted = dnn.ops.matmul(a.astype(BF16), b.astype(BF16), dtype=dnn.f32, engine=engine)
    for bias in (None, np.zeros((1, 64), np.float16)):
        result = dnn.ops.matmul(a, packed, bias, fpmath_mode="bf16", engine=engine)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, wanted)
    assert any(packed.desc in key for key in calls.entries), "described in every call, which takes ten times as long"


A, B = integers(np.uint8, 4, 8), integers(np.int8, 8, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": {"c": 1.0}}, "scales has 'c', it must be one of a, b, out"),
        ({"scales": {"b": [1.0, 2.0]}}, r"scales\['b'\] has 2 elements, it must have 1, or 3 for the columns of b"),
        ({"scales": {"a": "x"}}, r"scales\['a'\] must be numbers"),
        ({"scales": {"out": 0.0}}, r"scales\['out'\]\[0\] is 0.0, scales must be numbers above 0"),
        ({"scales": {"a": 1e300}}, r"scales\['a'\]\[0\] is inf"),
        ({"scales": {"b": [1.0, -1.0, 2.0]}}, r"scales\['b'\]\[1\] is -1.0"),
        ({"scales": {"b": [[1.0, 2.0, np.nan]] * 2}}, r"scales\['b'\]\[0, 2\] is nan"),
        ({"zero_points": {"a": 0.5}}, r"zero_points\['a'\] must be whole numbers"),
        ({"zero_points": {"a": 2**31}}, r"\['a'\] has 2147483648, zero points must be -2147483648 to 2147483647"),
        ({"zero_points": {"b": np.uint64([0, 2**63])}}, r"\['b'\] has from 0 to 9223372036854775808, zero points must"),
        ({"zero_points": [1]}, "zero_points must map a, b or out to numbers"),
        ({"dtype": np.float64}, "dtype must be one of f32"),
        ({"post_ops": [dnn.Sum()]}, "out must be given, post-op Sum adds what it holds"),
        ({"bias": np.zeros((3, 1, 1, 5), np.float32)}, "bias"),
    ],
)
def test_bad_input(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.ops.matmul(A, B, **options)


def test_types_that_nothing_multiplies() -> None:
    with pytest.raises(dnn.Unimplemented, match="does not multiply s8 by f16"):
        dnn.ops.matmul(B, floats(3, 4, kind=np.float16))
    with pytest.raises(dnn.Unimplemented, match="zero points are for integers, and a is f16"):
        dnn.ops.matmul(floats(3, 4, kind=np.float16), floats(4, 5, kind=np.float16), zero_points={"a": 1})
    with pytest.raises(dnn.InvalidArguments, match="batch dims must be equal or 1"):
        dnn.ops.matmul(floats(2, 3, 4, kind=np.float16), floats(3, 4, 5, kind=np.float16))
