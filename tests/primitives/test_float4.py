"""Floats of 4 bits: their codes, reorders from and to f32, products with them, and arrays."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import proved_desc

LEVELS = [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")]
ISAS = pytest.mark.parametrize("isa", LEVELS)
MAGNITUDES = np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6])
NF4 = np.float32(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022833334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
        0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ]
)  # fmt: skip
NUMBERS = {dnn.f4_e2m1: np.concatenate([MAGNITUDES, -MAGNITUDES]), dnn.nf4: NF4}
TYPES = pytest.mark.parametrize("dtype", NUMBERS, ids=str)


def t(*dims: int, dtype: dnn.DataType = dnn.f32, tag: str = "ab") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag)


def converted(src: dnn.Memory, dst: dnn.MemoryDesc, isa: str) -> dnn.Memory:
    """By a plan that is proved."""
    pd = proved_desc(dnn.Reorder(src.desc, dst), engine=dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    assert pd.implementation == f"nibbles+reorder:{isa}"
    made = dnn.Memory(dst)
    dnn.Primitive(pd).execute(src=src, dst=made)
    return made


@ISAS
@TYPES
def test_codes_are_the_numbers_of_the_table(isa: str, dtype: dnn.DataType) -> None:
    codes = np.arange(16, dtype=np.uint8).reshape(1, 16)
    memory = dnn.Memory.from_numpy(codes, t(1, 16, dtype=dtype))
    assert memory.desc.size_bytes == 8 and np.array_equal(memory.numpy(), codes)
    found = converted(memory, t(1, 16), isa).numpy()
    assert np.array_equal(found.view(np.uint32), NUMBERS[dtype].reshape(1, 16).view(np.uint32))
    again = converted(dnn.Memory.from_array(found), t(1, 16, dtype=dtype), isa)
    assert np.array_equal(again.numpy(), codes)


@ISAS
def test_f4_is_rounded_as_ml_dtypes_do(isa: str) -> None:
    """To nearest even; what is too large becomes the largest, and so does NaN."""
    middles = (MAGNITUDES[1:] + MAGNITUDES[:-1]) / 2
    beside = [np.nextafter(middles, np.float32(end)) for end in (0, 9)]
    x = np.concatenate([MAGNITUDES, middles, *beside, np.float32([6.5, 1e9, 1e-40, np.inf, 0])])
    x = np.concatenate([x, -x]).reshape(2, -1)
    found = converted(converted(dnn.Memory.from_array(x), t(*x.shape, dtype=dnn.f4_e2m1), isa), t(*x.shape), isa)
    wanted = np.clip(x, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert np.array_equal(found.numpy().view(np.uint32), wanted.view(np.uint32))
    nothing = converted(dnn.Memory.from_array(np.float32([[np.nan, 0]])), t(1, 2, dtype=dnn.f4_e2m1), isa)
    assert nothing.numpy()[0, 0] in (7, 15)


@ISAS
@pytest.mark.parametrize("tag", ["ab", "ba", "BA16b8a"])
def test_nf4_is_rounded_to_the_nearest(isa: str, tag: str) -> None:
    x = np.random.default_rng(3).uniform(-1.1, 1.1, (40, 32)).astype(np.float32)
    made = converted(dnn.Memory.from_array(x), t(40, 32, dtype=dnn.nf4, tag=tag), isa)
    nearest = np.abs(x[..., None].astype(np.float64) - NF4).argmin(-1)
    assert np.array_equal(made.numpy(), nearest)
    assert np.array_equal(converted(made, t(40, 32), isa).numpy(), NF4[nearest])


@ISAS
@TYPES
@pytest.mark.parametrize("rows", [1, 2, 5, 17])
@pytest.mark.parametrize("weights", ["ab", "any"])
def test_products(isa: str, dtype: dnn.DataType, rows: int, weights: str) -> None:
    """Scaled by groups of k, with a bias; within the bound of a sum of f32."""
    k, n, group = 96, 72, 32
    random = np.random.default_rng(rows)
    attr = dnn.Attr([dnn.Eltwise("relu")], scales={"weights": 3}, groups={"weights": (group, 1)})
    desc = dnn.MatMul(t(rows, k), t(k, n, dtype=dtype, tag=weights), t(rows, n), t(1, n))
    pd = proved_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    assert pd.implementation == f"{'reorder+' * (weights == 'ab')}unpacking:{isa}"
    codes = random.integers(0, 16, (k, n)).astype(np.uint8)
    a, bias = random.standard_normal((rows, k)).astype(np.float32), random.standard_normal((1, n)).astype(np.float32)
    scales = random.uniform(0.1, 2, (k // group, n)).astype(np.float32)
    dst = dnn.Memory(pd.dst_desc)
    assert pd.weights_desc is not None
    dnn.Primitive(pd).execute(
        src=dnn.Memory.from_array(a), bias=dnn.Memory.from_array(bias), dst=dst,
        weights=dnn.Memory.from_numpy(codes, pd.weights_desc), weights_scales=dnn.Memory.from_array(scales.ravel()),
    )  # fmt: skip
    wide = NUMBERS[dtype][codes].astype(np.float64) * np.repeat(scales, group, 0)
    size = np.abs(a).astype(np.float64) @ np.abs(wide) + 1
    assert (np.abs(dst.numpy() - np.maximum(a.astype(np.float64) @ wide + bias, 0)) <= (k + 4) * 2.0**-24 * size).all()


@ISAS
@TYPES
@pytest.mark.parametrize("rows", [1, 9])
def test_arrays_are_packed_once(isa: str, dtype: dnn.DataType, rows: int) -> None:
    """Real numbers are scaled by the largest of a group; codes come with scales."""
    engine = dnn.Engine(isa=isa, threads=1)  # type: ignore[arg-type]
    random = np.random.default_rng(5)
    b, a = random.standard_normal((64, 40)).astype(np.float32), random.standard_normal((rows, 64)).astype(np.float32)
    packed = dnn.ops.pack_quantized_weights(b, dtype=dtype.name, group=16, engine=engine)  # type: ignore[arg-type]
    assert packed.dtype == dtype.name and packed.offsets is None
    largest = NUMBERS[dtype].max()
    scales = np.abs(b.reshape(4, 16, 40)).max(1) / largest
    gap = np.diff(np.sort(NUMBERS[dtype])).max() / 2
    assert (np.abs(packed.dequantize() - b) <= np.repeat(scales, 16, 0) * gap * (1 + 1e-6)).all()
    exact = a.astype(np.float64) @ packed.dequantize()
    assert np.abs(dnn.ops.matmul(a, packed, engine=engine) - exact).max() < 1e-4
    codes = random.integers(0, 16, (64, 40))
    given = dnn.ops.pack_quantized_weights(codes, scales, dtype=dtype.name, engine=engine)  # type: ignore[arg-type]
    assert np.allclose(given.dequantize(), NUMBERS[dtype][codes] * np.repeat(scales, 16, 0), rtol=1e-6)


def test_what_does_not_fit() -> None:
    src, dst = t(2, 32), t(2, 16)
    desc = dnn.MatMul(src, t(32, 16, dtype=dnn.nf4), dst)
    with pytest.raises(dnn.Unimplemented, match="zero points are for integers, and weights are nf4: leave them out"):
        dnn.primitive_desc(desc, dnn.Attr(zero_points={"weights": 0}))
    with pytest.raises(dnn.Unimplemented, match="zero points are for integers, and floats of 4 bits have none"):
        dnn.primitive_desc(dnn.Reorder(src, t(2, 32, dtype=dnn.f4_e2m1)), dnn.Attr(zero_points={"dst": 0}))
    with pytest.raises(dnn.InvalidArguments, match="two in a byte, have 3 elements side by side"):
        t(2, 3, dtype=dnn.nf4)
    with pytest.raises(dnn.InvalidArguments, match="from 0 to 16, nf4 has 0 to 15"):
        dnn.Memory.from_numpy(np.array([[0, 16]], np.uint8), t(1, 2, dtype=dnn.nf4))
    b: Any = np.ones((32, 4), np.float32)
    with pytest.raises(dnn.InvalidArguments, match="zero_points are given, but nf4 is of floats"):
        dnn.ops.pack_quantized_weights(b.astype(int), b[:2], b[:2].astype(int), dtype="nf4")
    with pytest.raises(dnn.InvalidArguments, match=r"dtype must be one of .*nf4.* not 'f4'"):
        dnn.ops.pack_quantized_weights(b, dtype="f4")  # type: ignore[arg-type]
    octets, scales = t(16, 16, dtype=dnn.u8), t(1, 16)
    for words, message in (
        ({"table": "nf5"}, "table must be one of"),
        ({"table": "nf4", "zero_point": 8}, "table is nf4: it is of 4 bits, without zero points"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=message):
            dnn.QuantizedMatMul(src, octets, scales, dst, **words)  # type: ignore[arg-type]
