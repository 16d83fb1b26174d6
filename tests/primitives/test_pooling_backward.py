"""Gradients of poolings: the definition, the adjoint identity, threads, mistakes."""

from itertools import product
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.windows import SlidingWindow, positions_of
from asmdnn.primitives.pooling_backward import scattered
from tests.primitives.conv_case import layout
from tests.primitives.gradient_case import assert_results, check, proved, run

# dims of src, dims of dst after channels, kernel, strides, dilations, padding before and after
SHAPES = [
    ((2, 19, 9, 8), (5, 4), (3, 2), (2, 2), (0, 0), (1, 0), (1, 0)),
    ((1, 16, 6, 6), (6, 6), (3, 3), (1, 1), (0, 0), (1, 1), (1, 1)),
    ((2, 5, 8, 9), (4, 4), (2, 3), (2, 2), (0, 0), (0, 0), (0, 0)),
    ((1, 8, 11), (5,), (3,), (2,), (1,), (1,), (1,)),
    ((1, 3, 4, 5, 6), (2, 3, 3), (2, 2, 2), (2, 2, 2), (0, 0, 0), (0, 1, 0), (0, 1, 0)),
    ((1, 1, 7, 7), (4, 4), (2, 2), (2, 2), (0, 0), (0, 0), (0, 0)),  # ceil mode: the last windows end after src
    ((2, 32, 5, 5), (1, 1), (5, 5), (1, 1), (0, 0), (0, 0), (0, 0)),
    ((1, 9, 8, 7), (8, 7), (5, 5), (1, 1), (0, 0), (2, 2), (2, 2)),  # several passes
    ((1, 4, 7, 7), (2, 2), (2, 2), (4, 4), (0, 0), (0, 0), (0, 0)),  # pixels in no window
    ((2, 19, 8, 6), (4, 2), (2, 3), (2, 3), (0, 0), (0, 0), (0, 0)),  # windows that touch
    ((1, 16, 6), (2,), (3,), (3,), (0,), (0,), (0,)),
    ((1, 8, 4, 6, 2), (2, 2, 2), (2, 3, 1), (2, 3, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0)),
]
TOUCHING = SHAPES[-3:]  # halves are moved, once divided
ALGS = ["max", "avg_include_padding", "avg_exclude_padding"]
TAGS = ["any", "abx", "axb", "aBx8b"]


def windows_of(shape: Any) -> Any:
    """(output, pixel) of every position inside src."""
    dims, made, kernel, strides, dilations, before, _ = shape
    for out in product(*map(range, made)):
        inside = []
        for tap in product(*map(range, kernel)):
            at = [o * s + t * (d + 1) - p for o, s, t, d, p in zip(out, strides, tap, dilations, before, strict=True)]
            if all(0 <= x < n for x, n in zip(at, dims[2:], strict=True)):
                inside.append(tuple(at))
        yield out, inside


def gradient(shape: Any, alg: str, tag: str, places: dnn.DataType = dnn.s32) -> Any:
    """(description, inputs, results), on integers that means divide without rounding."""
    dims, made, *window = shape
    random = np.random.default_rng(3)
    x = random.permutation(np.prod(dims)).reshape(dims).astype(np.float32)
    dy = random.integers(-4, 5, (*dims[:2], *made)).astype(np.float32)
    forward = dnn.PoolingForward(alg, layout(dims, "any"), layout(dy.shape, "any"), *window)  # type: ignore[arg-type]
    divisors = [[run.window.divisor for run in forward.runs(a) for _ in range(run.outputs)] for a in range(len(made))]
    wanted, indices = np.zeros(dims), np.zeros(dy.shape, np.int32)
    for out, inside in windows_of(shape):
        at = (..., *out)
        if alg != "max":
            divisor = np.prod([of_axis[o] for of_axis, o in zip(divisors, out, strict=True)])
            for pixel in inside:
                wanted[(..., *pixel)] += dy[at] / divisor
            continue
        values = np.stack([x[(..., *pixel)] for pixel in inside])
        best = values.argmax(0)
        for i, pixel in enumerate(inside):
            wanted[(..., *pixel)] += np.where(best == i, dy[at], 0)
            indices[at] = np.where(best == i, np.ravel_multi_index(pixel, dims[2:]), indices[at])
    kept = dnn.MemoryDesc(dy.shape, places, layout(dy.shape, tag).tag or "any") if alg == "max" else None
    if places == dnn.u8:
        indices = positions_of(indices, sliding(shape), dims[2:]).astype(np.uint8)
    desc = dnn.PoolingBackward(alg, layout(dims, tag), layout(dy.shape, tag), *window, indices=kept)  # type: ignore[arg-type]
    arrays = {"diff_dst": dy} | ({"indices": indices} if alg == "max" else {})
    return desc, arrays, {"diff_src": wanted}


def sliding(shape: Any) -> SlidingWindow:
    """Padding behind such that there are as many windows as results."""
    dims, made, kernel, strides, dilations, before, _ = shape
    steps = tuple(d + 1 for d in dilations)
    extents = [(o - 1) * s + (k - 1) * d + 1 for o, k, s, d in zip(made, kernel, strides, steps, strict=True)]
    after = tuple(max(0, n - i - b) for n, i, b in zip(extents, dims[2:], before, strict=True))
    return SlidingWindow(kernel, strides, steps, before, after)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_places_in_windows(isa: str, shape: Any) -> None:
    """u8 places: a quarter of the bytes, and kernels that know which one a position has."""
    for tag in TAGS:
        pd = check(*gradient(shape, "max", tag, dnn.u8), isa)
        assert pd.implementation.removeprefix("reorder+").partition(":")[0].split("+")[0] == way_of(shape, tag, isa)


@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.one_in(5)
def test_results(isa: str, shape: Any, alg: str) -> None:
    for tag in TAGS:
        pd = check(*gradient(shape, alg, tag), isa, 0.0 if alg == "max" else 1e-5)
        name = pd.implementation.removeprefix("reorder+").partition(":")[0].split("+")[0]
        assert name == (way_of(shape, tag, isa) if alg == "max" else "means")


def way_of(shape: Any, tag: str, isa: str) -> str:
    """Of a single channel, of 3 in volumes, and of 9 whose windows have 25 positions, planes are scattered."""
    (_, channels, *_), *_ = shape
    few = channels in (1, 3) or (channels == 9 and isa == "avx2")
    return "scattered" if few and (tag == "abx" or (channels == 1 and tag == "axb")) else "maxima"


@pytest.mark.parametrize(
    ("channels", "stride", "sizes"),
    [(200, 1, [64, 64, 64, 8]), (128, 1, [128]), (200, 2, [64, 64, 64, 8]), (200, 3, [128, 72])],
)
def test_rows_of_a_block_of_channels_follow_one_another(isa: str, channels: int, stride: int, sizes: list[int]) -> None:
    """Of many channels, where windows share rows, so that a cache still has what the row above has read."""
    shape = ((2, channels, 7, 7), (-(-5 // stride), -(-5 // stride)), (3, 3), (stride, stride), (0, 0), (0, 0), (0, 0))
    for places in (dnn.s32, dnn.u8):
        (phase,) = check(*gradient(shape, "max", "axb", places), isa).plan.phases
        dst = phase.records[:, 1] // dnn.f32.size_bytes
        blocks = [phase.kernels[number].elements for number in phase.records[:, 0]]
        starts = dst % channels
        wanted = [(sum(sizes[:n]), size) for n, size in enumerate(sizes)]
        assert sorted({*zip(starts.tolist(), blocks, strict=True)}) == wanted
        order = starts * dst.max() + dst
        assert (np.diff(order) > 0).all()


@pytest.mark.parametrize("places", [dnn.s32, dnn.u8], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_planes_of_any_shape(monkeypatch: pytest.MonkeyPatch, shape: Any, places: dnn.DataType) -> None:
    """They are scattered where that does not pay, too; places of no pixel and of other windows move nothing out of
    theirs, and what they move is what the other way moves."""
    desc, arrays, wanted = gradient(shape, "max", "abx", places)
    monkeypatch.setattr(scattered, "check_worth", lambda *_: None)
    for threads in (1, 3):
        engine = dnn.Engine(isa="avx2", machine="zen3", threads=threads)
        made, other = (x for x in dnn.implementations(desc, engine=engine) if isinstance(x, dnn.PrimitiveDesc))
        assert made.implementation.startswith("scattered") and "maxima" in other.implementation
        made.plan.check()
        assert_results(run(made, arrays), wanted)
        random = np.random.default_rng(11)
        foreign = random.permutation(arrays["indices"].ravel()).reshape(arrays["indices"].shape)
        strange = random.choice(np.array([-1, 0, 7, 63, 255, 10**6]), foreign.shape).astype(foreign.dtype)
        given = {**arrays, "indices": np.where(random.random(foreign.shape) < 0.5, foreign, strange)}
        assert np.array_equal(run(made, given)["diff_src"], run(other, given)["diff_src"])


def test_windows_that_span_many_pixels_are_not_in_a_table() -> None:
    places = dnn.MemoryDesc((1, 1, 1, 3000), dnn.s32, "abcd")
    src, dst = (dnn.MemoryDesc((1, 1, rows, 3000), dnn.f32, "abcd") for rows in (7, 1))
    desc = dnn.PoolingBackward("max", src, dst, (7, 1), (1, 1), indices=places)
    refusal = dnn.implementations(desc, engine=dnn.Engine(isa="avx2"))[0]
    assert str(refusal) == "scattered:avx2: windows span 18001 pixels of the plane, more than a table of 16384 has"


def test_windows_that_are_wider_than_planes() -> None:
    """A pixel's number is that of a position beside the plane in the row above; u8 places are positions."""
    shape = ((1, 1, 9, 6, 1), (4, 2, 1), (2, 4, 2), (2, 3, 4), (1, 0, 0), (0, 1, 0), (0, 2, 1))
    for places, name in ((dnn.s32, "maxima"), (dnn.u8, "scattered")):
        pd = check(*gradient(shape, "max", "abx", places), "avx2")
        assert pd.implementation.removeprefix("reorder+").partition(":")[0].split("+")[0] == name


@pytest.mark.parametrize("tag", ["axb~3", "abx~3"])
def test_gaps_of_a_gradient_are_not_read_once_it_is_divided(isa: str, tag: str) -> None:
    for shape in SHAPES:
        desc, _, _ = gradient(shape, "avg_exclude_padding", tag)
        proved(desc, isa)
    check(*gradient(SHAPES[5], "avg_exclude_padding", tag), isa, 1e-5)


@pytest.mark.parametrize("places", [dnn.s32, dnn.u8], ids=str)
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_what_the_forward_pass_keeps(isa: str, shape: Any, places: dnn.DataType) -> None:
    """Indices as they come; for the places that they name <forward(x), y> = <x, backward(y)>."""
    dims, made, *window = shape
    random = np.random.default_rng(5)
    x = random.integers(-99, 99, dims).astype(np.float32)
    y = random.integers(-4, 5, (*dims[:2], *made)).astype(np.float32)
    src, dst = layout(dims, "axb"), layout(y.shape, "axb")
    indices = dnn.MemoryDesc(y.shape, places, dst.tag or "any")
    forward = run(proved(dnn.PoolingForward("max", src, dst, *window, indices=indices), isa), {"src": x})
    desc = dnn.PoolingBackward("max", src, dst, *window, indices=indices)
    back = run(proved(desc, isa), {"diff_dst": y, "indices": forward["indices"]})["diff_src"]
    assert np.vdot(forward["dst"].astype(float), y) == np.vdot(x, back.astype(float))


SRC, DST = (dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((1, 8, 6, 6), (1, 8, 3, 3)))
PLACES = dnn.MemoryDesc((1, 8, 3, 3), dnn.s32, "any")


@pytest.mark.parametrize(
    ("alg", "dst", "strides", "indices", "message"),
    [
        ("max", DST, (2, 2), None, "indices is None: the gradient of a maximum"),
        ("avg_include_padding", DST, (2, 2), PLACES, "indices are of max"),
        ("max", DST, (1, 1), PLACES, "seen from its forward pass: dst's height is 3"),
        ("max", None, (2, 2), PLACES, "diff_dst must be a MemoryDesc"),
    ],
)
def test_mistakes(alg: Any, dst: Any, strides: Any, indices: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.PoolingBackward(alg, SRC, dst, (2, 2), strides, indices=indices)


def test_what_is_not_implemented() -> None:
    desc = dnn.PoolingBackward("max", SRC, DST, (2, 2), (2, 2), indices=PLACES)
    with pytest.raises(dnn.Unimplemented, match="a gradient has no post-ops, scales or zero points"):
        dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]))
    octets = dnn.MemoryDesc(SRC.dims, dnn.s8, "any")
    with pytest.raises(dnn.Unimplemented, match="diff_src is s8, only f32, bf16, f16 is implemented"):
        dnn.primitive_desc(dnn.PoolingBackward("max", octets, DST, (2, 2), (2, 2), indices=PLACES))


@pytest.mark.parametrize(
    "window", [{"kernel": 2}, {"kernel": 3, "stride": 2, "padding": 1}, {"kernel": (3, 2), "stride": 1}]
)
def test_ops(isa: str, window: dict[str, Any]) -> None:
    """<forward(x), y> = <x, gradient(y)> for means, and for maxima at the places that were found."""
    random = np.random.default_rng(7)
    x = random.integers(-99, 99, (2, 5, 8, 9)).astype(np.float32)
    with dnn.max_cpu_isa(isa):
        made, indices = dnn.ops.max_pool(x, **window, return_indices=True)
        y = random.integers(-4, 5, made.shape).astype(np.float32)
        back = dnn.ops.max_pool_gradient(y, indices, x.shape, **window)
        assert np.vdot(made.astype(float), y) == np.vdot(x, back.astype(float))
        for include in (True, False):
            mean = dnn.ops.avg_pool(x, **window, count_include_pad=include)
            back = dnn.ops.avg_pool_gradient(y, x.shape, **window, count_include_pad=include)
            assert np.isclose(np.vdot(mean.astype(float), y), np.vdot(x, back.astype(float)), rtol=1e-4, atol=1e-2)


def test_mistakes_in_ops() -> None:
    y = np.ones((1, 2, 3, 3), np.float32)
    with pytest.raises(dnn.InvalidArguments, match="indices must be int64 or int32 with the dims of dy, not int16"):
        dnn.ops.max_pool_gradient(y, np.zeros(y.shape, np.int16), (1, 2, 6, 6), 2)
    with pytest.raises(dnn.InvalidArguments, match="dy's height is 3"):
        dnn.ops.avg_pool_gradient(y, (1, 2, 9, 6), 2)
    with pytest.raises(dnn.InvalidArguments, match="3 to 5 are needed"):
        dnn.ops.avg_pool_gradient(y[0, 0], (1, 2, 9, 6), 2)
