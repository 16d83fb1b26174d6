"""Products and convolutions of f8: the sums of the numbers that codes mean, rounded once where dst is of 8 bits."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn

LEVELS = [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core", "avx512_core_bf16")]
ISAS = pytest.mark.parametrize("isa", LEVELS)
FORMATS = {
    dnn.f8_e5m2: ml_dtypes.float8_e5m2, dnn.f8_e4m3: ml_dtypes.float8_e4m3fn, dnn.bf16: ml_dtypes.bfloat16,
    dnn.f32: np.float32,
}  # fmt: skip
NO_ATTR = dnn.Attr()
E5M2, E4M3 = dnn.f8_e5m2, dnn.f8_e4m3


def t(*dims: int, dtype: dnn.DataType = dnn.f32, tag: str = "") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag or "abcdef"[: len(dims)])


def drawn(name: str, desc: dnn.MemoryDesc) -> Any:
    """Numbers whose sums are exact in f32: multiples of 1/4 that all types have."""
    random = np.random.default_rng(len(name))
    return np.float32(random.integers(-6, 7, desc.dims)) / 4


def call(desc: Any, isa: str, attr: dnn.Attr = NO_ATTR) -> tuple[dnn.PrimitiveDesc, Any, dict[str, Any]]:
    """Its dst in f32, and the arguments."""
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1, machine="zen4"))  # type: ignore[arg-type]
    pd.plan.check()
    given = {name: drawn(name, tensor) for name, tensor in pd.plan.tensors.items()}
    memories = {}
    for name, tensor in pd.plan.tensors.items():
        stored = np.dtype(tensor.dtype.numpy)
        memories[name] = dnn.Memory.from_numpy(given[name].astype(FORMATS[tensor.dtype]).view(stored), tensor)
    execute: Any = dnn.Primitive(pd).execute
    execute(**memories)
    return pd, memories["dst"].numpy().view(FORMATS[pd.dst_desc.dtype]).astype(np.float32), given


def rounded(x: Any, dtype: dnn.DataType) -> Any:
    return x.astype(FORMATS[dtype]).astype(np.float32)


@ISAS
@pytest.mark.parametrize(
    "types", [(E5M2, E5M2), (E4M3, E4M3), (E4M3, E5M2), (dnn.bf16, E4M3), (dnn.f32, E4M3)], ids=str
)
@pytest.mark.parametrize("dst", [dnn.f32, dnn.bf16, E5M2, E4M3], ids=str)
@pytest.mark.parametrize("weights", ["any", "ba"])
def test_matrices(isa: str, types: Any, dst: dnn.DataType, weights: str) -> None:
    src, factor = types
    desc = dnn.MatMul(
        t(5, 70, dtype=src), t(70, 33, dtype=factor, tag=weights), t(5, 33, dtype=dst), t(1, 33, dtype=dst)
    )
    pd, found, given = call(desc, isa, dnn.Attr([dnn.Eltwise("relu")]))
    assert pd.implementation.startswith("f8+")
    assert pd.plan.tensors["weights"].dtype == (dnn.bf16 if weights == "any" else factor)
    exact = np.maximum(given["src"] @ given["weights"] + given["bias"], 0)
    np.testing.assert_array_equal(found, rounded(exact, dst))


@ISAS
def test_a_sum_reads_dst_of_8_bits(isa: str) -> None:
    desc = dnn.MatMul(t(5, 8, dtype=E4M3), t(8, 33, dtype=E4M3), t(5, 33, dtype=E4M3))
    _, found, given = call(desc, isa, dnn.Attr([dnn.Sum(0.5)]))
    np.testing.assert_array_equal(found, rounded(given["src"] @ given["weights"] + given["dst"] / 2, E4M3))


@ISAS
@pytest.mark.parametrize("tags", [("acdb", "any"), ("abcd", "abcd"), ("any", "any")])
@pytest.mark.parametrize("groups", [1, 16])
def test_images(isa: str, tags: tuple[str, str], groups: int) -> None:
    filters = (16, 16, 3, 3) if groups == 1 else (16, 1, 1, 3, 3)
    desc = dnn.ConvolutionForward(
        t(2, 16, 6, 5, dtype=E5M2, tag=tags[0]),
        dnn.MemoryDesc(filters, E4M3, "any" if tags[1] == "any" else "abcde"[: len(filters)]),
        t(2, 16, 6, 5, dtype=E5M2, tag=tags[0]),
        padding_l=(1, 1), padding_r=(1, 1),
    )  # fmt: skip
    pd, found, given = call(desc, isa)
    assert pd.implementation.startswith("f8+")
    x = np.pad(given["src"], ((0, 0), (0, 0), (1, 1), (1, 1)))
    w = given["weights"] if groups == 1 else np.zeros((16, 16, 3, 3), np.float32)
    if groups > 1:
        w[range(16), range(16)] = given["weights"][:, 0, 0]
    exact = sum(
        np.einsum("nchw,oc->nohw", x[:, :, i : i + 6, j : j + 5], w[:, :, i, j]) for i in range(3) for j in range(3)
    )
    np.testing.assert_array_equal(found, rounded(exact, E5M2))


@ISAS
def test_inner_products_and_transposed_convolutions(isa: str) -> None:
    desc = dnn.InnerProductForward(t(5, 8, dtype=E4M3), t(9, 8, dtype=E4M3, tag="any"), t(5, 9))
    pd, found, given = call(desc, isa)
    assert pd.implementation.startswith("f8+")
    np.testing.assert_array_equal(found, given["src"] @ given["weights"].T)
    images = (t(2, channels, 4, 4, dtype=E4M3, tag="acdb") for channels in (8, 19))
    src, dst = images
    pd, found, given = call(dnn.DeconvolutionForward(src, t(19, 8, 1, 1, dtype=E4M3, tag="any"), dst), isa)
    assert pd.implementation.startswith("f8+")
    wanted = np.einsum("nchw,oc->nohw", given["src"], given["weights"][:, :, 0, 0])
    np.testing.assert_array_equal(found, rounded(wanted, E4M3))


@pytest.mark.isa("avx2")
def test_arrays_and_bad_input() -> None:
    a, b = (np.float32([[1, 0.5], [2, -3]]).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    exact = a.astype(np.float32) @ b.astype(np.float32)
    found = dnn.ops.matmul(a, b)
    assert found.dtype == ml_dtypes.float8_e4m3fn and np.array_equal(found.astype(np.float32), exact)
    assert np.array_equal(dnn.ops.matmul(a, dnn.ops.pack_weights(b), dtype=dnn.f32), exact)
    x, w = a.reshape(1, 2, 2, 1), b.reshape(2, 2, 1, 1)
    wanted = np.einsum("nchw,oc->nohw", x.astype(np.float32), b.astype(np.float32))
    assert np.array_equal(dnn.ops.conv2d(x, w, dtype=dnn.f32), wanted)
    with pytest.raises(dnn.Unimplemented, match="zero points are for integers, and a is f8_e4m3"):
        dnn.ops.matmul(a, b, zero_points={"a": 1})
    with pytest.raises(dnn.Unimplemented, match="does not multiply s8 by bf16"):
        dnn.ops.matmul(np.ones((2, 2), np.int8), b)
