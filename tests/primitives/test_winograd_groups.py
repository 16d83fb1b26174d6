"""Winograd's convolution by groups of channels: groups of whole vectors and others, each layout, end and level."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.planning.codec import decode_plan, encode_plan
from asmdnn.primitives.convolution.winograd import plan
from asmdnn.primitives.convolution.winograd.cut import WinogradCut
from tests.primitives.winograd_case import Case, check, check_errors, check_guarded, memories_of, name_of, planned

WHOLE = Case(2, 96, 96, (9, 6), groups=6)  # 16 channels: whole vectors of both levels
SHORT = Case(2, 36, 60, (9, 6), groups=3)  # 12 to 20: of none
ENGINE = dnn.Engine(isa="avx2", threads=1, machine="zen3")
CUTS = [
    (WHOLE, WinogradCut(2, 1, 5, 1)),
    (WHOLE, WinogradCut(4, 1, 5, 2, 3)),
    (WHOLE, WinogradCut(4, 2, 0, 1, 6)),
    (WHOLE, WinogradCut(2, 2, 7, 1, 2)),
    (replace(WHOLE, ic=192), WinogradCut(4, 2, 5, 1, 1)),
    (SHORT, WinogradCut(4, 3, 5, 1, 3)),
    (SHORT, WinogradCut(2, 1, 6, 3, 3)),
    (SHORT, WinogradCut(4, 2, 12, 2, 3)),
]


def at_level(case: Case, isa: str, cut: WinogradCut) -> WinogradCut:
    """With the panels of a group, where those of avx2 are all of them."""
    if isa == "avx2" or cut.groups == 1:
        return cut
    return replace(cut, panels=-(-case.oc // case.groups // (16 * cut.vectors)))


@pytest.mark.parametrize("tags", [("any", "any"), ("acdb", "acdb"), ("acdb", "any")], ids=name_of)
@pytest.mark.parametrize(("case", "cut"), CUTS, ids=name_of)
def test_cuts(isa: str, case: Case, cut: WinogradCut, tags: tuple[str, str]) -> None:
    case = replace(case, tags=tags)
    check(planned(case, isa, at_level(case, isa, cut), threads=2), case, cut.m)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(
    ("case", "cut"),
    [
        (Case(1, 32, 32, (5, 6), groups=2), WinogradCut(4, 1, 2, 1, 1)),
        (Case(1, 10, 14, (5, 6), groups=2), WinogradCut(2, 1, 9, 1, 2)),
    ],
    ids=name_of,
)
def test_cuts_emulated(case: Case, cut: WinogradCut) -> None:
    check(planned(case, "avx512_core", cut), case, cut.m, emulated=True)


@pytest.mark.parametrize(("case", "cut"), CUTS, ids=name_of)
def test_plans_of_the_other_level(case: Case, cut: WinogradCut) -> None:
    pd = planned(case, "avx512_core", at_level(case, "avx512_core", cut))
    decoded, _ = decode_plan(encode_plan(pd.plan))
    assert decoded.tensors == pd.plan.tensors


def test_groups_that_are_computed_together_are_rounds() -> None:
    """A plan does not grow with groups, nor with images."""
    pd = planned(replace(WHOLE, mb=1), "avx2", WinogradCut(4, 2, 5, 1, 2))
    alone = planned(Case(1, 32, 32, (9, 6), groups=2), "avx2", WinogradCut(4, 2, 5, 1, 2))
    assert [phase.rounds for phase in pd.plan.phases] == [3]
    assert len(pd.plan.phases[0].records) == len(alone.plan.phases[0].records)


def test_many_images_are_rounds_of_rounds(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = replace(WHOLE, mb=5)
    monkeypatch.setattr(plan, "images_of_rounds", lambda *_: (2, 2))
    pd = planned(case, isa, WinogradCut(4, 1, 4, 2 if isa == "avx2" else 1, 2), threads=2)
    assert [phase.rounds for phase in pd.plan.phases] == [6, 3]
    check(pd, case, 4)


def test_threads_agree_in_every_bit(isa: str) -> None:
    for cut in (WinogradCut(4, 2, 0, 1, 6), WinogradCut(4, 2, 4, 1, 2)):
        results = []
        for threads in (1, 2, 3, 5):
            memories = memories_of(pd := planned(WHOLE, isa, cut, threads=threads), WHOLE.arrays())
            dnn.Primitive(pd).execute(**memories)
            results.append(memories["dst"].array.view(np.uint32))
        assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.parametrize(("case", "cut"), [CUTS[3], CUTS[5]], ids=name_of)
@pytest.mark.parametrize("tag", ["any", "acdb"])
def test_post_ops_and_scales(isa: str, case: Case, cut: WinogradCut, tag: str) -> None:
    """With tensors of one channel, of all, and of every pixel; scales of groups and channels."""
    case = replace(case, tags=(tag, tag))
    arrays, (_, oc, *_) = case.arrays(), case.dst_dims
    shapes = {"binary_0": (1, oc, 1, 1), "binary_2": case.dst_dims, "prelu_3": (1, 1, 1, 1)}
    shapes |= {"src_scales": (1,), "weights_scales": (oc,)}
    random = np.random.default_rng(3)
    arrays |= {name: random.standard_normal(dims).astype(np.float32) for name, dims in shapes.items()}
    first, second, third = (dnn.MemoryDesc(shapes[name], dnn.f32, "abcd") for name in list(shapes)[:3])
    post_ops = [dnn.Binary("mul", first), dnn.Sum(0.5), dnn.Binary("add", second), dnn.PReLU(third)]
    attr = dnn.Attr(post_ops, scales={"src": 0, "weights": 3})
    pd = planned(case, isa, at_level(case, isa, cut), attr, threads=2)
    memories = {name: dnn.Memory.from_numpy(arrays[name], desc) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    bias, scales = (arrays[name].astype(np.float64)[:, None, None] for name in ("bias", "weights_scales"))
    x = (case.sums(arrays) - bias) * arrays["src_scales"] * scales + bias
    x = x * arrays["binary_0"] + 0.5 * arrays["dst"] + arrays["binary_2"]
    np.testing.assert_allclose(memories["dst"].numpy(), np.where(x > 0, x, x * arrays["prelu_3"]), 1e-4, 1e-4)


@pytest.mark.parametrize("tag", ["any", "acdb"])
@pytest.mark.parametrize(("case", "cut"), [CUTS[1], CUTS[6]], ids=name_of)
def test_nothing_outside_of_tensors_is_touched(isa: str, case: Case, cut: WinogradCut, tag: str) -> None:
    case = replace(case, tags=(tag, tag))
    pd = planned(case, isa, at_level(case, isa, cut))
    check_guarded(pd, case, cut.m)


@pytest.mark.parametrize(("m", "worst", "mean"), [(2, 1.0, 1.2), (4, 3.5, 3.2)])
@pytest.mark.parametrize("channels", [16, 32])
def test_errors_are_those_of_direct_convolution_times_a_few(
    isa: str, m: int, worst: float, mean: float, channels: int
) -> None:
    """The bounds of convolutions without groups."""
    case = Case(1, 4 * channels, 4 * channels, (20, 20), groups=4)
    cut = WinogradCut(m, 1, 6, channels // (8 if isa == "avx2" else 16), 2)
    check_errors(case, planned(case, isa, cut), isa, worst, mean)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize(("dims", "panel"), [((3, 21, 7, 3, 3), 16), ((5, 8, 4, 3, 3), 8), ((1, 20, 3, 3, 3), 24)])
def test_a_reorder_transforms_weights(isa: str, m: int, dims: tuple[int, ...], panel: int) -> None:
    weights = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    desc = WinogradDesc(dims, dnn.f32, m, panel)
    assert str(desc).endswith(f"winograd{m}:aBdec{panel}b")
    made = dnn.reorder(dnn.Memory.from_array(weights), desc)
    wanted = dnn.Memory.from_numpy(weights, desc)
    np.testing.assert_array_equal(made.array.view(np.uint32), wanted.array.view(np.uint32))
    assert made.padding_is_zero()
    dnn.primitive_desc(dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "goihw"), desc)).plan.check()
    for group in range(dims[0]):
        alone = dnn.reorder(dnn.Memory.from_array(weights[group]), WinogradDesc(dims[1:], dnn.f32, m, panel))
        assert np.array_equal(made.array.reshape(dims[0], -1)[group], alone.array.ravel())


@pytest.mark.parametrize("groups", [3, 4])
def test_packed_weights_serve_images_of_other_sizes(isa: str, groups: int) -> None:
    random, each = np.random.default_rng(2), 48 // groups - 4 * (groups == 3)
    w = random.standard_normal((groups * each, each, 3, 3)).astype(np.float32)
    options = {"padding": 1, "groups": groups}
    packed = dnn.ops.pack_conv_weights(w, (1, groups * each, 20, 20), algorithm="winograd", **options)
    assert isinstance(packed.desc, WinogradDesc)
    for size in (1, 5, 20, 33):
        x = random.standard_normal((2, groups * each, size, size)).astype(np.float32)
        for y in (
            dnn.ops.conv2d(x, packed, **options),
            dnn.ops.conv2d(x, w, algorithm="winograd", **options),
            dnn.ops.conv2d(x, w, algorithm="auto", **options),
        ):
            np.testing.assert_allclose(y, dnn.ops.conv2d(x, w, **options), atol=1e-4)


@pytest.mark.parametrize(
    ("groups", "channels", "size", "implementation"),
    [
        (32, 128, 56, "grouped"),
        (32, 512, 14, "winograd"),
        (32, 1024, 7, "winograd"),
        (4, 192, 28, "winograd"),
        (128, 128, 28, "depthwise"),
    ],
)
def test_auto_takes_what_is_expected_to_be_faster(groups: int, channels: int, size: int, implementation: str) -> None:
    case = Case(1, channels, channels, (size, size), groups=groups)
    assert dnn.primitive_desc(case.desc("auto"), engine=ENGINE).implementation == f"{implementation}:avx2"
    assert "winograd" not in dnn.primitive_desc(case.desc("direct"), engine=ENGINE).implementation


def test_plain_weights_and_channels_apart(isa: str) -> None:
    plain = dnn.MemoryDesc(WHOLE.weights_dims, dnn.f32, "abcde")
    case = replace(WHOLE, tags=("abcd", "abcd"))
    pd = dnn.primitive_desc(case.desc(weights=plain), engine=dnn.Engine(isa=isa, threads=2))
    assert pd.implementation == f"pack+reorder+winograd:{isa}"
    pd.plan.check()
    check(pd, case, 4)
