"""Convolutions of f16 whose sums may be f16: who gets them, results of whole plans on an emulated CPU, and why not."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.isa.dot import F16
from asmdnn.isa.dot_runs import RUN_GROUPS
from asmdnn.isa.levels import isa_of
from asmdnn.types import AccumulationMode
from tests.primitives.test_amx_rasters import TypedDeconv
from tests.primitives.typed_conv import HALF_ULP, UNIT_ROUNDOFF, TypedConv, by_channel, computed
from tests.support.plans import emulate_plan, proved_desc

LEVEL = "avx512_core_fp16"
LEVELS = pytest.mark.parametrize("level", [LEVEL, "avx512_core_amx"])
HALVES, SINGLE = (dnn.f16, dnn.f16, dnn.f16), (dnn.f16, dnn.f16, dnn.f32)
HALF_STEP, DENORMAL = HALF_ULP[dnn.f16], 2.0**-24
OPEN, PLAIN, PLANAR = ("any",) * 3, ("axb", "abx", "axb"), ("abx", "abx", "abx")
TEXTS = {
    "1x1": "mb2ic70ih5iw4oc40oh5ow4kh1kw1ph0pw0",
    "padding": "mb1ic24ih6oc33oh6kh3ph1",
    "an odd number of channels": "mb1ic19ih5oc17oh5kh3ph1",
    "three channels, strides": "mb1ic3ih11oc20oh6kh5sh2ph2",
    "one channel": "mb1ic1ih6oc17oh6kh3ph1",
    "positions apart": "mb1ic12ih8oc16oh8kh3dh1ph2",
    "dense groups": "g2mb1ic40ih4oc34oh4kh3ph1",
    "several runs": "mb1ic150ih3oc16oh3kh3ph1",
    "runs that end where edges begin": "mb1ic144ih2iw9oc48oh2ow9kh3kw3ph1pw1",
    "three axes": "mb1ic6id3ih3iw4oc18od3oh3ow4kd3kh3kw3pd1ph1pw1",
    "one axis": "mb2ic24iw20oc17ow18kw5pw1",
    "pixels that no position reaches": "mb1ic16ih4oc16oh6kh1ph1",
}
DECONVOLUTIONS = {
    "stride 1": "mb1ic20ih4oc17oh4kh3ph1",
    "parts of one position": "mb1ic20ih3oc34oh6kh2sh2ph0",
    "parts of different sizes": "mb1ic150ih3oc16oh6kh3sh2ph1",
    "dense groups": "g2mb1ic20ih3oc34oh7kh4sh2ph0",
}


def engine(level: str = LEVEL, **more: Any) -> dnn.Engine:
    return dnn.Engine(isa=isa_of(level).name, threads=1, machine="sapphire_rapids", **more)


def planned(case: TypedConv, level: str = LEVEL) -> dnn.PrimitiveDesc:
    return proved_desc(case.desc(), case.attr, engine(level))


def attr(mode: AccumulationMode = "f16", **more: Any) -> dnn.Attr:
    return dnn.Attr(accumulation_mode=mode, **more)


def sums_f16(pd: dnn.PrimitiveDesc) -> bool:
    """Whether all tiles do so."""
    tiles = [spec.types for spec in pd.plan.specs if isinstance(spec, ConvTileSpec)]
    return F16 in tiles and {*tiles} <= {F16}


def bound_of(case: TypedConv, data: dict[str, Any]) -> Any:
    """Of runs of pairs, whose sums are half a step off, or half a denormal; then of sums in f32, with a bias."""
    depth = case.problem.reduction
    size = sums_of(case.problem, np.abs(data["src"]), np.abs(data["weights"]))
    terms, f32_terms = min(depth, RUN_GROUPS), (depth + 2) * UNIT_ROUNDOFF
    of_runs = size * (terms + 1) * HALF_STEP / (1 - terms * HALF_STEP) + depth * DENORMAL
    return of_runs + (size + np.abs(by_channel(case.problem, data.get("bias", np.zeros(1))))) * f32_terms


def check(case: TypedConv) -> dnn.PrimitiveDesc:
    """The sums, after a bias if there is one, and relu."""
    pd, data = planned(case), case.data()
    assert sums_f16(pd), pd.refusals
    added = by_channel(case.problem, data.get("bias", np.zeros(1)))
    wanted = sums_of(case.problem, data["src"], data["weights"]) + added
    if case.attr.post_ops:
        wanted = np.maximum(wanted, 0)
    bound = bound_of(case, data)
    bound = bound + (np.abs(wanted) + bound) * HALF_ULP[case.types[2]] + DENORMAL
    assert (np.abs(computed(pd, data, emulated=True) - wanted) <= bound).all()
    return pd


@pytest.mark.parametrize(("mode", "is_f16"), [
    ("strict", False), ("relaxed", False), ("f32", False), ("any", True), ("f16", True),
])  # fmt: skip
@LEVELS
def test_who_gets_them(mode: AccumulationMode, is_f16: bool, level: str) -> None:
    """Of open formats, of plain tensors, and of weights in pairs."""
    for tags in (OPEN, PLAIN, PLANAR, ("axb", "ABcd8b32a2b", "axb")):
        case = TypedConv("mb1ic64ih28oc64oh28kh3ph1", HALVES, tags=tags, attr=attr(mode))
        if is_f16 or tags[1] != "ABcd8b32a2b":
            assert sums_f16(planned(case, level)) == is_f16
    deconvolution = TypedDeconv("mb1ic64ih14oc64oh28kh4sh2ph1", HALVES, attr=attr(mode))
    assert sums_f16(planned(deconvolution, level)) == is_f16


@pytest.mark.parametrize("isa", ["avx2", "avx512_core", "avx512_core_bf16"])
def test_levels_without_them(isa: str) -> None:
    text = "mb1ic64ih14oc64oh14kh3ph1"
    strict, free = (planned(TypedConv(text, HALVES, attr=attr(mode)), isa) for mode in ("strict", "any"))
    assert strict.plan.specs == free.plan.specs
    with pytest.raises(dnn.Unimplemented, match="accumulation_mode is f16, but sums are f32 here: use any"):
        planned(TypedConv(text, HALVES, attr=attr()), isa)


def test_other_types_have_none() -> None:
    for types in ((dnn.bf16, dnn.bf16, dnn.f32), (dnn.f32, dnn.f32, dnn.f32)):
        with pytest.raises(dnn.Unimplemented, match="accumulation_mode is f16, but sums are f32 here: use any"):
            planned(TypedConv("mb1ic64ih14oc64oh14kh3ph1", types, attr=attr()))


def test_any_takes_what_is_expected_to_be_faster() -> None:
    """A sum of one pair is over before its end; depthwise layers and planar dst of few channels have kernels that are
    faster in f32; who asks for f16 gets it."""
    for text, tags in (
        ("mb1ic2ih30oc64oh30kh1ph0", OPEN),
        ("g32mb1ic32ih28oc32oh28kh3ph1", OPEN),
        ("mb1ic16ih20oc4oh20kh3ph1", PLANAR),
    ):
        pd = planned(TypedConv(text, HALVES, tags=tags, attr=attr("any")))
        assert not sums_f16(pd)
        assert any("cycles are expected with sums of f16" in str(refusal) for refusal in pd.refusals)
        assert sums_f16(planned(TypedConv(text, HALVES, tags=tags, attr=attr("f16"))))


def test_weights_that_were_packed_for_sums_of_f32() -> None:
    """They stay so where few pixels would wait for a copy in every call."""
    for text, is_f16 in (("mb1ic512ih7oc512oh7kh3ph1", False), ("mb1ic64ih28oc64oh28kh3ph1", True)):
        packed = planned(TypedConv(text, HALVES)).weights_desc
        assert packed is not None
        case = TypedConv(text, HALVES, tags=("any", str(packed.tag), "any"), attr=attr("any"))
        assert sums_f16(planned(case)) == is_f16


def test_batches_with_equal_bits_are_summed_in_f32() -> None:
    case = TypedConv("mb2ic64ih14oc64oh14kh3ph1", HALVES, attr=attr("any", deterministic="batch"))
    assert not sums_f16(planned(case))
    with pytest.raises(dnn.Unimplemented, match="accumulation_mode is f16, but sums are f32 here: use any"):
        planned(TypedConv(case.text, HALVES, attr=attr("f16", deterministic="batch")))


@pytest.mark.emulated(LEVEL)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(("tags", "types"), [(OPEN, SINGLE), (PLAIN, HALVES)], ids=["open", "plain"])
def test_sums(text: str, tags: tuple[str, str, str], types: tuple[dnn.DataType, dnn.DataType, dnn.DataType]) -> None:
    """After a bias and relu, in f32 and rounded to f16."""
    check(TypedConv(text, types, types[2], tags, attr(post_ops=["relu"])))


@pytest.mark.emulated(LEVEL)
@pytest.mark.parametrize("text", DECONVOLUTIONS.values(), ids=DECONVOLUTIONS)
def test_deconvolutions(text: str) -> None:
    check(TypedDeconv(text, SINGLE, dnn.f32, attr=attr()))


@pytest.mark.emulated(LEVEL)
def test_between_reorders() -> None:
    """From planes, whose channels lie apart; a cut group of the last channel alone."""
    pd = check(TypedConv("mb1ic35ih5oc17oh5kh3ph1", HALVES, tags=PLANAR, attr=attr()))
    assert pd.implementation == f"pack+reorder+direct:{LEVEL}"


ROWS = {  # of the kernel: problem, formats, who takes it
    "7x7 of stride 2": ("mb1ic3ih12oc33oh6kh7sh2ph3", OPEN, "kernel_rows"),
    "one channel": ("mb1ic1ih6oc16oh6kh5ph2", OPEN, "kernel_rows"),
    "five channels": ("mb1ic5ih4iw9oc7oh3ow9kh2kw3ph0pw1", PLAIN, "pack+kernel_rows"),
    "planes": ("mb1ic3ih6oc24oh6kh3ph1", PLANAR, "pack+reorder+kernel_rows"),
    "a long filter": ("mb1ic1iw300oc20ow5kw270sw7", OPEN, "kernel_rows"),
}


@pytest.mark.emulated(LEVEL)
@pytest.mark.parametrize(("text", "tags", "name"), ROWS.values(), ids=ROWS)
def test_pairs_along_a_row_of_the_kernel(text: str, tags: tuple[str, str, str], name: str) -> None:
    case = TypedConv(text, HALVES, dnn.f16, tags, attr())
    assert check(case).implementation == f"{name}:{LEVEL}"
    assert "kernel_rows" not in planned(TypedConv(text, HALVES, dnn.f16, tags)).implementation


@pytest.mark.emulated(LEVEL)
def test_nothing_beside_a_window_is_multiplied() -> None:
    """A pixel that is infinite makes no result but those of its windows infinite, or not a number."""
    case = TypedConv("mb1ic3ih3iw17oc16oh3ow17kh3kw3ph1pw1", SINGLE, tags=("axb", "any", "axb"), attr=attr())
    data, pd = case.data(), planned(case)
    finite = computed(pd, data, emulated=True)
    for x in (0, 7, 16):
        spoiled = data["src"].copy()
        spoiled[:, :, 1, x] = np.inf
        found = computed(pd, {**data, "src": spoiled}, emulated=True)
        reached = np.abs(np.arange(17) - x) <= 1
        assert not np.isfinite(found[..., reached]).any()
        assert np.array_equal(found[..., ~reached], finite[..., ~reached])


@pytest.mark.emulated(LEVEL)
@pytest.mark.parametrize("name", ["src", "weights", "dst"])
def test_scales_come_in_f32(name: str) -> None:
    case = TypedConv("mb1ic20ih4oc18oh4kh3ph1", SINGLE, attr=attr(scales={name: 0}))
    pd, data = planned(case), case.data()
    assert sums_f16(pd)
    wanted = sums_of(case.problem, data["src"], data["weights"])
    bound = bound_of(case, data) + np.abs(wanted) * 2 * UNIT_ROUNDOFF
    factor = 1 / 3 if name == "dst" else 3
    found = computed(pd, data | {f"{name}_scales": np.full(1, 3.0)}, emulated=True)
    assert (np.abs(found - factor * wanted) <= factor * bound).all()


@pytest.mark.emulated(LEVEL)
def test_gradients_of_data() -> None:
    """Of a convolution with strides: parts, as of a deconvolution."""
    dims = {"diff_src": (1, 17, 6, 6), "weights": (34, 17, 3, 3), "diff_dst": (1, 34, 3, 3)}
    diff_src, weights, diff_dst = (dnn.MemoryDesc(size, dnn.f16, "any") for size in dims.values())
    window: dict[str, Any] = {"strides": (2, 2), "padding_l": (1, 1), "padding_r": (0, 0)}
    desc = dnn.ConvolutionBackwardData(diff_src, weights, diff_dst, **window)
    pd = proved_desc(desc, attr(), engine())
    assert sums_f16(pd)
    random = np.random.default_rng(3)
    arrays = {n: random.integers(-3, 3, dims[n], endpoint=True).astype(np.float16) for n in ("weights", "diff_dst")}
    memories = {name: dnn.Memory.from_numpy(array, pd.plan.tensors[name]) for name, array in arrays.items()}
    memories["diff_src"] = dnn.Memory(pd.plan.tensors["diff_src"])
    emulate_plan(pd.plan, memories)
    wanted = np.zeros((17, 9, 9))
    for y, x in np.ndindex(3, 3):  # pixels of diff_dst; sums of small integers are exact
        spread = np.einsum("o,oihw->ihw", arrays["diff_dst"][0, :, y, x], arrays["weights"].astype(np.float64))
        wanted[:, 2 * y : 2 * y + 3, 2 * x : 2 * x + 3] += spread
    np.testing.assert_array_equal(memories["diff_src"].numpy()[0].astype(float), wanted[:, 1:7, 1:7])


@pytest.mark.emulated(LEVEL)
@pytest.mark.parametrize(("channels", "factor", "wanted"), [(64, 2048, np.inf), (512, 256, 512 * 9 * 256)])
def test_a_run_overflows_as_f16_and_all_of_them_do_not(channels: int, factor: int, wanted: float) -> None:
    case = TypedConv(f"mb1ic{channels}ih3oc16oh1kh3ph0", SINGLE, attr=attr())
    p = case.problem
    data = {"src": np.ones(p.src_dims), "weights": np.full(p.weights_dims, float(factor)), "dst": np.zeros(p.dst_dims)}
    assert (computed(planned(case), data, emulated=True) == wanted).all()
