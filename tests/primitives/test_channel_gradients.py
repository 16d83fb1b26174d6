"""Gradients of batch and group normalization and PReLU: float64 definitions, formats, threads, pages, mistakes."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.primitives.normalization.statistics import GIVEN
from asmdnn.records import replace
from tests.primitives.conv_case import layout
from tests.primitives.gradient_case import assert_results, check, run
from tests.support.plans import proved_desc

ROUND = 2.0**-24
SHAPES = [((3, 19, 4, 5), tag) for tag in ("abcd", "acdb", "aBcd8b", "any")] + [((6, 9), "ab"), ((2, 3, 40), "acb")]


def real(seed: int, *dims: int) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, dims).astype(np.float32)


def batch_norm(dims: tuple[int, ...], tag: str, scaled: bool = True, given: bool = False, sums: bool = True) -> Any:
    """(description, inputs, results)."""
    x, dy, scale = real(1, *dims), real(2, *dims), real(3, dims[1])
    axes, across = (0, *range(2, len(dims))), (1, -1, *[1] * (len(dims) - 2))
    wide = x.astype(float)
    mean, variance = wide.mean(axes).astype(np.float32), wide.var(axes).astype(np.float32)
    factor = (1 / np.sqrt(variance.astype(float) + 1e-3)).reshape(across)
    h = (wide - mean.reshape(across)) * factor
    means = [0.0, 0.0] if given else [g.mean(axes, keepdims=True) for g in (dy.astype(float), dy * h)]
    dx = factor * (scale.reshape(across) if scaled else 1.0) * (dy - means[0] - h * means[1])
    of_channels = dnn.MemoryDesc(dims[1:2], dnn.f32, "a")
    more = {"scale": of_channels} if scaled else {}
    more |= dict.fromkeys(("diff_scale", "diff_shift"), of_channels) if sums else {}
    desc = dnn.BatchNormBackward(
        *[layout(dims, tag)] * 3, of_channels, of_channels, 1e-3, **more, use_global_stats=given
    )
    arrays = {"src": x, "diff_dst": dy, "mean": mean, "variance": variance} | ({"scale": scale} if scaled else {})
    wanted = {"diff_scale": (dy * h).sum(axes), "diff_shift": dy.astype(float).sum(axes)} if sums else {}
    return desc, arrays, {"diff_src": dx, **wanted}


@pytest.mark.parametrize(("dims", "tag"), SHAPES, ids=str)
def test_batch_norm(isa: str, dims: tuple[int, ...], tag: str) -> None:
    for scaled, given, sums in ((True, False, True), (False, False, False), (True, True, False), (False, True, True)):
        pd = check(*batch_norm(dims, tag, scaled, given, sums), isa, ROUND * 1024)
        assert pd.implementation == f"{GIVEN if given else 'batch_norm'}:{isa}"


@pytest.mark.parametrize("fused_with", ["", "norm_relu", "norm_add_relu"])
def test_padding_counts_as_channels(isa: str, fused_with: str) -> None:
    """Blocks with zeros after the last channel are read where they are, and stay zeros, also without an epsilon."""
    case = batch_norm((3, 19, 4, 5), "aBcd8b")
    desc, arrays, wanted = fused(case, fused_with) if fused_with else case
    pd = check(desc, arrays, wanted, isa, ROUND * 1024)
    assert not [name for name in pd.plan.scratch_bytes if name.startswith("plain")]
    without = run(proved_desc(replace(desc, epsilon=0.0), dnn.Attr(), dnn.Engine(isa=isa, threads=1)), arrays)
    assert all(np.isfinite(values).all() for values in without.values())


@pytest.mark.parametrize("kind", ["batch", "group"])
def test_parameters_of_bf16(isa: str, kind: str) -> None:
    """A scale is widened, and gradients of parameters are rounded once: the bits of those of f32."""
    dims = (3, 12, 4, 5)
    desc, arrays, _ = batch_norm(dims, "abcd") if kind == "batch" else group_norm(dims, 4, "abcd")
    bits = arrays["scale"].view(np.uint32) >> 16
    arrays["scale"] = (bits << 16).view(np.float32)
    exact = run(proved_desc(desc, dnn.Attr(), dnn.Engine(isa=isa, threads=1)), arrays)
    names = ("scale", "diff_scale", "diff_shift")
    halves = dict.fromkeys(names, dnn.MemoryDesc((12,), dnn.bf16, "any"))
    pd = proved_desc(replace(desc, **halves), dnn.Attr(), dnn.Engine(isa=isa, threads=1))
    found = run(pd, {**arrays, "scale": bits.astype(np.uint16)})
    assert found["diff_src"].tobytes() == exact["diff_src"].tobytes()
    for name in names[1:]:
        near = np.abs((found[name].astype(np.uint32) << 16).view(np.float32) - exact[name])
        assert (near <= 2.0**-8 * np.abs(exact[name])).all()


@pytest.mark.parametrize("fuse", ["norm_relu", "norm_add_relu"])
@pytest.mark.parametrize(("dims", "tag"), SHAPES, ids=str)
def test_fused(isa: str, dims: tuple[int, ...], tag: str, fuse: Any) -> None:
    """As that of what the mask leaves of diff_dst, which is the gradient of what was added."""
    for scaled, given, sums in ((True, False, True), (True, True, False)):
        check(*fused(batch_norm(dims, tag, scaled, given, sums), fuse), isa, ROUND * 1024)


def fused(case: Any, fuse: Any) -> Any:
    """The same case, of a gradient with zeros where a mask has them, and of one with noise there and the mask."""
    desc, arrays, wanted = case
    dy = arrays["diff_dst"]
    mask = np.random.default_rng(4).integers(0, 2, dy.shape).astype(np.uint8)
    axes, across = (0, *range(2, dy.ndim)), (1, -1, *[1] * (dy.ndim - 2))
    factor = (1 / np.sqrt(arrays["variance"].astype(float) + desc.epsilon)).reshape(across)
    h, g = (arrays["src"].astype(float) - arrays["mean"].reshape(across)) * factor, dy.astype(float) * mask
    means = [0.0, 0.0] if desc.use_global_stats else [x.mean(axes, keepdims=True) for x in (g, g * h)]
    scale = arrays["scale"].reshape(across) if "scale" in arrays else 1.0
    found = {"diff_src": factor * scale * (g - means[0] - h * means[1]), "diff_src_1": g}
    found |= {"diff_scale": (g * h).sum(axes), "diff_shift": g.sum(axes)}
    of_mask = dnn.MemoryDesc(dy.shape, dnn.u8, "any")
    added = {"diff_src_1": desc.diff_dst} if fuse == "norm_add_relu" else {}
    names = {*wanted, *added}
    desc = replace(desc, fuse=fuse, workspace=of_mask, **added)
    return desc, {**arrays, "workspace": mask}, {name: found[name] for name in found if name in names}


def group_norm(dims: tuple[int, ...], groups: int, tag: str, scaled: bool = True, given: bool = False) -> Any:
    """As batch_norm, whose sums are asked for where it is `scaled`."""
    x, dy, scale = real(1, *dims), real(2, *dims), real(3, dims[1])
    n, c = dims[:2]
    wide, d = (a.astype(float).reshape(n, groups, c // groups, -1) for a in (x, dy))
    mean, variance = (found.astype(np.float32) for found in (wide.mean((2, 3)), wide.var((2, 3))))
    factor = (1 / np.sqrt(variance.astype(float) + 1e-3)).reshape(n, groups, 1, 1)
    h = (wide - mean.reshape(n, groups, 1, 1)) * factor
    g = d * (scale.astype(float).reshape(groups, -1, 1) if scaled else 1.0)
    means = [0.0, 0.0] if given else [part.mean((2, 3), keepdims=True) for part in (g, g * h)]
    dx = factor * (g - means[0] - h * means[1])
    of_channels, of_groups = (dnn.MemoryDesc(d, dnn.f32, "ab"[: len(d)]) for d in ((c,), (n, groups)))
    more = dict.fromkeys(("scale", "diff_scale", "diff_shift"), of_channels) if scaled else {}
    desc = dnn.GroupNormBackward(
        *[layout(dims, tag)] * 3, groups, of_groups, of_groups, 1e-3, **more, use_global_stats=given
    )
    arrays = {"src": x, "diff_dst": dy, "mean": mean, "variance": variance} | ({"scale": scale} if scaled else {})
    sums = {"diff_scale": d * h, "diff_shift": d} if scaled else {}
    wanted = {name: values.sum((0, 3)).reshape(c) for name, values in sums.items()}
    return desc, arrays, {"diff_src": dx.reshape(dims), **wanted}


GROUPED = [((3, 12, 4, 5), groups, tag) for tag in ("abcd", "acdb", "aBcd8b", "any") for groups in (1, 4, 12)]


@pytest.mark.parametrize(("dims", "groups", "tag"), [*GROUPED, ((1, 6), 3, "ab"), ((2, 38, 40), 2, "acb")], ids=str)
def test_group_norm(isa: str, dims: tuple[int, ...], groups: int, tag: str) -> None:
    for scaled, given in ((True, False), (False, False), (True, True), (False, True)):
        pd = check(*group_norm(dims, groups, tag, scaled, given), isa, ROUND * 1024)
        assert pd.implementation == f"{GIVEN if given else 'group_norm'}:{isa}"


def test_one_parameter_of_a_group_norm(isa: str) -> None:
    """diff_shift without diff_scale, in vectors whose elements lie apart."""
    desc, arrays, wanted = group_norm((3, 12, 4, 5), 4, "abcd")
    apart = dnn.MemoryDesc((12,), dnn.f32, strides=(2,))
    desc = replace(desc, scale=apart, diff_shift=apart, diff_scale=None)
    del wanted["diff_scale"]
    assert check(desc, arrays, wanted, isa, ROUND * 1024).implementation == f"reorder+group_norm:{isa}"


PRELU = [
    ("acdb", (1, 19, 1, 1), "one_pass"),
    ("abcd", (1, 1, 1, 1), "one_pass"),
    ("aBcd8b", (1, 19, 1, 1), "two_passes"),
    ("abcd", (3, 19, 4, 5), "elements"),
    ("acdb", (3, 19, 4, 5), "elements"),
    ("any", (1, 19, 1, 5), "one_pass"),
]


def prelu(tag: str, of_weights: tuple[int, ...]) -> Any:
    dims = (3, 19, 4, 5)
    x, dy, w = real(1, *dims), real(2, *dims), real(3, *of_weights)
    dw = np.where(x > 0, 0, x.astype(float) * dy)
    summed = tuple(axis for axis, n in enumerate(of_weights) if n == 1)
    image, weights = layout(dims, tag), dnn.MemoryDesc(of_weights, dnn.f32, "abcd")
    desc = dnn.PReLUBackward(image, weights, image, image, weights)
    wanted = {"diff_src": np.where(x > 0, dy, w * dy), "diff_weights": dw.sum(summed, keepdims=True)}
    return desc, {"src": x, "weights": w, "diff_dst": dy}, wanted


@pytest.mark.parametrize(("tag", "of_weights", "way"), PRELU, ids=str)
def test_prelu(isa: str, tag: str, of_weights: tuple[int, ...], way: str) -> None:
    pd = check(*prelu(tag, of_weights), isa, ROUND * 1024)
    assert pd.implementation == f"{way}:{isa}"


@pytest.mark.parametrize(("tag", "phases"), [("abcd", 1), ("acdb", 2)])
@pytest.mark.parametrize("streaming_bytes", [1, 1 << 40])
def test_prelu_of_elements_reads_once(isa: str, tag: str, phases: int, streaming_bytes: int) -> None:
    """Both gradients that lie alike, also past the caches."""
    desc, arrays, wanted = prelu(tag, (3, 19, 4, 5))
    engine = dnn.Engine(isa=isa, threads=1)
    elementwise = replace(engine.tuning.elementwise, streaming_bytes=streaming_bytes)
    pd = proved_desc(desc, dnn.Attr(), replace(engine, tuning=replace(engine.tuning, elementwise=elementwise)))
    assert sum(any("user" in spec.name for spec in phase.kernels) for phase in pd.plan.phases) == phases
    assert any("streaming" in spec.name or getattr(spec, "streaming", False) for spec in pd.plan.specs) == (
        streaming_bytes == 1
    )
    assert_results(run(pd, arrays), wanted, ROUND)


@pytest.mark.isa("avx2")
def test_every_way_of_prelu_is_right() -> None:
    """Sums of what is read for diff_src, and sums before it: both answer where tensors lie alike."""
    desc, arrays, wanted = prelu("acdb", (1, 19, 1, 1))
    answers = dnn.implementations(desc, engine=dnn.Engine(isa="avx2", threads=1))
    assert [x.implementation for x in answers if isinstance(x, dnn.PrimitiveDesc)] == [
        "one_pass:avx2",
        "two_passes:avx2",
    ]
    for pd in answers:
        if isinstance(pd, dnn.PrimitiveDesc):
            assert_results(run(pd, arrays), wanted, ROUND * 1024)
        else:
            assert pd.reason == "weights have other dims than those of src"


@pytest.mark.parametrize("channels", [131, 200])
def test_large_tensors_are_read_by_whole_rows(isa: str, channels: int) -> None:
    """Of more lanes than registers hold the sums of."""
    for case in (batch_norm((3, channels, 4, 5), "acdb"), batch_norm((9, channels), "ab", scaled=False)):
        for least in (1, 1 << 40):
            engine = dnn.Engine(isa=isa, machine="zen3" if isa == "avx2" else "skylake_sp", threads=1)
            reduction = replace(engine.tuning.reduction, whole_rows_of_sums_bytes=least)
            tuning = replace(engine.tuning, reduction=reduction)
            pd = proved_desc(case[0], dnn.Attr(), replace(engine, tuning=tuning))
            assert any(getattr(spec, "row_by_row", False) for spec in pd.plan.specs) == (least == 1)
            assert_results(run(pd, case[1]), case[2], ROUND * 1024)


X, C, N = (dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((2, 8, 3), (8,), (2,)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dnn.BatchNormBackward(X, X, X, N, C), "mean has dims .2,., they must be .8,."),
        (lambda: dnn.BatchNormBackward(X, X, X, C, None), "variance must be a MemoryDesc, not None"),
        (lambda: dnn.BatchNormBackward(X, C, X, C, C), "diff_dst has dims .8,., they must be"),
        (lambda: dnn.BatchNormBackward(C, C, C, C, C), "src has 1 dim, images and channels are needed"),
        (lambda: dnn.BatchNormBackward(X, X, X, C, C, -1.0), "epsilon must not be negative"),
        (lambda: dnn.BatchNormBackward(X, X, X, C, C, fuse="relu"), "BatchNormBackward.fuse"),
        (lambda: dnn.BatchNormBackward(X, X, X, C, C, fuse="norm_relu"), "workspace is of a fused relu: give both"),
        (lambda: dnn.BatchNormBackward(X, X, X, C, C, diff_src_1=X), "diff_src_1 is of norm_add_relu: give both"),
        (lambda: dnn.BatchNormBackward(X, X, X, C, C, fuse="norm_relu", workspace=X), "workspace is f32, a mask is u8"),
        (lambda: dnn.GroupNormBackward(X, X, X, 3, C, C), "groups is 3, it must divide the 8 channels of src"),
        (lambda: dnn.GroupNormBackward(X, X, X, True, C, C), "groups must be a whole number from 1 on, not True"),
        (lambda: dnn.GroupNormBackward(X, X, X, 4, C, C), "mean has dims .8,., they must be .2, 4."),
        (lambda: dnn.PReLUBackward(X, C, X, X, C), "weights has dims .8,., each must be 1 or that of src"),
        (lambda: dnn.PReLUBackward(X, X, X, X, C), "diff_weights has dims .8,., they must be"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()


def test_what_is_not_implemented() -> None:
    desc = dnn.BatchNormBackward(X, X, X, C, C)
    with pytest.raises(dnn.Unimplemented, match="a gradient has no post-ops, scales or zero points"):
        dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]))
    bytewise, none = (dnn.MemoryDesc((n, 8, 3), kind, "abc") for n, kind in ((2, dnn.s8), (0, dnn.f32)))
    with pytest.raises(dnn.Unimplemented, match="src is s8, only f32"):
        dnn.primitive_desc(dnn.BatchNormBackward(bytewise, X, X, C, C))
    narrow = dnn.MemoryDesc((8,), dnn.bf16, "a")
    with pytest.raises(dnn.Unimplemented, match="mean is bf16, only f32 is implemented"):
        dnn.primitive_desc(dnn.BatchNormBackward(X, X, X, narrow, C))
    with pytest.raises(dnn.Unimplemented, match="src has no elements"):
        dnn.primitive_desc(dnn.BatchNormBackward(none, none, none, C, C, diff_shift=C))
    of_groups = dnn.MemoryDesc((0, 4), dnn.f32, "ab")
    with pytest.raises(dnn.Unimplemented, match="src has no elements"):
        dnn.primitive_desc(dnn.GroupNormBackward(none, none, none, 4, of_groups, of_groups, diff_shift=C))
