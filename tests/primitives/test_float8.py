"""f8_e5m2 and f8_e4m3 against ml_dtypes: every code, every boundary of rounding, and the primitives that take them."""

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn

LEVELS = [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")]
FORMATS = {dnn.f8_e5m2: ml_dtypes.float8_e5m2, dnn.f8_e4m3: ml_dtypes.float8_e4m3fn}
TYPES = pytest.mark.parametrize("dtype", FORMATS, ids=str)
ISAS = pytest.mark.parametrize("isa", LEVELS)
Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


def engine(isa: str) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=1)


def converted(src: dnn.Memory, dst: dnn.MemoryDesc, isa: str) -> dnn.Memory:
    result = dnn.Memory(dst)
    dnn.Primitive(dnn.primitive_desc(dnn.Reorder(src.desc, dst), engine=engine(isa))).execute(src=src, dst=result)
    return result


def eltwise(desc: dnn.MemoryDesc) -> dnn.EltwiseForward:
    return dnn.EltwiseForward(dnn.PropKind.forward_inference, "linear", desc, desc, 2.0, 0.5)


def numbers_of(dtype: dnn.DataType) -> Floats:
    """What every code means."""
    return np.arange(256, dtype=np.uint8).view(FORMATS[dtype]).astype(np.float32)


def boundaries(dtype: dnn.DataType) -> Floats:
    """The numbers of a type, the middles between them and those after the last, what lies beside, and special ones."""
    all_of_them = numbers_of(dtype)
    known = np.unique(all_of_them[np.isfinite(all_of_them)])
    step = known[-1] - known[-2]
    beyond = known[-1] + step * np.float32([0.5, 1, 1.5, 2])
    told = np.concatenate([known, (known[1:] + known[:-1]) / 2, beyond, -beyond])
    beside = [np.nextafter(told, np.float32(side)) for side in (-np.inf, np.inf)]
    tiny = np.float32([1e-45, 1e-40, 1.1754942e-38, 2**-20, 3e38, np.inf, np.nan, 0.0])
    return np.concatenate([told, *beside, tiny, -tiny])


def nearest(values: Floats, dtype: dnn.DataType) -> Bytes:
    with np.errstate(invalid="ignore"):
        return values.astype(FORMATS[dtype]).view(np.uint8)


@ISAS
@TYPES
def test_every_code_as_f32(isa: str, dtype: dnn.DataType) -> None:
    codes = np.arange(256, dtype=np.uint8)
    src = dnn.Memory.from_array(codes.view(FORMATS[dtype]))
    assert src.desc.dtype == dtype
    found = converted(src, dnn.MemoryDesc(codes.shape, dnn.f32, "a"), isa).array
    wanted = numbers_of(dtype)
    is_nan = np.isnan(wanted)
    assert np.isnan(found[is_nan]).all()
    assert np.array_equal(found.view(np.uint32)[~is_nan], wanted.view(np.uint32)[~is_nan])


@ISAS
@TYPES
@pytest.mark.parametrize("columns", [1, 7])
def test_every_boundary_is_rounded_as_ml_dtypes_do(isa: str, dtype: dnn.DataType, columns: int) -> None:
    """NaN and its sign as well; in rows and by a transpose."""
    values = boundaries(dtype)
    values = np.resize(values, (-(-len(values) // columns), columns))
    for tag in ("ab", "ba"):
        dst = dnn.MemoryDesc(values.shape, dtype, tag)
        found = converted(dnn.Memory.from_array(values), dst, isa).view()
        assert np.array_equal(found, nearest(values, dtype))


@pytest.mark.slow
@pytest.mark.isa("avx2")
@TYPES
def test_f32_of_every_exponent_and_mantissa_that_can_matter(dtype: dnn.DataType) -> None:
    """The upper 20 bits of an f32, with what lies after them zero, one, or all ones."""
    upper = np.arange(1 << 20, dtype=np.uint32) << np.uint32(12)
    for rest in (0, 1, 0xFFF):
        values = (upper | np.uint32(rest)).view(np.float32)
        found = converted(dnn.Memory.from_array(values), dnn.MemoryDesc(values.shape, dtype, "a"), "avx2").array
        wanted, is_nan = nearest(values, dtype), np.isnan(values)
        assert np.array_equal(found[~is_nan], wanted[~is_nan])
        assert np.isnan(found.view(FORMATS[dtype])[is_nan].astype(np.float32)).all()


@ISAS
@TYPES
@pytest.mark.parametrize("elements", [5, 64, 203])
def test_functions_of_elements(isa: str, dtype: dnn.DataType, elements: int) -> None:
    """In f32, rounded once: a linear function is exact there, so that the answer is one number."""
    numbers = numbers_of(dtype)
    numbers = numbers[np.isfinite(numbers) & (np.abs(numbers) < 16)]
    src = nearest(np.resize(numbers, (3, elements)), dtype)
    desc = dnn.MemoryDesc(src.shape, dtype, "ab")
    pd = dnn.primitive_desc(eltwise(desc), engine=engine(isa))
    assert pd.implementation == f"eltwise:{isa}"
    dst = dnn.Memory(desc)
    dnn.Primitive(pd).execute(src=dnn.Memory(desc, src), dst=dst)
    wanted = nearest(np.float32(2) * src.view(FORMATS[dtype]).astype(np.float32) + np.float32(0.5), dtype)
    assert np.array_equal(dst.view(), wanted)


@pytest.mark.isa("avx2")
@TYPES
def test_copies_keep_every_bit(dtype: dnn.DataType) -> None:
    """NaN of every kind, too; a constant is rounded as elements are."""
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    src = dnn.Memory.from_array(codes.view(FORMATS[dtype]))
    assert np.array_equal(converted(src, dnn.MemoryDesc(codes.shape, dtype, "ba"), "avx2").view(), codes)
    joined = dnn.MemoryDesc((32, 16), dtype, "ab")
    dst = dnn.Memory(joined)
    pd = dnn.primitive_desc(dnn.Concat((src.desc, src.desc), joined, 0), engine=engine("avx2"))
    dnn.Primitive(pd).execute(src0=src, src1=src, dst=dst)
    assert np.array_equal(dst.view(), np.concatenate([codes, codes]))
    padded = dnn.MemoryDesc((18, 16), dtype, "ab")
    dst = dnn.Memory(padded)
    pd = dnn.primitive_desc(dnn.Pad(src.desc, padded, (1, 0), value=1 / 3), engine=engine("avx2"))
    dnn.Primitive(pd).execute(src=src, dst=dst)
    third = np.full((1, 16), nearest(np.float32([1 / 3]), dtype))
    assert np.array_equal(dst.view(), np.concatenate([third, codes, third]))


@pytest.mark.isa("avx2")
@TYPES
def test_other_primitives_go_by_way_of_f32(dtype: dnn.DataType) -> None:
    """Pooling, where no kernel brings the type to f32 in registers of its own."""
    random = np.random.default_rng(4)
    src = nearest(random.uniform(-4, 4, (1, 8, 4, 4)).astype(np.float32), dtype)
    desc, out = (dnn.MemoryDesc((1, 8, side, side), dtype, "nhwc") for side in (4, 2))
    pd = dnn.primitive_desc(dnn.PoolingForward("max", desc, out, (2, 2), (2, 2)), engine=engine("avx2"))
    dst = dnn.Memory(out)
    dnn.Primitive(pd).execute(src=dnn.Memory.from_numpy(src, desc), dst=dst)
    windows = src.view(FORMATS[dtype]).astype(np.float32).reshape(1, 8, 2, 2, 2, 2)
    assert np.array_equal(dst.numpy(), nearest(windows.max((3, 5)), dtype))
