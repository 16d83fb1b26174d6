"""Convolutions of few channels by tiles of AMX, emulated: products of windows that are copied to rows of a matrix."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.taps import sums_of
from asmdnn.generators.move.im2col import MOST_LINES
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.planning.of_classes import tuning_of
from asmdnn.planning.tuning import DEFAULT
from asmdnn.records import replace
from asmdnn.types import DataType
from tests.primitives.test_amx_conv import BF16, EMULATED, ISA, S8, U8
from tests.primitives.test_amx_rasters import DEAR_CALLS, bound_of
from tests.primitives.typed_conv import HALF_ULP, TypedConv, by_channel, computed, rounded
from tests.support.plans import proved_desc

# Steps of tiles are what counts, and calls of vectors.
FEW_STEPS = {"amx_step_cycles": 1e3, "im2col_load_cycles": 1e-9, "im2col_store_cycles": 1e-9}
STEPS = replace(DEAR_CALLS, products=replace(DEAR_CALLS.products, **FEW_STEPS))  # type: ignore[arg-type]
NAME = f"direct+raster+im2col+amx+tiles:{ISA}"
WHERE_IT_LIES = NAME.replace("raster+", "")
LAST, PLANES = ("axb", "any", "axb"), ("abx", "abx", "abx")
TEXTS = {
    "three channels, stride 2": ("mb2ic3ih15iw17oc20oh8ow9kh7kw7ph3pw3sh2sw2", LAST, NAME),
    "planes, plain weights": ("mb1ic3ih9oc40oh9kh3ph1", PLANES, f"reorder+{NAME}"),
    "an even run": ("mb1ic3ih12oc34oh6kh6sh2ph2", LAST, NAME),
    "patches": ("mb2ic3ih24oc20oh3kh8sh8ph0", LAST, WHERE_IT_LIES),
    "one channel, rows of one pixel": ("mb1ic1ih9iw5oc16oh5ow1kh5kw5ph0pw0", LAST, WHERE_IT_LIES),
    "four channels": ("mb1ic4ih8iw21oc33oh8ow21kh3kw3ph1pw1", LAST, NAME),
    "rows apart": ("mb1ic3ih12iw12oc16oh10ow12kh3kw3ph1pw1dh1dw0", LAST, NAME),
    "three axes": ("mb2ic3id4ih6iw7oc18od4oh3ow7kd3kh3kw3pd1ph1pw1sd1sh2sw1", LAST, NAME),
    "padding on one side": ("mb1ic3ih7oc16oh4kh2sh2ph0", LAST, NAME),
    "wider than a line": ("mb1ic6ih5iw30oc17oh3ow6kh3kw13ph0pw0sh1sw3", LAST, WHERE_IT_LIES),
}
CASES = pytest.mark.parametrize("shape", TEXTS)


def planned(case: TypedConv, **fields: Any) -> dnn.PrimitiveDesc:
    place = {"threads": 1, "l2_bytes": 512 << 10, **fields}
    return proved_desc(case.desc(), case.attr, dnn.Engine(isa=ISA, machine="zen3", tuning=STEPS, **place))


@EMULATED
@CASES
@pytest.mark.parametrize("types", [BF16, U8, S8], ids=lambda types: str(types[0]))
def test_sums(shape: str, types: tuple[DataType, DataType, DataType]) -> None:
    """After a bias; of bytes exactly."""
    text, tags, name = TEXTS[shape]
    case = TypedConv(text, types, types[2], tags)
    pd, data = planned(case), case.data()
    assert pd.implementation == name, pd.refusals
    assert isinstance(pd.weights_desc, KernelRowsDesc) is (tags[1] == "any")
    wanted = sums_of(case.problem, data["src"], data["weights"]) + by_channel(case.problem, data["bias"])
    bound = bound_of(case, data) if types == BF16 else 0
    assert (
        np.abs(computed(pd, data, emulated=True) - wanted) <= bound + np.abs(wanted) * HALF_ULP.get(types[2], 0)
    ).all()


@EMULATED
@pytest.mark.parametrize("width", [3, 5, 6])
def test_nothing_beside_a_window_is_multiplied(width: int) -> None:
    """A pixel that is infinite makes no result but those of its windows infinite, or not a number."""
    case = TypedConv(f"mb1ic3ih5iw17oc16oh5ow{19 - width}kh3kw{width}ph1pw1", BF16, tags=LAST)
    data, pd = case.data(), planned(case)
    assert pd.implementation == NAME
    finite = computed(pd, data, emulated=True)
    for x in (0, 8, 16):
        spoiled = data["src"].copy()
        spoiled[:, :, 2, x] = np.inf
        found = computed(pd, {**data, "src": spoiled}, emulated=True)
        reached = np.zeros(found.shape[2:], bool)
        reached[1:4, max(0, x + 1 - width + 1) : x + 2] = True
        assert not np.isfinite(found[..., reached]).any()
        assert np.array_equal(found[..., ~reached], finite[..., ~reached])


@EMULATED
@CASES
def test_scales_and_post_ops(shape: str) -> None:
    """Scales of channels, a bias after them, what dst held, relu: rounded once and saturated."""
    text, tags, _ = TEXTS[shape]
    attr = dnn.Attr(
        [dnn.Sum(2.0), dnn.Eltwise("relu")], scales={"src": 0, "weights": 1, "dst": 0}, zero_points={"dst": 0}
    )
    case = TypedConv(text, (dnn.u8, dnn.s8, dnn.u8), dnn.s32, tags, attr)
    p, data, random = case.problem, case.data(), np.random.default_rng(1)
    data["src_scales"], data["dst_scales"] = np.array([2.0**-7]), np.array([2.0**5])
    data["weights_scales"] = 2.0 ** random.integers(-4, 0, p.oc)
    data["dst_zero_points"], data["dst"] = np.array([3]), random.integers(0, 50, p.dst_dims)
    pd = planned(case)
    assert "im2col+amx" in pd.implementation, pd.refusals
    sums = sums_of(p, data["src"], data["weights"]) * 2.0**-7 * by_channel(p, data["weights_scales"])
    wanted = np.maximum(sums + by_channel(p, data["bias"]) + 2 * data["dst"], 0) / 2.0**5 + 3
    assert np.array_equal(computed(pd, data, emulated=True), rounded(wanted, dnn.u8))


@EMULATED
@pytest.mark.parametrize(
    "dims", [(1, 40, 1, 1), (3, 40, 7, 5), (1, 1, 1, 1), (3, 40, 1, 1), (1, 1, 7, 5), (3, 1, 1, 5), (1, 1, 7, 1)]
)
@pytest.mark.parametrize(("threads", "l2_bytes"), [(1, 512 << 10), (2, 2560), (4, 6 << 10)])
def test_tensors_of_post_ops(dims: tuple[int, ...], threads: int, l2_bytes: int) -> None:
    """Strips of all rows, and of some with a rest."""
    attr = dnn.Attr([dnn.Binary("add", dnn.MemoryDesc(dims, dnn.s32, "abcd"))])
    case = TypedConv("mb3ic3ih7iw5oc40oh7ow5kh3kw3ph1pw1", U8, dnn.s32, LAST, attr)
    data, pd = case.data(), planned(case, threads=threads, l2_bytes=l2_bytes)
    assert NAME in pd.implementation, pd.refusals
    data["binary_0"] = np.random.default_rng(2).integers(-9, 9, dims)
    wanted = sums_of(case.problem, data["src"], data["weights"]) + by_channel(case.problem, data["bias"])
    assert np.array_equal(computed(pd, data, emulated=True), wanted + data["binary_0"])


@EMULATED
@pytest.mark.parametrize("threads", [1, 2])
def test_images_one_by_one(threads: int) -> None:
    """Where the copies of all leave L2: each thread has one of its own, and its windows.  With a post-op, which the
    kernels of strips have, in a part of an image, in a part of a thread."""
    case = TypedConv("mb4ic3ih40oc16oh20kh3sh2ph1", U8, dnn.s32, LAST, attr=dnn.Attr([dnn.Eltwise("relu")]))
    data, pd = case.data(), planned(case, threads=threads, l2_bytes=16 << 10)
    assert pd.implementation == NAME, pd.refusals
    assert len(pd.plan.per_part) > 1
    wanted = sums_of(case.problem, data["src"], data["weights"]) + by_channel(case.problem, data["bias"])
    assert np.array_equal(computed(pd, data, emulated=True), np.maximum(wanted, 0))


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("mb1ic3iw40oc32ow38kw3pw0", {}),
        ("g2mb1ic32ih9oc32oh9kh3ph1", {}),
        ("mb1ic3ih9oc32oh9kh3ph2dh1", {}),
        ("mb1ic3ih9oc32oh9kh3ph1", {"attr": dnn.Attr(zero_points={"src": 0})}),
        (f"mb1ic64ih{MOST_LINES + 2}iw3oc32oh2ow1kh{MOST_LINES + 1}kw3ph0pw0", {}),
    ],
    ids=["one axis", "groups", "positions apart", "a zero point of src", "very many lines"],
)
def test_others_are_rows_of_pixels(text: str, fields: dict[str, Any]) -> None:
    pd = planned(TypedConv(text, U8, **fields))
    assert "amx" in pd.implementation and "im2col" not in pd.implementation


@pytest.mark.parametrize(
    ("text", "types", "wins"),
    [
        ("mb1ic3ih224oc64oh112kh7sh2ph3", BF16, True),
        ("mb1ic3ih224oc64oh112kh7sh2ph3", U8, True),
        ("mb1ic3ih224oc32oh112kh3sh2ph1", BF16, True),
        ("mb1ic3ih224oc384oh14kh16sh16ph0", U8, True),
        ("mb1ic64ih56oc64oh56kh3ph1", BF16, False),
        ("mb1ic64ih56oc64oh56kh3ph1", U8, False),
    ],
)
def test_they_are_taken_where_they_are_expected_to_be_faster(
    text: str, types: tuple[DataType, DataType, DataType], wins: bool
) -> None:
    """Than rows of pixels."""
    engine = dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids", tuning=tuning_of("sapphire_rapids", ISA))
    pd = proved_desc(TypedConv(text, types).desc(), dnn.Attr(), engine)
    assert "amx" in pd.implementation and ("im2col" in pd.implementation) is wins, pd.refusals


def test_weights_that_pairs_of_vectors_read() -> None:
    """Are those that tiles read."""
    case = TypedConv("mb1ic3ih9oc20oh9kh3ph1", BF16)
    pairs = dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen4", tuning=DEFAULT)
    packed = dnn.primitive_desc(case.desc(), engine=pairs).weights_desc
    assert isinstance(packed, KernelRowsDesc)
    desc = case.desc().with_formats({"weights": packed})
    pd = proved_desc(desc, case.attr, dnn.Engine(isa=ISA, threads=1, machine="zen3", tuning=STEPS))
    assert pd.implementation == NAME and pd.weights_desc == packed
