"""Convolutions of several positions, strides or groups by tiles of AMX, emulated: products of rows of a raster."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.deconv_problem import parse_deconv_problem
from asmdnn.bench.problems import ConvProblem
from asmdnn.bench.taps import sums_of
from asmdnn.generators.dot.amx import AmxTileSpec
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.planning.of_classes import tuning_of
from asmdnn.planning.tuning import DEFAULT
from asmdnn.records import replace
from asmdnn.types import DataType
from tests.primitives.test_amx_conv import ALWAYS, BF16, EMULATED, ISA, S8, U8
from tests.primitives.test_amx_conv import planned as planned_by
from tests.primitives.typed_conv import (
    HALF_ULP,
    UNIT_ROUNDOFF,
    TypedConv,
    by_channel,
    computed,
    rounded,
)
from tests.support.plans import proved_desc

DEAR_CALLS = replace(  # of vectors: those of tiles are free; windows are left to test_amx_windows.py
    ALWAYS,
    phases=replace(ALWAYS.phases, call_cycles=10**5),
    products=replace(ALWAYS.products, im2col_load_cycles=1e6),
)
NAME = f"direct+raster+amx+tiles:{ISA}"
DIRECT = NAME.replace("raster+", "")
BETWEEN = f"reorder+{NAME}"
TEXTS = {
    "two images, pixels of whole lines": "mb2ic64ih6oc32oh6kh3ph1",
    "three channels, strides": "mb1ic3ih9iw11oc20oh4ow5kh3kw3ph0pw0sh2sw2",
    "more pixels than a tile, an odd number of rows": "mb1ic8ih3iw37oc17oh3ow37kh3kw3ph1pw1",
    "positions apart": "mb1ic20ih8oc33oh8kh3dh1ph2",
    "groups": "g2mb1ic64ih6oc66oh6kh3ph1",
    "channels that are no whole groups, with padding": "mb1ic6ih5oc18oh5kh3ph1",
    "three axes": "mb1ic6id3ih4iw5oc18od3oh4ow5kd3kh3kw3pd1ph1pw1",
    "one axis": "mb2ic24iw40oc17ow38kw5pw1",
    "pixels that no position reaches": "mb1ic16ih4oc16oh6kh1ph1",
    "one row of pixels": "mb1ic16ih5iw20oc16oh1ow20kh5kw3ph0pw1",
    "padding on one side": "mb1ic16ih7oc16oh4kh2sh2ph0",
    "one pixel a row": "mb1ic16ih12iw3oc16oh12ow1kh3kw3ph1pw0",
}
CASES = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


class TypedDeconv(TypedConv):
    """The same of a deconvolution."""

    @property
    def problem(self) -> ConvProblem:
        return parse_deconv_problem(self.text)

    def desc(self) -> dnn.DeconvolutionForward:  # type: ignore[override]
        p, (src, weights, dst) = self.problem, self.types
        tensors = {"src": (p.src_dims, src), "weights": (p.weights_dims, weights), "dst": (p.dst_dims, dst)}
        descs = {n: dnn.MemoryDesc(*x, tag) for (n, x), tag in zip(tensors.items(), self.tags, strict=True)}
        if self.bias:
            descs["bias"] = dnn.MemoryDesc((p.oc,), self.bias, "a")
        window = {name: getattr(p, name) for name in ("strides", "dilations", "padding_l", "padding_r")}
        return dnn.DeconvolutionForward(**descs, **window)


def planned(case: TypedConv) -> dnn.PrimitiveDesc:
    return planned_by(case, DEAR_CALLS)


def bound_of(case: TypedConv, data: dict[str, Any]) -> Any:
    """Of sums in f32: gamma(K) times the sum of sizes."""
    terms = (case.problem.reduction + 2) * UNIT_ROUNDOFF
    size = sums_of(case.problem, np.abs(data["src"]), np.abs(data["weights"]))
    return (size + np.abs(by_channel(case.problem, data.get("bias", np.zeros(1))))) * terms / (1 - terms)


def check(case: TypedConv, name: str = NAME) -> None:
    """The sums, after a bias if there is one; of bytes exactly."""
    pd, data = planned(case), case.data()
    assert pd.implementation == name, pd.refusals
    wanted = sums_of(case.problem, data["src"], data["weights"])
    if case.bias:
        wanted = wanted + by_channel(case.problem, data["bias"])
    bound = 0 if case.types[0] in (dnn.u8, dnn.s8) else bound_of(case, data)
    bound = bound + (np.abs(wanted) + bound) * HALF_ULP.get(case.types[2], 0)
    assert (np.abs(computed(pd, data, emulated=True) - wanted) <= bound).all()


@EMULATED
@CASES
@pytest.mark.parametrize("types", [BF16, U8, S8], ids=lambda types: str(types[0]))
def test_sums(text: str, types: tuple[DataType, DataType, DataType]) -> None:
    check(TypedConv(text, types, types[2]))


DECONVOLUTIONS = {
    "stride 1": "mb2ic64ih6oc32oh6kh3ph1",
    "parts of one position": "mb1ic20ih4oc34oh8kh2sh2ph0",
    "parts of different sizes": "mb2ic16ih5iw6oc20oh10ow12kh3kw3sh2sw2ph1pw1",
    "positions apart": "mb1ic20ih6oc33oh18kh4dh1sh3ph2",
    "groups": "g2mb1ic64ih4oc66oh9kh4sh2ph0",
    "three axes": "mb1ic8id3ih2iw4oc18od6oh4ow8kd2kh2kw2sd2sh2sw2pd0ph0pw0",
    "one axis": "mb2ic24iw20oc17ow41kw5sw2pw1",
}


@EMULATED
@pytest.mark.parametrize("text", DECONVOLUTIONS.values(), ids=DECONVOLUTIONS)
@pytest.mark.parametrize("types", [BF16, U8, S8], ids=lambda types: str(types[0]))
def test_deconvolutions(text: str, types: tuple[DataType, DataType, DataType]) -> None:
    """Parts of one position without padding read src where it lies."""
    check(TypedDeconv(text, types, types[2]), DIRECT if "kh2" in text else NAME)


@EMULATED
@pytest.mark.parametrize("dims", [(1, 40, 1, 1), (2, 40, 10, 10), (1, 1, 10, 10), (2, 1, 1, 10)])
def test_parts_read_their_own_pixels(dims: tuple[int, ...]) -> None:
    """Of tensors of post-ops."""
    attr = dnn.Attr([dnn.Binary("add", dnn.MemoryDesc(dims, dnn.s32, "abcd"))])
    case = TypedDeconv("mb2ic16ih5oc40oh10kh3sh2ph1", U8, attr=attr)
    data, pd = case.data(), planned(case)
    assert "direct+raster+amx" in pd.implementation, pd.refusals
    data["binary_0"] = np.random.default_rng(2).integers(-9, 9, dims)
    wanted = sums_of(case.problem, data["src"], data["weights"]) + data["binary_0"]
    assert np.array_equal(computed(pd, data, emulated=True), wanted)


@EMULATED
@pytest.mark.parametrize(
    ("text", "raster"),
    [("mb2ic32ih6oc32oh3kh1sh2ph0", False), ("mb1ic32ih7oc16oh5kh3ph0", False), ("mb1ic6ih6oc16oh4kh3ph0", True)],
)
def test_src_is_read_where_it_lies(text: str, raster: bool) -> None:
    """Without padding, and with pixels of whole groups of four."""
    check(TypedConv(text, U8), NAME if raster else DIRECT)


@EMULATED
@pytest.mark.parametrize(
    "tags", [("abcd", "abcd", "abcd"), ("aBcd16b", "any", "aBcd16b"), ("acdb", "any", "abcd")], ids="/".join
)
@pytest.mark.parametrize("types", [(dnn.bf16, dnn.bf16, dnn.bf16), S8], ids=lambda types: str(types[0]))
def test_formats(tags: tuple[str, str, str], types: tuple[DataType, DataType, DataType]) -> None:
    """src of any is brought into the raster; weights and dst go between reorders."""
    check(TypedConv("mb1ic20ih5oc40oh5kh3ph1", types, types[2], tags), BETWEEN)


@EMULATED
@CASES
def test_scales_and_post_ops(text: str) -> None:
    """Scales of channels, a bias after them, what dst held, relu: rounded once and saturated."""
    scales, points = {"src": 0, "weights": 1 if "g2" not in text else 3, "dst": 0}, {"dst": 0}
    attr = dnn.Attr([dnn.Sum(2.0), dnn.Eltwise("relu")], scales=scales, zero_points=points)
    case = TypedConv(text, (dnn.u8, dnn.s8, dnn.u8), dnn.s32, attr=attr)
    p, data, random = case.problem, case.data(), np.random.default_rng(1)
    data["src_scales"], data["dst_scales"] = np.array([2.0**-7]), np.array([2.0**5])
    data["weights_scales"] = 2.0 ** random.integers(-4, 0, p.oc)
    data["dst_zero_points"], data["dst"] = np.array([3]), random.integers(0, 50, p.dst_dims)
    pd = planned(case)
    assert pd.implementation == NAME, pd.refusals
    sums = sums_of(p, data["src"], data["weights"]) * 2.0**-7 * by_channel(p, data["weights_scales"])
    wanted = np.maximum(sums + by_channel(p, data["bias"]) + 2 * data["dst"], 0) / 2.0**5 + 3
    assert np.array_equal(computed(pd, data, emulated=True), rounded(wanted, dnn.u8))


@EMULATED
@pytest.mark.parametrize(
    "dims", [(1, 40, 1, 1), (2, 40, 5, 5), (1, 1, 1, 1), (2, 40, 1, 1), (1, 1, 5, 5), (2, 1, 1, 5)]
)
@pytest.mark.parametrize("blocked", [False, True])
def test_tensors_of_post_ops(dims: tuple[int, ...], blocked: bool) -> None:
    attr = dnn.Attr([dnn.Binary("mul", dnn.MemoryDesc(dims, dnn.f32, "aBcd8b" if blocked else "abcd"))])
    case = TypedConv("mb2ic6ih5oc40oh5kh3ph1", BF16, attr=attr)
    data, pd = case.data(), planned(case)
    assert pd.implementation in (NAME, BETWEEN)
    data["binary_0"] = 1.0 + (np.indices(dims).sum(axis=0) % 5)
    wanted = sums_of(case.problem, data["src"], data["weights"]) * data["binary_0"]
    bound = bound_of(case, data) * data["binary_0"]
    assert (np.abs(computed(pd, data, emulated=True) - wanted) <= bound + np.abs(wanted) * 2 * UNIT_ROUNDOFF).all()


@EMULATED
@pytest.mark.parametrize("point", [9, -1000])
@pytest.mark.parametrize("text", ["mb2ic32ih7oc40oh5kh3ph0", "g2mb1ic64ih6oc66oh4kh3ph0", *TEXTS.values()])
def test_zero_points_of_src(text: str, point: int) -> None:
    """The same numbers as for src that much lower; padding counts as the point, also if no byte is."""
    case = TypedConv(text, U8, dnn.s32, attr=dnn.Attr(zero_points={"src": 0}))
    pd, data = planned(case), case.data()
    assert pd.implementation in (NAME, DIRECT), pd.refusals
    wanted = sums_of(case.problem, data["src"] - point, data["weights"]) + by_channel(case.problem, data["bias"])
    assert np.array_equal(computed(pd, data | {"src_zero_points": np.array([point])}, emulated=True), wanted)


@EMULATED
def test_zero_points_of_a_deconvolution() -> None:
    """Of stride 1, whose positions are read from the end on, or of the only pixel, which some positions reach; parts of
    others have other sums."""
    texts = {"mb2ic64ih6oc32oh6kh3ph1": True, "mb1ic3oc32iw1ow1kw2sw3pw1": True, "mb2ic64ih6oc32oh12kh4sh2ph1": False}
    for text, fits in texts.items():
        case = TypedDeconv(text, S8, dnn.s32, attr=dnn.Attr(zero_points={"src": 0}))
        pd, data = planned(case), case.data()
        assert ("amx" in pd.implementation) is fits
        data["src_zero_points"] = np.array([7])
        wanted = sums_of(case.problem, data["src"] - 7, data["weights"]) + by_channel(case.problem, data["bias"])
        if fits:
            assert np.array_equal(computed(pd, data, emulated=True), wanted)


@EMULATED
@pytest.mark.parametrize(("text", "joined"), [("mb1ic64ih7oc40oh7kh3ph1", True), ("mb1ic64ih14oc40oh14kh3ph1", False)])
@pytest.mark.parametrize("types", [BF16, U8])
def test_post_ops_read_beside_rows_of_several(types: Any, text: str, joined: bool) -> None:
    """A residual sum, one number for each channel, and one for each pixel."""
    dtype = dnn.f32 if types == BF16 else dnn.s32
    case = TypedConv(text, types, dtype, tags=("axb", "any", "axb"))
    dims = case.desc().dst.dims
    shapes = (dims, (1, dims[1], 1, 1), (1, 1, *dims[2:]))
    post_ops = [dnn.Binary("add", dnn.MemoryDesc(shape, dtype, "axb")) for shape in shapes]
    pd = proved_desc(case.desc(), dnn.Attr(post_ops), dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids"))
    tiles = [spec.tile for phase in pd.plan.phases for spec in phase.kernels if isinstance(spec, AmxTileSpec)]
    assert "direct+raster+amx" in pd.implementation and tiles
    assert all(x.items.count > 1 and x.items.joined == joined and any(x.items.operand_bytes) for x in tiles)
    data, random = case.data(), np.random.default_rng(5)
    wanted = sums_of(case.problem, data["src"], data["weights"]) + by_channel(case.problem, data["bias"])
    most = sums_of(case.problem, np.abs(data["src"]), np.abs(data["weights"])) + 1 + 3 * 9
    for number, op in enumerate(post_ops):
        data[f"binary_{number}"] = random.integers(-9, 9, op.src1.dims)
        wanted = wanted + data[f"binary_{number}"]
    bound = 0 if dtype == dnn.s32 else 600 * 2.0**-24 * most  # of so many sums in a row
    assert (np.abs(computed(pd, data, emulated=True) - wanted) <= bound).all()


@EMULATED
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("deconvolution", [False, True])
def test_images_one_by_one(threads: int, deconvolution: bool) -> None:
    """Where the copies of all leave L2: each thread has one of its own; the same numbers, and tensors of post-ops."""
    post_ops = [dnn.Binary("add", dnn.MemoryDesc(dims, dnn.s32, "abcd")) for dims in ((5, 40, 6, 6), (1, 40, 1, 1))]
    form = TypedDeconv if deconvolution else TypedConv
    case = form("mb5ic64ih6oc40oh6kh3ph1", U8, dnn.s32, attr=dnn.Attr(post_ops))
    engine = dnn.Engine(isa=ISA, threads=threads, l2_bytes=16 << 10, machine="zen3", tuning=DEAR_CALLS)
    pd, data, random = proved_desc(case.desc(), case.attr, engine), case.data(), np.random.default_rng(3)
    assert "direct+raster+amx" in pd.implementation, pd.refusals
    assert bool(pd.plan.per_part) is (threads != 4)  # whose second turn would have one image
    wanted = sums_of(case.problem, data["src"], data["weights"]) + by_channel(case.problem, data["bias"])
    for number, op in enumerate(post_ops):
        data[f"binary_{number}"] = random.integers(-9, 9, op.src1.dims)
        wanted = wanted + data[f"binary_{number}"]
    assert np.array_equal(computed(pd, data, emulated=True), wanted)


def test_weights_of_another_format_are_not_taken_for_elements() -> None:
    """Those that are packed along rows of the kernel, in panels that tiles do not read."""
    case = TypedConv("mb1ic3ih9oc20oh9kh3ph1", BF16)
    desc = case.desc().with_formats({"weights": KernelRowsDesc((20, 3, 3, 3), dnn.bf16, 16)})
    pd = proved_desc(desc, case.attr, dnn.Engine(isa=ISA, threads=1, machine="zen4", tuning=DEAR_CALLS))
    assert "amx" not in pd.implementation
    assert any("transformed already" in str(refusal) for refusal in pd.refusals)


@pytest.mark.parametrize(
    ("text", "words", "fields"),
    [
        ("g8mb1ic32ih6oc32oh6kh3ph1", "groups have 4 and 4 channels, tiles take 16 or more", {}),
        ("mb0ic32ih6oc32oh6kh3ph1", "there is nothing to multiply", {}),
    ],
)
def test_refusals(text: str, words: str, fields: dict[str, Any]) -> None:
    pd = planned(TypedConv(text, U8, **fields))
    assert "amx" not in pd.implementation
    assert any(str(refusal).startswith("direct+amx") and words in str(refusal) for refusal in pd.refusals)


@pytest.mark.parametrize(
    ("text", "types", "algorithm", "wins"),
    [
        ("mb1ic64ih56oc64oh56kh3ph1", BF16, "auto", True),
        ("mb1ic512ih7oc512oh7kh3ph1", U8, "direct", True),
        ("mb1ic256ih56oc512oh28kh1sh2ph0", S8, "direct", True),
        ("mb1ic512ih2oc512oh2kh3ph1", BF16, "auto", False),
        ("mb1ic3ih32oc8oh16kh3sh2ph1", U8, "direct", False),
        ("mb1ic64ih56oc64oh56kh3ph1", BF16, "winograd", False),
    ],
)
def test_they_are_taken_where_they_are_expected_to_be_faster(
    text: str, types: tuple[DataType, DataType, DataType], algorithm: str, wins: bool
) -> None:
    """Than vectors, copies counted, and Winograd's algorithm where that may be."""
    case = TypedConv(text, types)
    desc = replace(case.desc(), algorithm=dnn.Algorithm(f"convolution_{algorithm}"))
    pd = proved_desc(desc, case.attr, dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids", tuning=DEFAULT))
    assert ("amx" in pd.implementation) is wins, pd.refusals


@pytest.mark.parametrize(("text", "joined"), [
    ("mb1ic64ih7oc32oh7kh3ph1", True),  # of 61 rows from the first pixel to the last tiles are 4, of 7 items 7
    ("mb1ic64ih14oc32oh14kh3ph1", False),  # a tile has 14 rows of 16, or an eighth of its rows are no pixels
    ("mb1ic64ih20oc32oh20kh3ph1", True),
    ("mb1ic64ih16oc32oh16kh3ph1", False),
])  # fmt: skip
def test_tiles_have_rows_of_several_where_there_are_fewer_then(text: str, joined: bool) -> None:
    """Of an image with padding rows between are multiplied, too."""
    pd = planned_by(TypedConv(text, BF16, tags=("axb", "any", "axb")), tuning_of("sapphire_rapids", ISA))
    specs = [spec for phase in pd.plan.phases for spec in phase.kernels if isinstance(spec, AmxTileSpec)]
    assert specs and all(spec.tile.items.joined == joined for spec in specs)


@pytest.mark.parametrize("is_part", [False, True])
def test_rows_between_are_pixels_of_src(is_part: bool) -> None:
    """A part of a larger image has those of others between its rows, which are nobody's to read."""
    case = TypedConv("mb1ic64ih9iw3oc32oh7ow2kh3kw2ph0", BF16, tags=("axb", "any", "axb"))
    desc = case.desc()
    if is_part:
        whole = dnn.MemoryDesc((1, 64, 9, 5), dnn.bf16, "axb")
        desc = replace(desc, src=whole.submemory(desc.src.dims, (0, 0, 0, 1)))
    products = replace(ALWAYS.products, im2col_load_cycles=1e6)  # which would copy the rows of windows
    engine = dnn.Engine(isa=ISA, threads=1, tuning=replace(ALWAYS, products=products, phases=DEAR_CALLS.phases))
    pd = proved_desc(desc, case.attr, engine)
    specs = [spec for phase in pd.plan.phases for spec in phase.kernels if isinstance(spec, AmxTileSpec)]
    assert specs and any(spec.tile.items.joined for spec in specs) is not is_part
