"""Winograd's convolution: every cut, edge, layout and end against float64, within the bound of its roundings."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.winograd.products import ProductsTransformSpec
from asmdnn.generators.winograd.source import SourceTransformSpec
from asmdnn.memory.winograd import WinogradDesc
from asmdnn.planning.codec import decode_plan, encode_plan
from asmdnn.primitives.convolution.winograd import plan
from asmdnn.primitives.convolution.winograd.cut import WinogradCut
from tests.primitives.winograd_case import (
    Case,
    check,
    check_errors,
    check_guarded,
    memories_of,
    name_of,
    panels_of,
    planned,
)
from tests.support import functions

SMALL = Case(2, 19, 21, (9, 6))
CUTS = [
    WinogradCut(m, vectors, block, panels)
    for m in (2, 4)
    for vectors in (1, 2, 3)
    for block, panels in ((0, 0), (5, 1), (7, 0))
]
EDGES = [
    Case(1, 8, 8, (5, 5)), Case(1, 3, 40, (60, 7), (0, 0, 0, 0)), Case(8, 33, 16, (7, 13), (1, 0, 0, 1)),
    Case(2, 16, 9, (3, 3), (0, 2, 1, 0)), Case(1, 24, 24, (1, 17), (2, 1, 2, 1)), Case(1, 8, 16, (6, 6), (7, 0, 9, 5)),
]  # fmt: skip
LAYOUTS = [("acdb", "acdb"), ("aBcd8b", "acdb"), ("acdb", "aBcd16b"), ("abcd", "abcd")]


def with_all_panels(case: Case, isa: str, cut: WinogradCut) -> WinogradCut:
    return cut if cut.panels else replace(cut, panels=panels_of(case, isa, cut.vectors))


@pytest.mark.parametrize("cut", CUTS, ids=name_of)
def test_cuts(isa: str, cut: WinogradCut) -> None:
    cut = with_all_panels(SMALL, isa, cut)
    check(planned(SMALL, isa, cut, threads=2), SMALL, cut.m)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("cut", [WinogradCut(2, 1, 0, 2), WinogradCut(4, 2, 3, 1)], ids=name_of)
def test_cuts_emulated(cut: WinogradCut) -> None:
    case = Case(1, 3, 21, (5, 6), tags=("acdb", "any"))
    check(planned(case, "avx512_core", cut), case, cut.m, emulated=True)


@pytest.mark.parametrize("cut", CUTS, ids=name_of)
def test_plans_of_the_other_level(cut: WinogradCut) -> None:
    case = Case(2, 19, 37, (9, 6), tags=("acdb", "aBcd16b"))
    pd = planned(case, "avx512_core", with_all_panels(case, "avx512_core", cut))
    decoded, _ = decode_plan(encode_plan(pd.plan))
    assert decoded.tensors == pd.plan.tensors


def test_transforms_serve_further_batches(planned_isa: str) -> None:
    """In phases, whatever a batch has of tiles and register blocks, its transforms are those of the first one."""
    transforms = set[object]()
    for images in (2, 3, 5, 8):
        pd = planned(replace(SMALL, mb=images), planned_isa, WinogradCut(4, 2, 0, 2))
        found = {x for x in pd.plan.specs if isinstance(x, SourceTransformSpec | ProductsTransformSpec)}
        transforms = transforms or found
        assert found == transforms and len(pd.plan.specs) > len(found)


@pytest.mark.parametrize("case", EDGES, ids=name_of)
@pytest.mark.parametrize("m", [2, 4])
def test_edges(isa: str, case: Case, m: int) -> None:
    check(planned(case, isa, WinogradCut(m, 1, 4, 1)), case, m)


@pytest.mark.parametrize("tags", LAYOUTS, ids=name_of)
def test_layouts(isa: str, tags: tuple[str, str]) -> None:
    case = replace(SMALL, tags=tags, bias=False)
    pd = dnn.primitive_desc(case.desc(), engine=dnn.Engine(isa=isa, threads=2, machine="zen3"))
    lanes = {"avx2": 8, "avx512_core": 16}[isa]
    direct = all(tag == "acdb" or tag == f"aBcd{lanes}b" for tag in tags)
    assert pd.implementation == f"{'' if direct else 'reorder+'}winograd:{isa}"
    pd.plan.check()
    assert isinstance(pd.weights_desc, WinogradDesc)
    check(pd, case, pd.weights_desc.m)


@pytest.mark.parametrize("tag", ["abcd", "dcba", "Ab8a"])
def test_plain_weights_are_transformed_in_front(isa: str, tag: str) -> None:
    plain = dnn.MemoryDesc(SMALL.weights_dims, dnn.f32, "Abcd8a" if tag == "Ab8a" else tag)
    for tags in (("any", "any"), ("abcd", "abcd")):
        case = replace(SMALL, tags=tags)
        pd = dnn.primitive_desc(case.desc(weights=plain), engine=dnn.Engine(isa=isa, threads=2, machine="zen3"))
        assert pd.implementation == f"pack+{'reorder+' * (tags[0] == 'abcd')}winograd:{isa}"
        pd.plan.check()
        check(pd, case, 4)


@pytest.mark.parametrize("tag", ["any", "acdb"])
@pytest.mark.parametrize(
    "cut",
    [WinogradCut(2, 2, 0, 0), WinogradCut(4, 1, 5, 1), WinogradCut(4, 3, 5, 1), WinogradCut(2, 3, 7, 1)],
    ids=name_of,
)
def test_post_ops(isa: str, tag: str, cut: WinogradCut) -> None:
    """Of every kind, with tensors of every broadcast, some of which have to be copied."""
    case = replace(SMALL, oc=21 * cut.vectors, tags=(tag, tag))
    arrays, oc, cols = case.arrays(), case.oc, case.dst_dims[3]
    shapes = {
        "binary_1": (1, oc, 1, 1),
        "binary_3": case.dst_dims,
        "prelu_4": (1, 1, 1, 1),
        "binary_5": (1, 1, 1, cols),
    }
    arrays |= {
        n: np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, (n, s) in enumerate(shapes.items())
    }
    md = {name: dnn.MemoryDesc(shape, dnn.f32, "abcd") for name, shape in shapes.items()}
    attr = dnn.Attr([
        dnn.Eltwise("gelu_erf"), dnn.Binary("mul", md["binary_1"]), dnn.Sum(0.5), dnn.Binary("add", md["binary_3"]),
        dnn.PReLU(md["prelu_4"]), dnn.Binary("max", md["binary_5"]),
    ])  # fmt: skip
    pd = planned(case, isa, with_all_panels(case, isa, cut), attr)
    memories = {name: dnn.Memory.from_numpy(arrays[name], desc) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    x = functions.forward("gelu_erf", case.sums(arrays)) * arrays["binary_1"] + 0.5 * arrays["dst"] + arrays["binary_3"]
    wanted = np.maximum(np.where(x > 0, x, x * arrays["prelu_4"]), arrays["binary_5"])
    np.testing.assert_allclose(memories["dst"].numpy(), wanted, 1e-4, 1e-4)


@pytest.mark.parametrize("vectors", [1, 2, 3])
@pytest.mark.parametrize("panels", [1, 2, 3])
def test_operands_do_not_take_channels_of_the_next_panels(planned_isa: str, vectors: int, panels: int) -> None:
    """Transforms of products take two vectors at a time for operands' sake, which three do not divide into."""
    for m, oc in ((2, 150), (4, 99)):
        case = replace(SMALL, oc=oc)
        planned(case, planned_isa, WinogradCut(m, vectors, 5, panels), dnn.Attr([dnn.Sum()], scales={"weights": 1}))


def test_scales(isa: str) -> None:
    arrays = SMALL.arrays() | {
        "src_scales": np.float32([0.5]),
        "weights_scales": np.linspace(1, 2, 21, dtype=np.float32),
    }
    pd = planned(SMALL, isa, WinogradCut(4, 1, 6, 1), dnn.Attr(scales={"src": 0, "weights": 1}))
    memories = {name: dnn.Memory.from_numpy(arrays[name], desc) for name, desc in pd.plan.tensors.items()}
    dnn.Primitive(pd).execute(**memories)
    bias = arrays["bias"].astype(np.float64)[:, None, None]
    wanted = (SMALL.sums(arrays) - bias) * 0.5 * arrays["weights_scales"][:, None, None] + bias
    np.testing.assert_allclose(memories["dst"].numpy(), wanted, 1e-4, 1e-4)


def test_many_images_are_rounds(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(7, 9, 11, (13, 10))
    monkeypatch.setattr(plan, "images_of_rounds", lambda *_: (2, 3))
    pd = planned(case, isa, WinogradCut(4, 1, 4, 2), threads=2)
    assert [phase.rounds for phase in pd.plan.phases] == [3, 1]
    check(pd, case, 4)


@pytest.mark.parametrize("block", [0, 6])
def test_threads_agree_in_every_bit(isa: str, block: int) -> None:
    case = Case(2, 40, 48, (23, 17))
    results = []
    for threads in (1, 2, 3, 5):
        memories = memories_of(pd := planned(case, isa, WinogradCut(4, 2, block, 3), threads=threads), case.arrays())
        dnn.Primitive(pd).execute(**memories)
        results.append(memories["dst"].array.view(np.uint32))
    assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.parametrize("tags", [("any", "any"), ("acdb", "acdb")], ids=name_of)
@pytest.mark.parametrize("case", [SMALL, Case(1, 8, 24, (4, 60), (0, 1, 2, 0))], ids=name_of)
def test_nothing_outside_of_tensors_is_touched(isa: str, case: Case, tags: tuple[str, str]) -> None:
    case = replace(case, tags=tags)
    pd = planned(case, isa, WinogradCut(4, 1, 4, 1))
    check_guarded(pd, case, 4)


@pytest.mark.parametrize(("m", "worst", "mean"), [(2, 1.0, 1.2), (4, 3.5, 3.2)])
@pytest.mark.parametrize("channels", [16, 64, 256])
def test_errors_are_those_of_direct_convolution_times_a_few(
    isa: str, m: int, worst: float, mean: float, channels: int
) -> None:
    """What the documentation states, on normal data: the largest error and the mean one, as multiples of direct's."""
    case = Case(1, channels, 16, (20, 20))
    check_errors(case, planned(case, isa, WinogradCut(m, 1, 6, 1)), isa, worst, mean)


def test_special_values_spread_over_their_tiles(isa: str) -> None:
    """An infinity of src makes NaN of results that direct convolution computes; further away nothing changes."""
    case = Case(1, 8, 8, (16, 16))
    pd, arrays = planned(case, isa, WinogradCut(4, 1, 6, 1)), case.arrays()
    arrays["src"][0, 3, 5, 6] = np.inf
    memories = memories_of(pd, arrays)
    dnn.Primitive(pd).execute(**memories)
    finite = np.isfinite(memories["dst"].numpy()[0])
    assert not finite[:, 4:7, 4:8].any()
    assert finite[:, 8:].all()
    assert finite[:, :, 8:].all()


def test_integers_are_for_others() -> None:
    """Where the algorithm is free, another one takes them."""
    dims = ((1, 64, 56, 56), dnn.u8), ((64, 64, 3, 3), dnn.s8), ((1, 64, 56, 56), dnn.u8)
    src, wei, dst = (dnn.MemoryDesc(shape, of, "any") for shape, of in dims)
    desc = dnn.ConvolutionForward(
        src, wei, dst, padding_l=(1, 1), padding_r=(1, 1), algorithm=dnn.Algorithm.convolution_auto
    )
    found = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1)).implementation
    assert found.endswith("direct:avx2")
