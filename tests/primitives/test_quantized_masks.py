"""Scales and zero points of every mask that oneDNN takes, of matrices and images of bytes: exact, or of floats."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import rounded
from asmdnn.generators.dot.dots import columns_at_once
from asmdnn.isa.dot import multiplied

LEVELS = [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")]
ISAS = pytest.mark.parametrize("isa", LEVELS)
M, K, N = 5, 96, 37
BYTES = {dnn.u8: (0, 255), dnn.s8: (-128, 127)}
Numbers = Any


def t(*dims: int, dtype: dnn.DataType = dnn.f32, tag: str = "") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag or "abcdef"[: len(dims)])


def drawn(name: str, desc: dnn.MemoryDesc) -> Numbers:
    """Bytes of all sizes, scales that are powers of two, zero points within a byte."""
    random = np.random.default_rng(len(name) + desc.nelems())
    if name.endswith("scales"):
        return 2.0 ** random.integers(-3, 2, desc.dims)
    if name.endswith("zero_points"):
        return random.integers(-100, 100, desc.dims)
    least, most = BYTES.get(desc.dtype, (-8, 8))
    return random.integers(least, most, desc.dims, endpoint=True)


def call(pd: dnn.PrimitiveDesc) -> tuple[Numbers, dict[str, Numbers]]:
    """The result in f64, and the arguments."""
    pd.plan.check()
    given = {name: drawn(name, desc) for name, desc in pd.plan.tensors.items() if name != "dst"}
    memories = {
        name: dnn.Memory.from_numpy(numbers.astype(pd.plan.tensors[name].dtype.numpy), pd.plan.tensors[name])
        for name, numbers in given.items()
    }
    dst = dnn.Memory(pd.dst_desc)
    execute: Any = dnn.Primitive(pd).execute
    execute(**memories, dst=dst)
    return dst.numpy().astype(np.float64), given


def spread(values: Numbers, mask: int, dims: tuple[int, ...], groups: tuple[int, int] = (1, 1)) -> Numbers:
    """Numbers of a mask, repeated to a tensor's dims; groups: along the last two."""
    sizes = [1] * (len(dims) - 2) + list(groups)
    counts = [n // size if mask >> d & 1 else 1 for d, (n, size) in enumerate(zip(dims, sizes, strict=True))]
    found = np.float64(values).reshape(counts)
    for d, n in enumerate(dims):
        found = found.repeat(n // counts[d], d)
    return found


def meant(name: str, given: Mapping[str, Numbers], attr: dnn.Attr) -> Numbers:
    """What a quantised tensor stands for."""
    x, groups = np.float64(given[name]), dict(attr.groups).get(name, (1, 1))
    for kind, masks in (("zero_points", attr.zero_points), ("scales", attr.scales)):
        if name in dict(masks):
            factor = spread(given[f"{name}_{kind}"], dict(masks)[name], x.shape, groups)
            x = x - factor if kind == "zero_points" else x * factor
    return x


def finished(sums: Numbers, given: Mapping[str, Numbers], attr: dnn.Attr, dtype: dnn.DataType) -> Numbers:
    """Divided by the scales of dst, after which its zero points come, and rounded to its type."""
    for kind, masks in (("scales", attr.scales), ("zero_points", attr.zero_points)):
        if "dst" in dict(masks):
            values = spread(given[f"dst_{kind}"], dict(masks)["dst"], sums.shape)
            sums = sums / values if kind == "scales" else sums + values
    return rounded(sums, dtype)


ZEROS = [  # masks of zero points, groups, and what multiplies
    ({"weights": 0}, {}, "integers"),
    ({"weights": 2, "src": 0}, {}, "integers"),
    ({"weights": 3, "src": 2, "dst": 2}, {"weights": (32, 1)}, "integers"),
    ({"src": 2}, {}, "integers"),
    ({"src": 3}, {"src": (1, 48)}, "integers"),
    ({"dst": 2}, {}, ""),
    ({"dst": 3, "src": 0}, {}, ""),
    ({"weights": 3}, {"weights": (24, 37)}, "integers"),
]


@ISAS
@pytest.mark.parametrize("src", BYTES, ids=str)
@pytest.mark.parametrize("number", range(len(ZEROS)))
@pytest.mark.parametrize("weights", ["ab", "ba", "any"])
def test_sums_of_integers_are_exact(isa: str, src: dnn.DataType, number: int, weights: str) -> None:
    points, groups, name = ZEROS[number]
    attr = dnn.Attr(zero_points=points, groups=groups)  # type: ignore[arg-type]
    desc = dnn.MatMul(t(M, K, dtype=src), t(K, N, dtype=dnn.s8, tag=weights), t(M, N, dtype=dnn.s32), t(1, N))
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    at_once = weights == "ba" and not name and columns_at_once(multiplied(src, dnn.s8, isa), isa) >= M
    way = "dots" if at_once else "tiles"
    assert pd.implementation.startswith(name) and way in pd.implementation
    found, given = call(pd)
    sums = meant("src", given, attr) @ meant("weights", given, attr) + given["bias"]
    np.testing.assert_array_equal(found, finished(sums, given, attr, dnn.s32))


@ISAS
def test_u8_weights_are_multiplied(isa: str) -> None:
    """By no instruction: they become integers, with and without scales of rows and columns."""
    engine = dnn.Engine(isa=isa, threads=1)  # type: ignore[arg-type]
    desc = dnn.MatMul(t(2, M, K, dtype=dnn.u8), t(1, K, N, dtype=dnn.u8), t(2, M, N, dtype=dnn.s32))
    pd = dnn.primitive_desc(desc, engine=engine)
    found, given = call(pd)
    assert pd.implementation.startswith("integers+")
    np.testing.assert_array_equal(found, np.float64(given["src"]) @ given["weights"])
    scaled = dnn.Attr(scales={"src": 2, "weights": 4})
    desc = dnn.MatMul(desc.src, desc.weights, t(2, M, N))
    found, given = call(dnn.primitive_desc(desc, scaled, engine))
    np.testing.assert_array_equal(found, meant("src", given, scaled) @ meant("weights", given, scaled))


@ISAS
@pytest.mark.parametrize("dst", [dnn.f32, dnn.u8, dnn.s8], ids=str)
@pytest.mark.parametrize("scales", [{}, {"src": 0, "weights": 0}, {"weights": 4}], ids=str)
def test_batches_of_weights_with_zero_points(isa: str, scales: dict[str, int], dst: dnn.DataType) -> None:
    """Floats are made of matrices alone."""
    attr = dnn.Attr(scales=scales, zero_points={"weights": 0})
    desc = dnn.MatMul(t(2, M, K, dtype=dnn.u8), t(1, K, N, dtype=dnn.s8), t(2, M, N, dtype=dst))
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    found, given = call(pd)
    np.testing.assert_array_equal(found, rounded(meant("src", given, attr) @ meant("weights", given, attr), dst))


SCALES = [  # of scales and of zero points, groups
    ({"src": 2}, {}, {}),
    ({"src": 3, "weights": 2}, {"src": 0}, {"src": (1, 48)}),
    ({"weights": 3}, {"weights": 2}, {"weights": (32, 1)}),
    ({"weights": 3, "src": 3}, {"src": 2, "weights": 3}, {"weights": (32, 1), "src": (1, 32)}),
    ({"weights": 1, "dst": 2}, {"dst": 2}, {}),
    ({"weights": 3, "src": 0, "dst": 0}, {"weights": 0, "src": 2}, {"weights": (96, 1)}),
]


@ISAS
@pytest.mark.parametrize("dst", [dnn.f32, dnn.s32, dnn.u8, dnn.bf16], ids=str)
@pytest.mark.parametrize("number", range(len(SCALES)))
def test_scales_along_k_come_before_sums(isa: str, dst: dnn.DataType, number: int) -> None:
    """Scales are powers of two and sums fit f32, so that they are exact."""
    scales, points, groups = SCALES[number]
    attr = dnn.Attr(scales=scales, zero_points=points if dst != dnn.f32 else without_dst(points), groups=groups)  # type: ignore[arg-type]
    if dst == dnn.bf16:
        attr = attr.changed(zero_points=without_dst(points))
    desc = dnn.MatMul(t(M, K, dtype=dnn.u8), t(K, N, dtype=dnn.s8), t(M, N, dtype=dst))
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    found, given = call(pd)
    sums = meant("src", given, attr) @ meant("weights", given, attr)
    if dst == dnn.bf16:
        found = dnn.Memory.from_array(found.astype(np.uint16), dnn.bf16).numpy()
        found = (found.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(found, finished(sums, given, attr, dst), rtol=2**-20, atol=1)


@ISAS
@pytest.mark.parametrize("src", [dnn.f32, dnn.bf16], ids=str)
def test_floats_times_integers_of_any_masks(isa: str, src: dnn.DataType) -> None:
    """In batches, and with a scale and a zero point for each element."""
    attr = dnn.Attr(scales={"weights": 6}, zero_points={"weights": 4})
    desc = dnn.MatMul(t(2, M, K, dtype=src), t(1, K, N, dtype=dnn.u8, tag="acb"), t(2, M, N))
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    assert pd.implementation.startswith("floats+")
    pd.plan.check()
    given = {name: drawn(name, desc) for name, desc in pd.plan.tensors.items() if name != "dst"}
    memories = {}
    for name, numbers in given.items():
        kind, stored = pd.plan.tensors[name], numbers.astype(np.float32)
        bits = stored.view(np.uint32) >> 16 if kind.dtype == dnn.bf16 else numbers
        memories[name] = dnn.Memory.from_numpy(bits.astype(kind.dtype.numpy), kind)
    dst, execute = dnn.Memory(pd.dst_desc), dnn.Primitive(pd).execute
    execute(**memories, dst=dst)
    np.testing.assert_array_equal(dst.numpy(), given["src"] @ meant("weights", given, attr))


def without_dst(masks: dict[str, int]) -> dict[str, int]:
    return {name: mask for name, mask in masks.items() if name != "dst"}


IMAGES = [  # zero points, scales, weights, what computes
    ({"src": 2}, {}, dnn.s8, "floats+"),
    ({"weights": 0}, {"weights": 1}, dnn.s8, "floats+"),
    ({}, {"src": 0}, dnn.u8, "floats+"),
    ({"src": 2, "weights": 0, "dst": 2}, {"src": 2, "dst": 0}, dnn.u8, "floats+"),
    ({"dst": 2, "src": 0}, {"weights": 1}, dnn.s8, ""),
]


@ISAS
@pytest.mark.parametrize("number", range(len(IMAGES)))
@pytest.mark.parametrize("tags", [("acdb", "any"), ("abcd", "abcd"), ("any", "any"), ("aBcd8b", "abcd")])
def test_images(isa: str, number: int, tags: tuple[str, str]) -> None:
    points, scales, dtype, name = IMAGES[number]
    dst = dnn.u8 if "dst" in {*points, *scales} else dnn.f32
    src, weights = t(2, 8, 6, 5, dtype=dnn.u8, tag=tags[0]), t(19, 8, 3, 3, dtype=dtype, tag=tags[1])
    desc = dnn.ConvolutionForward(
        src, weights, t(2, 19, 6, 5, dtype=dst, tag=tags[0]), padding_l=(1, 1), padding_r=(1, 1)
    )
    attr = dnn.Attr(zero_points=points, scales=scales)
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    assert pd.implementation.startswith(name)
    found, given = call(pd)
    x = np.pad(meant("src", given, attr), ((0, 0), (0, 0), (1, 1), (1, 1)))
    w = meant("weights", given, attr)
    sums = sum(
        np.einsum("nchw,oc->nohw", x[:, :, i : i + 6, j : j + 5], w[:, :, i, j]) for i in range(3) for j in range(3)
    )
    np.testing.assert_allclose(found, finished(sums, given, attr, dst), rtol=2**-20, atol=1 if dst == dnn.u8 else 0)


INTEGERS = [  # zero points, weights
    ({"src": 2}, dnn.s8),
    ({"weights": 0}, dnn.s8),
    ({}, dnn.u8),
    ({"src": 2, "weights": 0}, dnn.u8),
    ({"src": 0, "weights": 0, "dst": 2}, dnn.s8),
]


@ISAS
@pytest.mark.parametrize("number", range(len(INTEGERS)))
@pytest.mark.parametrize("tags", [("acdb", "any"), ("abcd", "abcd"), ("any", "any"), ("aBcd8b", "acdb")])
@pytest.mark.parametrize("transposed", [False, True])
def test_sums_of_images_are_exact(isa: str, number: int, tags: tuple[str, str], transposed: bool) -> None:
    """They pass 2^24, beyond which f32 has no odd numbers; padding counts as the zero point of src."""
    points, dtype = INTEGERS[number]
    src, weights = t(2, 72, 6, 5, dtype=dnn.u8, tag=tags[0]), t(19, 72, 3, 3, dtype=dtype, tag=tags[1])
    kind = dnn.DeconvolutionForward if transposed else dnn.ConvolutionForward
    dst = t(2, 19, 6, 5, dtype=dnn.s32, tag=tags[0])
    desc = kind(src, weights, dst, t(19, dtype=dnn.s32), padding_l=(1, 1), padding_r=(1, 1))
    attr = dnn.Attr(zero_points=points)  # type: ignore[arg-type]
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    assert pd.implementation.startswith("integers+")
    found, given = call(pd)
    x = np.pad(meant("src", given, attr), ((0, 0), (0, 0), (1, 1), (1, 1)))
    w = meant("weights", given, attr)
    w = w[:, :, ::-1, ::-1] if transposed else w
    sums = sum(
        np.einsum("nchw,oc->nohw", x[:, :, i : i + 6, j : j + 5], w[:, :, i, j]) for i in range(3) for j in range(3)
    )
    sums = sums + given["bias"].reshape(-1, 1, 1)
    np.testing.assert_array_equal(found, finished(sums, given, attr, dnn.s32))


@ISAS
def test_sums_of_groups_of_images_wrap(isa: str) -> None:
    """Modulo 2^32, with zero points of 24 bits; groups of channels, strides, and nothing to compute."""
    for images in (0, 1):
        src, weights = t(images, 6, 7, 7, dtype=dnn.s8), t(2, 5, 3, 3, 3, dtype=dnn.u8)
        desc = dnn.ConvolutionForward(src, weights, t(images, 10, 3, 3, dtype=dnn.s32), strides=(2, 2))
        attr, engine = dnn.Attr(zero_points={"src": 0, "weights": 0}), dnn.Engine(isa=isa, threads=1)  # type: ignore[arg-type]
        pd = dnn.primitive_desc(desc, attr, engine)
        given = {name: drawn(name, d).astype(d.dtype.numpy) for name, d in pd.plan.tensors.items() if name != "dst"}
        given |= {"src_zero_points": np.int32([-(2**23)]), "weights_zero_points": np.int32([2**23 + 1])}
        memories = {name: dnn.Memory.from_numpy(x, pd.plan.tensors[name]) for name, x in given.items()}
        dst = dnn.Memory(pd.dst_desc)
        dnn.Primitive(pd).execute(**memories, dst=dst)
        x, w = (given[name].astype(object) - int(given[f"{name}_zero_points"][0]) for name in ("src", "weights"))
        for g, o, i, j in np.ndindex(*(2, 5, 3, 3) if images else (0, 0, 0, 0)):
            total = int((x[0, 3 * g : 3 * g + 3, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] * w[g, o]).sum())
            assert dst.numpy()[0, 5 * g + o, i, j] == (total + 2**31) % 2**32 - 2**31


def test_what_does_not_fit() -> None:
    src, weights, dst = t(M, K, dtype=dnn.u8), t(K, N, dtype=dnn.s8), t(M, N)
    desc = dnn.MatMul(src, weights, dst)

    def refused(message: str, asked: Any = desc, error: type[Exception] = dnn.Unimplemented, **words: Any) -> None:
        with pytest.raises(error, match=message):
            dnn.primitive_desc(asked, dnn.Attr(**words))

    floats = dnn.MatMul(t(M, K), t(K, N), dst)
    refused("zero points are for integers, and dst is f32", floats, zero_points={"dst": 2})
    refused(
        "groups of src are .1, 36., which do not divide its dim 1, 96", error=dnn.InvalidArguments,
        scales={"src": 3}, groups={"src": (1, 36)},
    )  # fmt: skip
    refused("scales of weights have the mask 4, which is for more than 2 dims", scales={"weights": 4})
    image = dnn.ConvolutionForward(
        t(1, 8, 4, 4, dtype=dnn.u8), t(16, 8, 1, 1, dtype=dnn.u8), t(1, 16, 4, 4, dtype=dnn.s32)
    )
    refused("dst is s32, and with scales of src's channels sums are f32: take f32, s8 or u8", image, scales={"src": 2})
    refused("zero points are .*: of src they have the mask 0 or 2", image, zero_points={"src": 1})


@pytest.mark.isa("avx2")
def test_arrays_without_elements() -> None:
    """A common zero point is one number also where nothing is multiplied."""
    x, w = np.zeros((0, 3), np.uint8), np.zeros((3, 4), np.uint8)
    for points in ({"a": 3, "b": [1, 2, 3, 4]}, {"a": [1, 2, 3], "b": 1}):
        assert dnn.ops.matmul(x, w, zero_points=points).shape == (0, 4)
    images, kernels = np.zeros((0, 3, 4, 4), np.uint8), np.zeros((5, 3, 1, 1), np.uint8)
    assert dnn.ops.conv2d(images, kernels, zero_points={"x": 3, "weights": 1}).shape == (0, 5, 4, 4)


@pytest.mark.isa("avx2")
def test_arrays() -> None:
    """Vectors beside `a`, `x` and `out`: one for each of their columns or channels."""
    a, b = (drawn(name, t(4, 32, dtype=dnn.u8)).astype(np.uint8) for name in ("src", "weights"))
    points = np.arange(32, dtype=np.int32)
    found = dnn.ops.matmul(a, np.ascontiguousarray(b.T), zero_points={"a": points, "b": 3})
    np.testing.assert_array_equal(found, (np.int64(a) - points) @ (np.int64(b.T) - 3))
    made = dnn.ops.matmul(
        a, b.T.astype(np.int8), dtype=dnn.s8, scales={"out": [1e4] * 4}, zero_points={"out": range(4)}
    )
    exact = np.int64(a) @ np.int64(b.T.astype(np.int8)) / 1e4 + np.arange(4)
    assert np.abs(made - np.clip(exact, -128, 127)).max() <= 0.5 + 1e-4
    x, w = a.reshape(1, 8, 4, 4), b[:2, :8].reshape(2, 8, 1, 1).astype(np.int8)
    images = dnn.ops.conv2d(x, w, dtype=dnn.f32, zero_points={"x": points[:8]})
    wanted = np.einsum("nchw,oc->nohw", np.int64(x) - points[:8].reshape(1, 8, 1, 1), np.int64(w[:, :, 0, 0]))
    np.testing.assert_array_equal(images, wanted)
    for name, size, most in (("a", 7, 32), ("out", 3, 4)):
        with pytest.raises(dnn.InvalidArguments, match=f"zero_points.*{size} elements, it must have 1, or {most}"):
            dnn.ops.matmul(a, b.T.astype(np.int8), zero_points={name: [1] * size})


@ISAS
def test_transposed_convolutions(isa: str) -> None:
    attr = dnn.Attr(zero_points={"src": 2, "weights": 0})
    src, dst = t(2, 8, 4, 4, dtype=dnn.u8, tag="acdb"), t(2, 19, 4, 4, tag="acdb")
    desc = dnn.DeconvolutionForward(src, t(19, 8, 1, 1, dtype=dnn.u8, tag="abcd"), dst)
    pd = dnn.primitive_desc(desc, attr, dnn.Engine(isa=isa, threads=1))  # type: ignore[arg-type]
    assert pd.implementation.startswith("floats+")
    found, given = call(pd)
    wanted = np.einsum("nchw,oc->nohw", meant("src", given, attr), meant("weights", given, attr)[:, :, 0, 0])
    np.testing.assert_array_equal(found, wanted)
