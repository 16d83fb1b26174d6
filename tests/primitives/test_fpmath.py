"""f32 that attributes allow to be rounded: which plans do it, and their results on factors that are rounded before.

The reference multiplies the rounded factors in float64; sums of k products in f32 are off by gamma(k) of
|src| |weights|, and VDPBF16PS rounds twice for two products, which is as often.
"""

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn.bench.values import rounded
from asmdnn.primitives.attributes.attr import ACCUMULATION_MODES, FPMATH_MODES
from asmdnn.primitives.attributes.words import attribute_words
from asmdnn.types import AccumulationMode, DataType, FpMathMode

Doubles = npt.NDArray[np.float64]
UNIT = 2.0**-24
LEVEL = "avx512_core_bf16"
NATIVE = pytest.mark.isa(LEVEL)


def engine(isa: str = LEVEL, l2_bytes: int = 1 << 20) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=1, l2_bytes=l2_bytes, machine="zen3")


def free(*dims: int, dtype: DataType = dnn.f32, tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag)


def product(m: int, k: int, n: int, weights: str = "any", dtype: DataType = dnn.f32) -> dnn.MatMul:
    return dnn.MatMul(free(m, k), free(k, n, dtype=dtype, tag=weights), free(m, n))


def random(*dims: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


def run(pd: dnn.PrimitiveDesc, **arrays: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Arguments by reorders, as callers bring them."""
    pd.plan.check()
    given = {name: dnn.reorder(dnn.Memory.from_array(x), pd.plan.tensors[name]) for name, x in arrays.items()}
    dst = dnn.Memory(pd.dst_desc)
    dnn.Primitive(pd).execute(**given, dst=dst)
    result: npt.NDArray[np.float32] = dst.numpy()
    return result


def check_product(result: npt.NDArray[np.float32], src: Doubles, weights: Doubles) -> None:
    error = (src.shape[-1] + 2) * UNIT * 2 * (np.abs(src) @ np.abs(weights))
    assert np.all(np.abs(result - src @ weights) <= error)


@NATIVE
@pytest.mark.parametrize("mode", ["bf16", "any"])
@pytest.mark.parametrize("weights", ["any", "ab", "ba"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 300, 70), (17, 129, 33), (64, 1000, 200)])
def test_products_in_bf16(mode: FpMathMode, weights: str, m: int, k: int, n: int) -> None:
    attr = dnn.Attr(fpmath_mode=mode)
    found = [
        pd
        for pd in dnn.implementations(product(m, k, n, weights), attr, engine())
        if isinstance(pd, dnn.PrimitiveDesc) and pd.implementation.startswith("bf16+")
    ]
    src, factors = random(m, k), random(k, n)
    for pd in found:
        assert pd.implementation.endswith(LEVEL)
        result = run(pd, src=src, weights=factors)
        check_product(result, rounded(src, dnn.bf16), rounded(factors, dnn.bf16))
    assert found or weights != "any"  # of plain weights, packing each time may cost more than it saves


@pytest.mark.parametrize("mode", ["f16", "bf16"])
@pytest.mark.parametrize("level", [pytest.param(n, marks=pytest.mark.isa(n)) for n in ("avx2", "avx512_core")])
def test_few_rows_read_half_the_weights(level: str, mode: FpMathMode) -> None:
    pd = dnn.primitive_desc(product(1, 300, 400), dnn.Attr(fpmath_mode=mode), engine(level, l2_bytes=1 << 18))
    assert pd.implementation.startswith(f"{mode}_weights+")
    assert pd.weights_desc is not None
    assert str(pd.weights_desc.dtype) == mode
    src, weights = random(1, 300), random(300, 400)
    check_product(run(pd, src=src, weights=weights), src.astype(np.float64), rounded(weights, getattr(dnn, mode)))


@pytest.mark.parametrize(
    ("desc", "mode", "level", "reason"),
    [
        (product(3, 300, 400), "f16", LEVEL, "more than 2 rows wait for multiplies, not for weights"),
        (product(1, 30, 40), "f16", LEVEL, "weights of 4800 bytes are in L2"),
        (product(1, 300, 400, "ab"), "f16", LEVEL, "weights are rounded where their format is any"),
        (product(9, 300, 400), "bf16", "avx512_core", "isa avx512_core multiplies bf16 as f32"),
        (product(9, 300, 400), "bf16x3", LEVEL, "three products of bf16 take longer than one of f32"),
        (product(2, 3000, 400, "ab"), "bf16", LEVEL, "cycles are expected"),
    ],
)
def test_why_f32_stays(desc: dnn.MatMul, mode: FpMathMode, level: str, reason: str) -> None:
    pd = dnn.primitive_desc(desc, dnn.Attr(fpmath_mode=mode), engine(level))
    strict = dnn.primitive_desc(desc, engine=engine(level))
    assert (pd.implementation, pd.weights_desc) == (strict.implementation, strict.weights_desc)
    assert any(reason in refusal.reason for refusal in pd.refusals), pd.refusals


@pytest.mark.parametrize("mode", FPMATH_MODES)
def test_other_types_are_multiplied_as_they_are(mode: FpMathMode) -> None:
    desc = dnn.MatMul(free(2, 64, dtype=dnn.u8), free(64, 32, dtype=dnn.s8), free(2, 32))
    pd = dnn.primitive_desc(desc, dnn.Attr(fpmath_mode=mode), engine())
    assert pd.implementation == dnn.primitive_desc(desc, engine=engine()).implementation


@NATIVE
def test_weights_of_bf16_allow_src_to_be_rounded() -> None:
    desc = product(40, 96, 64, dtype=dnn.bf16)
    strict, pd = (dnn.primitive_desc(desc, dnn.Attr(fpmath_mode=m), engine()) for m in ("strict", "bf16"))
    assert (strict.implementation, pd.implementation) == ("tiles:avx512_core", "bf16+tiles:avx512_core_bf16")
    src, weights = random(40, 96), random(96, 64)
    check_product(run(pd, src=src, weights=weights), rounded(src, dnn.bf16), rounded(weights, dnn.bf16))


def conv(src: str = "any", weights: str = "any", adjoint: bool = False) -> dnn.ConvolutionForward:
    form = dnn.DeconvolutionForward if adjoint else dnn.ConvolutionForward
    return form(
        src=free(2, 64, 12, 10, tag=src),
        weights=free(48, 64, 3, 3, tag=weights),
        dst=free(2, 48, 12, 10),
        padding_l=(1, 1),
        padding_r=(1, 1),
    )


@NATIVE
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("src", ["any", "abcd", "acdb", "aBcd16b"])
@pytest.mark.parametrize("weights", ["any", "abcd"])
def test_convolutions_in_bf16(src: str, weights: str, adjoint: bool) -> None:
    pd = dnn.primitive_desc(conv(src, weights, adjoint), dnn.Attr(fpmath_mode="bf16"), engine())
    assert pd.implementation == "bf16+direct:avx512_core_bf16"
    x, w = random(2, 64, 12, 10), random(48, 64, 3, 3)
    result = run(pd, src=x, weights=w)
    pixels, factors = np.pad(rounded(x, dnn.bf16), ((0, 0), (0, 0), (1, 1), (1, 1))), rounded(w, dnn.bf16)
    if adjoint:
        factors = factors[:, :, ::-1, ::-1]
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (3, 3), (2, 3))
    wanted, size = (np.einsum("nchwij,ocij->nohw", f(windows), f(factors), optimize=True) for f in (np.asarray, np.abs))
    assert np.all(np.abs(result - wanted) <= (64 * 9 + 2) * UNIT * 2 * size)


@NATIVE
def test_inner_products_in_bf16() -> None:
    desc = dnn.InnerProductForward(src=free(8, 24, 3, 3), weights=free(50, 24, 3, 3), dst=free(8, 50))
    pd = dnn.primitive_desc(desc, dnn.Attr(fpmath_mode="bf16"), engine())
    assert pd.implementation == "bf16+tiles:avx512_core_bf16"
    x, w = random(8, 24, 3, 3), random(50, 24, 3, 3)
    result = run(pd, src=x, weights=w)
    check_product(result, rounded(x, dnn.bf16).reshape(8, -1), rounded(w, dnn.bf16).reshape(50, -1).T)


def test_scales_of_channels_are_for_f32() -> None:
    """A conversion of f32 to f32 once multiplied elements of two bytes: wrong numbers."""
    dtype = dnn.bf16
    desc = dnn.ConvolutionForward(
        src=free(2, 64, 8, 8, dtype=dtype), weights=free(32, 64, 1, 1, dtype=dtype), dst=free(2, 32, 8, 8)
    )
    with pytest.raises(dnn.Unimplemented, match=f"scales of src's channels are for f32, and src is {dtype}"):
        dnn.primitive_desc(desc, dnn.Attr(scales={"src": 3}), engine())


@pytest.mark.parametrize("mode", ACCUMULATION_MODES)
@pytest.mark.parametrize("sums", ["f32", "s32"])
def test_sums_are_of_the_type_that_is_asked_for(mode: AccumulationMode, sums: str) -> None:
    of_integers = sums == "s32"
    src, weights = (dnn.u8, dnn.s8) if of_integers else (dnn.f32, dnn.f32)
    desc = dnn.MatMul(free(2, 8, dtype=src), free(8, 16, dtype=weights), free(2, 16))
    attr = dnn.Attr(accumulation_mode=mode)
    if of_integers and mode == "f32":
        assert dnn.primitive_desc(desc, attr, engine()).implementation.startswith("floats+")
    elif mode in ("strict", "relaxed", "any", sums):
        assert dnn.primitive_desc(desc, attr, engine()).implementation
    else:
        with pytest.raises(dnn.Unimplemented, match=f"accumulation_mode is {mode}, but sums are {sums} here: use any"):
            dnn.primitive_desc(desc, attr, engine())


def test_words() -> None:
    attr = dnn.Attr(fpmath_mode="bf16", accumulation_mode="relaxed")
    assert attribute_words(attr) == "attr-fpmath:bf16 attr-acc-mode:relaxed"
    for name in ("fpmath_mode", "accumulation_mode"):
        with pytest.raises(dnn.InvalidArguments, match=f"{name} must be one of strict, .*, not 'double'"):
            dnn.Attr(**{name: "double"})  # type: ignore[arg-type]


@NATIVE
def test_arrays() -> None:
    a, b = random(400, 256), random(256, 96)
    packed = dnn.ops.pack_weights(b, engine(), fpmath_mode="bf16")
    assert (packed.desc.dtype, packed.array.dtype.name) == (dnn.bf16, "uint16")
    wanted = rounded(a, dnn.bf16), rounded(b, dnn.bf16)
    for weights in (b, packed):
        result = dnn.ops.matmul(a, weights, fpmath_mode="bf16", engine=engine())
        assert result.dtype == np.float32
        check_product(result, *wanted)
        assert not np.array_equal(result, dnn.ops.matmul(a, b, engine=engine()))  # calls are kept apart
    x, w = random(1, 128, 14, 14), random(128, 128, 1, 1)
    image = dnn.ops.conv2d(x, w, fpmath_mode="bf16", engine=engine())
    pixels = rounded(x, dnn.bf16)[0].reshape(128, -1).T
    check_product(image[0].reshape(128, -1).T, pixels, rounded(w, dnn.bf16).reshape(128, 128).T)
