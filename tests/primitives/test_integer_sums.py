"""Integers that are added to sums of integers: exact, modulo 2^32, where dst is s32 and nothing else happens."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.support.plans import execute, proved_desc

Array = Any
WIDE = 2**31
LEVELS = ["avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni", "avx512_core_amx"]
EVERY_LEVEL = [
    pytest.param("avx2", False, id="avx2", marks=pytest.mark.isa("avx2")),
    *(pytest.param(level, True, id=level, marks=pytest.mark.emulated(level)) for level in LEVELS[1:]),
]
BYTES = {dnn.u8: (0, 255), dnn.s8: (-128, 127), dnn.s32: (-WIDE, WIDE - 1)}


def t(*dims: int, dtype: dnn.DataType, tag: str = "") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag or "abcdef"[: len(dims)])


def drawn(name: str, desc: dnn.MemoryDesc) -> Array:
    least, most = (-100, 100) if name == "src_zero_points" else BYTES[desc.dtype]
    return np.random.default_rng(len(name)).integers(least, most, desc.dims, endpoint=True)


def result(pd: dnn.PrimitiveDesc, emulated: bool) -> tuple[Array, dict[str, Array]]:
    """dst, and what was given, in int64."""
    given = {name: drawn(name, desc) for name, desc in pd.plan.tensors.items()}
    memories = {
        name: dnn.Memory.from_numpy(x.astype(pd.plan.tensors[name].dtype.numpy), pd.plan.tensors[name])
        for name, x in given.items()
    }
    execute(pd, memories, emulated)
    return memories["dst"].numpy(), given


def wrapped(sums: Array, given: dict[str, Array], attr: dnn.Attr) -> Array:
    """With everything added, modulo 2^32."""
    total = sums + given.get("bias", 0)
    total = total + given["dst"] * len(attr.post_ops)
    if "dst_zero_points" in given:
        total = total + given["dst_zero_points"].reshape(-1, *[1] * (sums.ndim - 2))
    return (total + WIDE) % 2**32 - WIDE


def attr_of(has_sum: bool, points: int | None, src_points: bool) -> dnn.Attr:
    zero_points = {**({} if points is None else {"dst": points}), **({"src": 0} if src_points else {})}
    return dnn.Attr([dnn.Sum()] * has_sum, zero_points=zero_points)  # type: ignore[arg-type]


CHAINS = [(dnn.s32, False, None), (None, True, None), (dnn.s8, True, 0), (dnn.u8, False, 2), (dnn.s32, True, 2)]
SIZES = [(1, 19, 7), (3, 40, 37), (40, 96, 48), (70, 33, 1), (2, 2000, 3)]


@pytest.mark.parametrize(("isa", "emulated"), EVERY_LEVEL)
@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_products(isa: str, emulated: bool, chain: tuple[dnn.DataType | None, bool, int | None]) -> None:
    """A bias as large as its type, what dst held, and zero points of dst; with and without one of src."""
    bias, has_sum, points = chain
    for number, (m, k, n) in enumerate(SIZES):
        attr = attr_of(has_sum, points, number % 2 == 0)
        src = (dnn.u8, dnn.s8)[number % 2]
        desc = dnn.MatMul(
            t(m, k, dtype=src), t(k, n, dtype=dnn.s8, tag=("any", "ab")[number % 2]), t(m, n, dtype=dnn.s32),
            bias and t(1, n, dtype=bias),
        )  # fmt: skip
        pd = proved_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
        found, given = result(pd, emulated)
        x = given["src"] - given.get("src_zero_points", np.int64(0))
        np.testing.assert_array_equal(found, wrapped(x @ given["weights"], given, attr))


CONVOLUTIONS = [  # groups, inputs, outputs, kernel, strides
    (1, 8, 19, 3, 1), (1, 20, 32, 1, 1), (1, 3, 16, 3, 2), (16, 16, 16, 3, 1), (24, 24, 24, 3, 2), (4, 16, 16, 3, 1),
    (1, 87, 4, 3, 1), (1, 64, 2, 1, 1), (1, 40, 1, 3, 2),  # few outputs
]  # fmt: skip


@pytest.mark.parametrize(("isa", "emulated"), EVERY_LEVEL)
@pytest.mark.parametrize("shape", CONVOLUTIONS, ids=str)
def test_convolutions(isa: str, emulated: bool, shape: tuple[int, int, int, int, int]) -> None:
    groups, ic, oc, kernel, stride = shape
    size, pad = 7, kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    weights = t(*[groups] * (groups > 1), oc // groups, ic // groups, kernel, kernel, dtype=dnn.s8)
    for number, (bias, has_sum, points) in enumerate(CHAINS):
        attr = attr_of(has_sum, points, number % 2 == 0)
        desc = dnn.ConvolutionForward(
            t(1, ic, size, size, dtype=(dnn.u8, dnn.s8)[number % 2], tag="acdb"), weights,
            t(1, oc, out, out, dtype=dnn.s32, tag="acdb"), bias and t(oc, dtype=bias),
            strides=(stride, stride), padding_l=(pad, pad), padding_r=(pad, pad),
        )  # fmt: skip
        pd = proved_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
        found, given = result(pd, emulated)
        x = given["src"] - given.get("src_zero_points", np.int64(0))
        x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))).reshape(groups, ic // groups, size + 2 * pad, -1)
        w = given["weights"].reshape(groups, oc // groups, ic // groups, kernel, kernel)
        sums = np.zeros((groups, oc // groups, out, out), np.int64)
        for i, j in np.ndindex(kernel, kernel):
            end = stride * (out - 1) + 1
            sums += np.einsum("gchw,goc->gohw", x[:, :, i : i + end : stride, j : j + end : stride], w[..., i, j])
        if "bias" in given:
            given["bias"] = given["bias"].reshape(-1, 1, 1)
        np.testing.assert_array_equal(found, wrapped(sums.reshape(1, oc, out, out), given, attr))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("images", [(), (3, 3)])
def test_inner_products(images: tuple[int, ...]) -> None:
    for bias, has_sum, points in CHAINS:
        attr = attr_of(has_sum, points, True)
        desc = dnn.InnerProductForward(
            t(5, 12, *images, dtype=dnn.u8), t(23, 12, *images, dtype=dnn.s8, tag="any"), t(5, 23, dtype=dnn.s32),
            bias and t(23, dtype=bias),
        )  # fmt: skip
        pd = proved_desc(desc, attr, dnn.Engine(isa="avx2", threads=1))
        found, given = result(pd, emulated=False)
        x, w = given["src"] - given.get("src_zero_points", np.int64(0)), given["weights"]
        np.testing.assert_array_equal(found, wrapped(x.reshape(5, -1) @ w.reshape(23, -1).T, given, attr))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("scales", [{}, {"weights": 2}])
@pytest.mark.parametrize("op", [dnn.Eltwise("relu"), dnn.Sum(0.5), dnn.Sum(1.0, 3.0)], ids=str)
def test_floats_in_the_chain_saturate(op: Any, scales: dict[str, int]) -> None:
    """What is no integer makes f32 of the sums, which are clamped as they are stored."""
    desc = dnn.MatMul(t(2, 16, dtype=dnn.u8), t(16, 24, dtype=dnn.s8), t(2, 24, dtype=dnn.s32), t(1, 24, dtype=dnn.s32))
    attr = dnn.Attr([op], scales=scales)  # type: ignore[arg-type]
    pd = proved_desc(desc, attr, dnn.Engine(isa="avx2", threads=1))
    names = [name for name in pd.plan.tensors if name.endswith("scales")]
    memories = {name: dnn.Memory.from_array(np.ones(24, np.float32)) for name in names}
    memories |= {
        "src": dnn.Memory.from_array(np.full((2, 16), 255, np.uint8)),
        "weights": dnn.Memory.from_array(np.full((16, 24), 127, np.int8)),
        "bias": dnn.Memory.from_array(np.full((1, 24), WIDE - 1, np.int32)),
        "dst": dnn.Memory.from_array(np.zeros((2, 24), np.int32)),
    }
    execute(pd, memories)
    assert (memories["dst"].numpy() == WIDE - 128).all()


def exact_image(points: dict[str, int], dtype: dnn.DataType, mode: Any) -> tuple[str, Array, Array]:
    """A convolution of 648 products to f32: its name, what it gives, and the sums."""
    desc = dnn.ConvolutionForward(
        t(1, 72, 5, 5, dtype=dnn.u8, tag="acdb"), t(19, 72, 3, 3, dtype=dtype), t(1, 19, 3, 3, dtype=dnn.f32)
    )
    attr = dnn.Attr(zero_points=points, accumulation_mode=mode)  # type: ignore[arg-type]
    pd = proved_desc(desc, attr, dnn.Engine(isa="avx2", threads=1))
    given = {"src": np.full((1, 72, 5, 5), 255), "weights": np.full((19, 72, 3, 3), 255 if dtype == dnn.u8 else 127)}
    given["src"][0, 0, ::2], given["weights"][:, 1, 1] = 254, 126
    given |= {f"{name}_zero_points": np.full(pd.plan.tensors[f"{name}_zero_points"].dims, -1) for name in points}
    memories = {
        name: dnn.Memory.from_numpy(x.astype(pd.plan.tensors[name].dtype.numpy), pd.plan.tensors[name])
        for name, x in given.items()
    }
    memories["dst"] = dnn.Memory(pd.plan.tensors["dst"])
    execute(pd, memories)
    x, w = (given[name] + (name in points) for name in ("src", "weights"))
    sums = sum(np.einsum("nchw,oc->nohw", x[:, :, i : i + 3, j : j + 3], w[:, :, i, j]) for i, j in np.ndindex(3, 3))
    return pd.implementation, memories["dst"].numpy(), sums


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("points", "dtype"), [({"src": 2}, dnn.s8), ({"weights": 0}, dnn.s8), ({}, dnn.u8)])
def test_sums_of_many_products_are_exact_for_every_dst(points: dict[str, int], dtype: dnn.DataType) -> None:
    """Beyond 2^24, where f32 would round in between; unless sums of f32 are asked for."""
    for mode, way in (("strict", "integers+"), ("s32", "integers+"), ("f32", "floats+")):
        name, found, sums = exact_image(points, dtype, mode)
        assert name.startswith(way)
        assert sums.max() > 2**24
        np.testing.assert_allclose(found, sums, rtol=2**-24 if way == "integers+" else 648 * 2**-24, atol=0)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dst", [dnn.s32, dnn.f32], ids=str)
def test_zero_points_of_any_size(dst: dnn.DataType) -> None:
    """They are subtracted as integers, modulo 2^32; and sums of s32 may be asked for."""
    attr = dnn.Attr(zero_points={"src": 2, "weights": 2}, accumulation_mode="s32")
    desc = dnn.MatMul(t(3, 8, dtype=dnn.u8), t(8, 21, dtype=dnn.s8), t(3, 21, dtype=dst))
    pd = proved_desc(desc, attr, dnn.Engine(isa="avx2", threads=1))
    assert pd.implementation.startswith("integers+")
    random = np.random.default_rng(3)
    tensors = {name: desc for name, desc in pd.plan.tensors.items() if name != "dst"}
    given = {name: random.integers(*BYTES[desc.dtype], desc.dims, endpoint=True) for name, desc in tensors.items()}
    memories = {
        name: dnn.Memory.from_numpy(x.astype(tensors[name].dtype.numpy), tensors[name]) for name, x in given.items()
    }
    memories["dst"] = dnn.Memory(pd.plan.tensors["dst"])
    execute(pd, memories)
    x, w = (given[name].astype(object) - given[f"{name}_zero_points"] for name in ("src", "weights"))
    sums = ((x @ w + WIDE) % 2**32 - WIDE).astype(np.int64)
    np.testing.assert_array_equal(memories["dst"].numpy(), sums.astype(np.float32) if dst == dnn.f32 else sums)
