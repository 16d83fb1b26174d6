"""deterministic="batch": a row's or image's bits are those that it has alone, for any number of others and threads."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.support.drawing import RANDOM
from tests.support.tuning import by_whole_rows

BATCHES, SOME = (64, 16, 8, 5, 3, 2, 1), (5, 2, 1)
RELU = dnn.Attr([dnn.Eltwise("relu")])
ANY_BATCH = RELU.changed(deterministic="batch")
Request = Callable[[int], tuple[Any, dict[str, np.ndarray]]]
LEVELS = [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")]


def random(*dims: int) -> np.ndarray:
    return RANDOM.standard_normal(dims).astype(np.float32)


def desc(dims: tuple[int, ...], tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


def product(k: int, n: int, tag: str, dst: str = "ab", bias: bool = False) -> Request:
    data = {"src": random(64, k), "weights": random(k, n), **({"bias": random(1, n)} if bias else {})}

    def of(rows: int) -> tuple[Any, dict[str, np.ndarray]]:
        tensors = {"src": desc((rows, k), "ab"), "weights": desc((k, n), tag), "dst": desc((rows, n), dst)}
        tensors |= {"bias": desc((1, n), "ab")} if bias else {}
        return dnn.MatMul(**tensors), {**data, "src": data["src"][:rows]}

    return of


def products(m: int, k: int, n: int) -> Request:
    data = {"src": random(64, m, k), "weights": random(1, k, n)}

    def of(count: int) -> tuple[Any, dict[str, np.ndarray]]:
        dims = {"src": (count, m, k), "weights": (1, k, n), "dst": (count, m, n)}
        tensors = {name: desc(shape, "abc") for name, shape in dims.items()}
        return dnn.MatMul(**tensors), {**data, "src": data["src"][:count]}

    return of


def inner(ic: int, oc: int, tag: str) -> Request:
    data = {"src": random(64, ic, 2, 3), "weights": random(oc, ic, 2, 3), "bias": random(oc)}

    def of(rows: int) -> tuple[Any, dict[str, np.ndarray]]:
        src, weights = desc((rows, ic, 2, 3), "abcd"), desc((oc, ic, 2, 3), tag)
        request = dnn.InnerProductForward(src=src, weights=weights, bias=desc((oc,), "a"), dst=desc((rows, oc), "ab"))
        return request, {**data, "src": data["src"][:rows]}

    return of


def convolution(
    ic: int, oc: int, size: int, kernel: int, groups: int = 1, tag: str = "any", algorithm: Any = "direct"
) -> Request:
    shape = (oc, ic, kernel, kernel) if groups == 1 else (groups, oc // groups, ic // groups, kernel, kernel)
    data, pad = {"src": random(64, ic, size, size), "weights": random(*shape)}, (kernel // 2,) * 2

    def of(images: int) -> tuple[Any, dict[str, np.ndarray]]:
        src, dst = desc((images, ic, size, size), tag), desc((images, oc, size, size), tag)
        request = dnn.ConvolutionForward(src, desc(shape), dst=dst, padding_l=pad, padding_r=pad, algorithm=algorithm)
        return request, {**data, "src": data["src"][:images]}

    return of


def deconvolution(ic: int, oc: int, size: int, stride: int) -> Request:
    data, out = {"src": random(64, ic, size, size), "weights": random(oc, ic, 3, 3)}, (size - 1) * stride + 3

    def of(images: int) -> tuple[Any, dict[str, np.ndarray]]:
        src, dst = desc((images, ic, size, size)), desc((images, oc, out, out))
        request = dnn.DeconvolutionForward(src, desc((oc, ic, 3, 3)), dst=dst, strides=(stride, stride))
        return request, {**data, "src": data["src"][:images]}

    return of


# The first seven differ with plans for one batch: rows, dots and split_k.
REQUESTS: dict[str, Request] = {
    "rows": product(300, 300, "ab"),
    "rows with bias": product(768, 1000, "ab", bias=True),
    "dots": product(300, 300, "ba"),
    "split": product(4096, 64, "any"),
    "narrow": product(4000, 33, "ab", bias=True),
    "inner product": inner(256, 10, "abcd"),
    "turned": product(300, 40, "ab", dst="ba"),
    "a column": product(1024, 1, "any"),
    "in panels": product(513, 7, "any", bias=True),
    "outer": product(5, 300, "ab"),
    "batched": products(1, 300, 200),
    "batched rows": products(7, 130, 150),
    "inner product in panels": inner(33, 1000, "any"),
    "3x3": convolution(16, 32, 14, 3),
    "3x3 nchw": convolution(24, 40, 7, 3, tag="abcd"),
    "3x3 nhwc": convolution(24, 40, 7, 3, tag="acdb"),
    "of few channels": convolution(3, 16, 14, 3, tag="abcd"),
    "to few channels": convolution(64, 2, 9, 3),
    "1x1": convolution(64, 128, 7, 1),
    "1x1 nchw": convolution(512, 64, 4, 1, tag="abcd"),
    "1x1 of a pixel": convolution(300, 260, 1, 1, tag="acdb"),
    "depthwise": convolution(32, 32, 8, 3, groups=32),
    "groups": convolution(32, 64, 8, 3, groups=4),
    "winograd": convolution(32, 48, 14, 3, algorithm="winograd"),
    "winograd in groups": convolution(32, 64, 8, 3, groups=2, algorithm="winograd"),
    "winograd of few": convolution(64, 64, 4, 3, algorithm="auto"),
    "auto": convolution(64, 64, 14, 3, algorithm="auto"),
    "deconvolution": deconvolution(16, 24, 9, 1),
    "deconvolution with strides": deconvolution(24, 8, 7, 2),
}
CHOSEN_BY_IMAGES = ("winograd of few",)
TYPES = [
    (dnn.f16, dnn.f16, dnn.f16),
    (dnn.bf16, dnn.bf16, dnn.f32),
    (dnn.u8, dnn.s8, dnn.f32),
    (dnn.s8, dnn.s8, dnn.s8),
]  # of src, weights and dst
TYPED = ("rows", "dots", "split", "inner product", "3x3", "1x1 nchw", "depthwise", "winograd of few", "deconvolution")
OF_TYPES = [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core_vnni", "avx512_core_bf16")]


def engine(isa: str, threads: int = 1) -> dnn.Engine:
    return by_whole_rows(dnn.Engine(isa=isa, threads=threads, l2_bytes=512 << 10))  # type: ignore[arg-type]


def asking(isa: str, threads: int = 1) -> dnn.Engine:
    """An engine that asks for it, of everything."""
    return replace(engine(isa, threads), deterministic="batch")


def result(request: Any, data: dict[str, np.ndarray], attr: dnn.Attr, on: dnn.Engine) -> np.ndarray:
    pd = dnn.primitive_desc(request, attr, on)
    memories = {
        name: dnn.reorder(dnn.Memory.from_array(data[name]), tensor) if name in data else dnn.Memory(tensor)
        for name, tensor in pd.plan.tensors.items()
    }
    dnn.Primitive(pd).execute(**memories)
    return np.array(memories["dst"].numpy())


def differing(
    of: Request, attr: dnn.Attr, isa: str, threads: tuple[int, ...] = (1,), batches: tuple[int, ...] = SOME
) -> list[tuple[int, int]]:
    """The batches, and numbers of threads, that give other bits than the first ones."""
    whole = result(*of(64), attr, engine(isa))
    return [(n, t) for n in batches for t in threads if not same(result(*of(n), attr, engine(isa, t)), whole[:n])]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", REQUESTS)
def test_bits_do_not_depend_on_neighbours(name: str, isa: str) -> None:
    assert differing(REQUESTS[name], ANY_BATCH, isa, (1, 3)) == []


@pytest.mark.slow
@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", REQUESTS)
def test_bits_do_not_depend_on_any_number_of_neighbours(name: str, isa: str) -> None:
    assert differing(REQUESTS[name], ANY_BATCH, isa, (1, 2, 3), BATCHES) == []


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", [*list(REQUESTS)[:6], *CHOSEN_BY_IMAGES])
def test_the_comparison_can_fail(name: str) -> None:
    assert differing(REQUESTS[name], RELU, "avx2", batches=BATCHES)


def typed(of: Request, dtypes: tuple[Any, Any, Any]) -> Request:
    """With factors and results of these types; numbers of bytes are of 30 times the size."""
    names = dict(zip(("src", "weights", "dst"), dtypes, strict=True))

    def of_types(items: int) -> tuple[Any, dict[str, np.ndarray]]:
        request, data = of(items)
        tensors = {name: as_type(tensor, names.get(name, dnn.f32)) for name, tensor in request.tensors().items()}
        return replace(request, **tensors), {
            name: x * (30 if names["weights"] == dnn.s8 else 1) for name, x in data.items()
        }

    return of_types


def as_type(tensor: dnn.MemoryDesc, dtype: Any) -> dnn.MemoryDesc:
    return (
        dnn.MemoryDesc(tensor.dims, dtype, "any")
        if tensor.is_any
        else dnn.MemoryDesc(tensor.dims, dtype, strides=tensor.strides)
    )


@pytest.mark.parametrize("isa", OF_TYPES)
@pytest.mark.parametrize("dtypes", TYPES, ids=lambda dtypes: "".join(map(str, dtypes)))
def test_other_types(dtypes: tuple[Any, Any, Any], isa: str) -> None:
    found = {name: differing(typed(REQUESTS[name], dtypes), ANY_BATCH, isa, (1, 3)) for name in TYPED}
    assert not any(found.values()), found


@pytest.mark.slow
@pytest.mark.parametrize("isa", OF_TYPES)
@pytest.mark.parametrize("dtypes", TYPES, ids=lambda dtypes: "".join(map(str, dtypes)))
@pytest.mark.parametrize("name", REQUESTS)
def test_other_types_of_any_number(name: str, dtypes: tuple[Any, Any, Any], isa: str) -> None:
    if "winograd" in name and name not in CHOSEN_BY_IMAGES and dtypes[1] == dnn.s8:
        pytest.skip("Winograd's transforms are of floats")
    assert differing(typed(REQUESTS[name], dtypes), ANY_BATCH, isa, (1, 2, 3), BATCHES) == []


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", ["rows", "split"])
def test_the_comparison_of_types_can_fail(name: str) -> None:
    of = typed(REQUESTS[name], (dnn.bf16, dnn.bf16, dnn.f32))
    assert differing(of, RELU, "avx2", batches=BATCHES)


@pytest.mark.parametrize("name", ["rows", "1x1"])
def test_tiles_of_amx_multiply_bytes_only(name: str) -> None:
    """Their sums of bf16 have another order than those of vectors, to which few rows are left; those of bytes are
    exact."""
    for dtypes, attr, is_by_tiles in (
        ((dnn.bf16, dnn.bf16, dnn.f32), dnn.Attr(), True),
        ((dnn.bf16, dnn.bf16, dnn.f32), ANY_BATCH, False),
        ((dnn.u8, dnn.s8, dnn.f32), ANY_BATCH, True),
    ):
        request, _ = typed(REQUESTS[name], dtypes)(64)
        pd = dnn.primitive_desc(request, attr, engine("avx512_core_amx"))
        assert ("amx" in pd.implementation) == is_by_tiles, (dtypes, pd.implementation)


def with_scales(of: Request, channels: int) -> Request:
    """One for each channel of src, the same for all images: either operand can be multiplied."""
    scales = random(channels)

    def of_scaled(images: int) -> tuple[Any, dict[str, np.ndarray]]:
        request, data = of(images)
        return request, {**data, "src_scales": scales}

    return of_scaled


@pytest.mark.parametrize("isa", LEVELS)
def test_scales_of_channels(isa: str) -> None:
    of = with_scales(convolution(16, 24, 6, 3), 16)
    assert differing(of, dnn.Attr(scales={"src": 2}), isa)
    assert differing(of, dnn.Attr(scales={"src": 2}, deterministic="batch"), isa, (1, 3)) == []


SCALED = {"src_scales": random(1), "dst_scales": np.abs(random(1)) + 1}


def of_scaled_columns(of: Request, n: int) -> Request:
    """With scales of src, dst and every column of weights."""
    numbers = {**SCALED, "weights_scales": random(n)}

    def of_scaled(rows: int) -> tuple[Any, dict[str, np.ndarray]]:
        request, data = of(rows)
        return request, {**data, **numbers}

    return of_scaled


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", ["rows", "split"])
def test_scales_of_products(name: str, isa: str) -> None:
    attr = dnn.Attr(scales={"src": 0, "weights": 2, "dst": 0}, deterministic="batch")
    of = of_scaled_columns(REQUESTS[name], REQUESTS[name](1)[0].dst.dims[1])
    assert differing(of, attr, isa, (1, 3)) == []


def pair(size: int, channels: int) -> Request:
    """A 1x1 convolution, whose attribute brings a depthwise one."""
    of, weights = convolution(64, channels, size, 1), random(channels, 1, 1, 3, 3)

    def of_both(images: int) -> tuple[Any, dict[str, np.ndarray]]:
        request, data = of(images)
        return request, {**data, "dw_weights_0": weights}

    return of_both


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize(("size", "channels"), [(14, 64), (28, 192)])
def test_pairs(size: int, channels: int, isa: str) -> None:
    """They are cut into strips or not by what all images take."""
    second = dnn.Depthwise(desc((channels, 1, 1, 3, 3)), padding_l=(1, 1), padding_r=(1, 1))
    assert differing(pair(size, channels), dnn.Attr([second], deterministic="batch"), isa, (1, 3)) == []


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
@pytest.mark.parametrize("rows", [1, 2, 4, 64])
def test_what_is_left_out(rows: int, isa: str) -> None:
    for name in ("rows", "dots", "split", "narrow", "a column"):
        pd = dnn.primitive_desc(REQUESTS[name](rows)[0], ANY_BATCH, engine(isa))
        words = pd.implementation.partition(":")[0].split("+")
        assert not {"rows", "dots", "split_k"}.intersection(words), (name, pd.implementation)


def test_what_is_refused() -> None:
    on = engine("avx2")
    images = desc((2, 8, 3, 3), "abcd")
    statistics_of_a_batch = dnn.BatchNormForward(dnn.PropKind.forward_inference, images, images)
    with pytest.raises(Unimplemented, match="BatchNormForward has no plans for deterministic='batch'"):
        dnn.primitive_desc(statistics_of_a_batch, dnn.Attr(deterministic="batch"), on)
    with pytest.raises(Unimplemented, match="BatchNormForward has no plans for deterministic='batch'"):
        dnn.primitive_desc(statistics_of_a_batch, engine=asking("avx2"))
    matrix = dnn.MemoryDesc((8, 8), dnn.f32, "ab")
    s8 = as_type(matrix, dnn.s8)
    with pytest.raises(Unimplemented, match="src is s8, weights f32: deterministic='batch' takes floats of one type"):
        dnn.implementations(dnn.MatMul(s8, matrix, dst=matrix), ANY_BATCH, on)
    grouped = dnn.Attr(scales={"weights": 3}, groups={"weights": (4, 1)}, deterministic="batch")
    with pytest.raises(Unimplemented, match="src is s8, weights s8 with scales of groups: deterministic='batch' takes"):
        dnn.implementations(dnn.MatMul(s8, s8, dst=matrix), grouped, on)
    with pytest.raises(InvalidArguments, match="deterministic='batch' with fpmath_mode 'bf16'"):
        dnn.Attr(deterministic="batch", fpmath_mode="bf16")


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_a_descriptor_knows_whether_it_is_so(isa: str) -> None:
    """Where the plan without it is the same; a descriptor that asks for it always has it."""
    for name in ("rows", "split", "3x3", "depthwise", "winograd of few", "inner product"):
        for items in (1, 4, 64):
            request, _ = REQUESTS[name](items)
            asked, plain = (dnn.primitive_desc(request, attr, engine(isa)) for attr in (ANY_BATCH, RELU))
            assert asked.any_batch
            assert plain.any_batch == asked.plan.calls_as(plain.plan), name
            assert ("bits of an item are those" in plain.explain()) == plain.any_batch
    assert not dnn.primitive_desc(REQUESTS["rows"](1)[0], RELU, engine(isa)).any_batch
    assert not dnn.primitive_desc(product(16000, 64, "any")(4)[0], RELU, engine(isa)).any_batch
    assert dnn.primitive_desc(REQUESTS["rows"](64)[0], RELU, engine(isa)).any_batch
    assert dnn.primitive_desc(REQUESTS["3x3"](1)[0], RELU, engine(isa)).any_batch


def test_a_descriptor_of_sums_over_a_batch_has_no_such_bits() -> None:
    matrix, vector = desc((8, 8), "ab"), desc((8,), "a")
    weights = dnn.InnerProductBackwardWeights(matrix, matrix, matrix, vector)
    assert not dnn.primitive_desc(weights, engine=engine("avx2")).any_batch
    rounded = dnn.Attr(fpmath_mode="bf16")  # which "batch" refuses
    product = dnn.MatMul(matrix, matrix, dst=matrix)
    assert not dnn.primitive_desc(product, rounded, engine("avx512_core_bf16")).any_batch


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_long_sums_of_many_columns_are_so_anyway(isa: str) -> None:
    """They have tiles enough for some threads, and none is cut; those of few columns are."""
    for columns, is_cut in ((64, True), (3072, False)):
        pd = dnn.primitive_desc(product(16000, columns, "any")(4)[0], engine=engine(isa))
        assert ("split_k" in pd.implementation) == is_cut, (columns, pd.implementation)
        assert pd.any_batch != is_cut
