"""The numbers that planners choose by: they are the machine's, each of them is used, and another one plans anew."""

import re
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.grouped_shape import GroupedRows
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.functions.chain import operands_of
from asmdnn.generators.functions.elementwise import ElementwiseSpec
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.generators.move.transpose import TransposeSpec
from asmdnn.isa import cpu
from asmdnn.isa.lines import L1_SETS_BYTES
from asmdnn.planning import host as host_module
from asmdnn.planning.codec import encode_plan
from asmdnn.planning.host import as_machine
from asmdnn.planning.machine import MACHINES, machine_of
from asmdnn.planning.plan import Plan
from asmdnn.planning.product_tuning import ByDistance
from asmdnn.planning.tuning import DEFAULT, Tuning, WinogradTuning
from asmdnn.primitives.convolution.winograd.cost import with_memory_cycles
from tests.support.tuning import tuned, with_numbers

PACKAGE = Path(dnn.__file__).parent
L2_BYTES = 512 << 10


def desc(dims: tuple[int, ...], tag: str = "", dtype: dnn.DataType = dnn.f32) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dtype, tag or "abcd"[: len(dims)])


def matmul(m: int, k: int, n: int) -> dnn.MatMul:
    return dnn.MatMul(desc((m, k)), desc((k, n)), desc((m, n)))


def packed(m: int, k: int, n: int) -> dnn.MatMul:
    return dnn.MatMul(desc((m, k)), desc((k, n), "any"), desc((m, n)))


def transposed(m: int, k: int, n: int) -> dnn.MatMul:
    return dnn.MatMul(desc((m, k)), desc((k, n), "ba"), desc((m, n)))


def convolution(size: int, tag: str = "any") -> dnn.ConvolutionForward:
    images = desc((1, 128, size, size), tag)
    weights = desc((128, 128, 3, 3), "any")
    return dnn.ConvolutionForward(src=images, weights=weights, dst=images, padding_l=(1, 1), padding_r=(1, 1))


EXP = dnn.EltwiseForward(dnn.PropKind.forward_inference, "exp", desc((64, 1000)), desc((64, 1000)))
POINTWISE = dnn.ConvolutionForward(
    desc((1, 64, 9, 9), "any"), desc((16, 64, 1, 1), "any"), dst=desc((1, 16, 9, 9), "any")
)
PIXELS = dnn.ConvolutionForward(
    desc((1, 64, 9, 9), "acdb"), desc((16, 64, 1, 1), "any"), dst=desc((1, 16, 9, 9), "acdb")
)
GRADIENT = dnn.ConvolutionBackwardWeights(
    desc((1, 32, 28, 28), "any"), desc((32, 32, 3, 3), "any"), desc((1, 32, 28, 28), "any"), None, (1, 1), (0, 0),
    (1, 1), (1, 1), algorithm=dnn.Algorithm.convolution_auto,
)  # fmt: skip
FAR_PIXELS = dnn.ConvolutionForward(
    desc((1, 8, 9, 9), "acdb"), desc((96, 8, 1, 1), "any"), dst=desc((1, 96, 9, 9), "acdb")
)
DEPTHWISE = dnn.ConvolutionForward(
    desc((1, 16, 9, 9), "any"), desc((16, 1, 1, 3, 3), "any"), dst=desc((1, 16, 7, 7), "any")
)
LAST_ROWS = dnn.ConvolutionForward(
    desc((1, 48, 9, 9), "acdb"), desc((48, 1, 1, 3, 3), "any"), dst=desc((1, 48, 7, 7), "acdb")
)
STRIDED = dnn.ConvolutionForward(
    desc((1, 64, 9, 9), "any"), desc((16, 64, 1, 1), "any"), dst=desc((1, 16, 5, 5), "any"), strides=(2, 2)
)
WINDOWS, WINDOWS_LAST = (
    dnn.ConvolutionForward(
        desc((1, 64, 9, 9), tag), desc((16, 64, 3, 3), "any"), dst=desc((1, 16, 4, 4), tag), strides=(2, 2)
    )
    for tag in ("any", "acdb")
)


def pooling(size: int, results: int, kernel: int, stride: int, padding: int) -> dnn.PoolingForward:
    src, dst = (desc((1, 256, n, n), "abcd") for n in (size, results))
    ends = (padding,) * 2
    return dnn.PoolingForward(
        "max", src, dst, kernel=(kernel,) * 2, strides=(stride,) * 2, padding_l=ends, padding_r=ends
    )  # fmt: skip


FAR_MAXIMA = dnn.PoolingBackward(
    "max", desc((1, 64, 9, 9), "acdb"), desc((1, 64, 7, 7), "acdb"), (3, 3),
    indices=dnn.MemoryDesc((1, 64, 7, 7), dnn.u8, "acdb"),
)  # fmt: skip
SHORT_ROWS = dnn.PoolingForward(
    "max", desc((1, 256, 4, 4), "abcd"), desc((1, 256, 4, 4), "abcd"), kernel=(3, 3), padding_l=(1, 1), padding_r=(1, 1)
)


_IMAGES, _CHANNELS = desc((2, 2048, 4, 4), "acdb"), desc((2048,), "a")
MANY_ROWS = dnn.PReLUForward(dnn.PropKind.forward_inference, desc((2, 16, 5000)), desc((1, 16, 1)), desc((2, 16, 5000)))
PIECES = dnn.ResamplingForward("nearest", desc((1, 32, 5, 6), "aBcd16b"), desc((1, 32, 9, 13), "aBcd16b"))
WIDE_NORM = dnn.BatchNormBackward(
    src=_IMAGES, diff_dst=_IMAGES, diff_src=_IMAGES, mean=_CHANNELS, variance=_CHANNELS, scale=_CHANNELS
)


def group_norm(size: int, images: int = 1, groups: int = 32) -> dnn.GroupNormForward:
    images_ = desc((images, 64, size, size))
    return dnn.GroupNormForward(dnn.PropKind.forward_inference, images_, images_, groups)


CHANGED: list[tuple[str, dict[str, Any], Any]] = [
    ("phases", {"call_cycles": 31}, matmul(40, 64, 64)),
    ("phases", {"weights_stream_cycles": 9.0}, convolution(14)),
    ("phases", {"written_out": 1, "round_records": 8}, dnn.Reorder(desc((512, 4096)), desc((512, 4096), "ba"))),
    ("products", {"plain_depth": ByDistance(64, 64, 64)}, matmul(40, 300, 100)),
    ("products", {"pack_tiles": ByDistance(3, 3, 3)}, matmul(40, 300, 100)),
    ("products", {"few_tiles_elements": ByDistance(1, 1, 1)}, matmul(2, 128, 200)),
    ("products", {"block_rows": ByDistance(64, 64, 64)}, matmul(70, 400, 1024)),
    ("products", {"block_tiles": ByDistance(99, 2, 2)}, matmul(70, 400, 1000)),
    ("products", {"dot_depth": 32}, matmul(40, 16, 1)),
    ("products", {"dot_row_bytes": 48}, transposed(9, 400, 100)),
    ("products", {"dot_near_bytes": 4 << 10}, transposed(3, 2000, 100)),
    ("products", {"dot_elements_least": 1024}, matmul(2, 500, 1)),
    ("products", {"dot_elements_most": 999}, matmul(2, 500, 1)),
    ("products", {"outer_depth": 2}, matmul(40, 4, 200)),
    ("products", {"split_cycles": 10}, matmul(4, 512, 32)),
    ("products", {"memory_stream_bytes": 256}, packed(1, 4096, 2048)),
    ("products", {"memory_stream_bytes": 256, "memory_weights_bytes": 1 << 20}, packed(1, 1024, 1024)),
    ("products", {"along_rows_l2": 0.125}, packed(384, 64, 3072)),
    ("products", {"far_dst_l2": 99.0}, packed(384, 64, 3072)),
    ("products", {"dst_ahead_l2": 99.0}, packed(384, 64, 3072)),
    ("products", {"latency_sums": 1}, packed(1, 512, 10)),
    ("products", {"alias_rows": 17}, packed(16, 1024, 1024)),
    ("products", {"alias_rows": 128}, matmul(70, 1024, 1024)),
    ("products", {"panel_lines": 4}, packed(16, 1024, 256)),
    ("products", {"far_src_l2": 1.0}, packed(384, 3072, 64)),
    ("winograd_gradient", {"chunk_tiles": 9}, GRADIENT),
    ("winograd_gradient", {"taps_cycles": 75_000}, GRADIENT),
    ("convolution", {"panel_share": 64}, convolution(14)),
    ("convolution", {"strip_pixels": 7}, convolution(7)),
    ("convolution", {"written_out": 1, "round_records": 8}, convolution(14)),
    ("convolution", {"streaming_bytes": 1}, DEPTHWISE),
    ("convolution", {"src_ahead_bytes": 1}, POINTWISE),
    ("convolution", {"held_ahead_bytes": 1}, POINTWISE),
    ("convolution", {"far_pixels_l2": 0.001}, PIXELS),
    ("convolution", {"dst_ahead_l2": 0.001}, FAR_PIXELS),
    ("convolution", {"dst_runs_bytes": 1}, FAR_PIXELS),
    ("convolution", {"rows_ahead_l2": 0.001}, LAST_ROWS),
    ("convolution", {"strided_ahead_bytes": 1}, STRIDED),
    ("convolution", {"held_strided_bytes": 1}, STRIDED),
    ("convolution", {"windows_ahead_bytes": 1}, WINDOWS),
    ("convolution", {"windows_ahead_bytes": 1}, WINDOWS_LAST),
    ("moves", {"record_bytes": 4096}, dnn.Reorder(desc((512, 512)), desc((512, 512), "ba"))),
    ("moves", {"page_bytes": 1024}, dnn.Reorder(desc((512, 512)), desc((512, 512), "ba"))),
    ("moves", {"conflict_bytes": 4096}, dnn.Reorder(desc((512, 196)), desc((512, 196), "ba"))),
    ("moves", {"set_lines": 16}, dnn.Reorder(desc((16, 1024)), desc((16, 1024), "ba"))),
    ("moves", {"near_row_bytes": 128}, dnn.Reorder(desc((24, 500)), desc((24, 500), "ba"))),
    ("moves", {"row_bytes": 4096}, dnn.Shuffle(desc((1, 8, 40, 40)), desc((1, 8, 40, 40)), 1, 4)),
    ("moves", {"unrolled_bytes": 256}, dnn.Shuffle(desc((1, 8, 40, 40)), desc((1, 8, 40, 40)), 1, 4)),
    ("moves", {"convert_ahead_bytes": 512}, dnn.Reorder(desc((40, 4096), dtype=dnn.u8), desc((40, 4096)))),
    ("moves", {"least_across": 2}, dnn.Reorder(desc((64, 64, 8)), desc((64, 64, 8), "bac"))),
    ("moves", {"row_units": 9.0}, dnn.Shuffle(desc((4, 90), "ab"), desc((4, 90), "ab"), 1, 9)),
    ("pooling", {"rows_ahead_l2": 0.01}, FAR_MAXIMA),
    ("pooling", {"near_channels": 64}, SHORT_ROWS),
    ("pooling", {"padded_results": 10}, pooling(10, 10, 3, 1, 1)),
    ("pooling", {"padded_strided_results": 5}, pooling(9, 5, 3, 2, 1)),
    ("pooling", {"strided_results": 5}, pooling(10, 5, 2, 2, 0)),
    ("pooling", {"near_bytes": 8192}, SHORT_ROWS),
    ("pooling", {"near_l3_share": 1 << 20}, SHORT_ROWS),
    ("resampling", {"channels_cycles": 100}, PIECES),
    ("resampling", {"streaming_share": 1 << 40, "pieces_stream": True}, PIECES),
    ("elementwise", {"interleaved": 4}, EXP),
    ("elementwise", {"whole_row": 5000}, MANY_ROWS),
    ("elementwise", {"record_elements": 512}, EXP),
    ("elementwise", {"streaming_bytes": 1}, EXP),
    ("elementwise", {"repeated_bytes": 64 << 10}, WIDE_NORM),
    ("normalization", {"least_units": 33}, group_norm(36)),
    ("normalization", {"near_unit_bytes": 12 << 10}, group_norm(36)),
    ("normalization", {"far_unit_bytes": 20 << 10}, group_norm(48)),
    ("normalization", {"unit_l2": 0.04}, group_norm(56, images=16)),
]


def planned(request: Any, tuning: Tuning = DEFAULT) -> str:
    engine = dnn.Engine(isa="avx2", threads=1, l2_bytes=L2_BYTES, machine="zen3", tuning=tuning)
    return digest(dnn.primitive_desc(request, engine=engine).plan)


def digest(plan: Plan) -> str:
    return sha256(encode_plan(plan, [])).hexdigest()


@pytest.mark.parametrize(("group", "numbers", "request_"), CHANGED, ids=lambda x: str(x)[:40])
def test_another_number_makes_another_plan(group: str, numbers: dict[str, Any], request_: Any) -> None:
    other = with_numbers(DEFAULT, group, **numbers)
    assert planned(request_, other) != planned(request_)
    assert planned(request_, replace(DEFAULT)) == planned(request_), "equal numbers, equal plans"
    with tuned(group, **numbers):
        engine = dnn.Engine(isa="avx2", threads=1, l2_bytes=L2_BYTES)
    again = digest(dnn.primitive_desc(request_, engine=engine).plan)
    assert (again == planned(request_, other)) or engine.machine != "zen3"


def test_kernels_that_nobody_asked_otherwise_are_those_of_the_default() -> None:
    """So that their names say only what differs from it."""
    moves, maps = DEFAULT.moves, DEFAULT.elementwise
    defaults = {
        (spec, x.name): x.default
        for spec in (RowsSpec, ConvertSpec, TransposeSpec, ElementwiseSpec)
        for x in fields(spec)
    }
    assert defaults[RowsSpec, "unrolled_bytes"] == moves.unrolled_bytes
    assert defaults[ConvertSpec, "ahead_bytes"] == moves.convert_ahead_bytes
    assert defaults[TransposeSpec, "least_across"] == moves.least_across
    assert defaults[ElementwiseSpec, "interleaved"] == maps.interleaved
    assert defaults[ElementwiseSpec, "ahead_bytes"] == maps.ahead_bytes


def test_the_engine_takes_the_numbers_of_its_machine() -> None:
    for name, row in MACHINES.items():
        for level in row.isas:
            engine = dnn.Engine(isa=level.name, machine=name, threads=1)
            assert engine.tuning is row.tuning_at(level.name)
    emerald, skylake = (
        dnn.Engine(isa="avx512_core", threads=1, l2_bytes=1 << 20, machine=name)
        for name in ("sapphire_rapids", "skylake_sp")
    )
    depths = [len(dnn.primitive_desc(matmul(14, 1024, 1024), engine=x).plan.phases) for x in (emerald, skylake)]
    assert depths == [16, 8]  # columns_depth of 64 and of 128
    with as_machine(machine_of("sapphire_rapids")):
        assert dnn.Engine(threads=1).tuning == emerald.tuning != skylake.tuning


def differing(name: str, isa: str) -> set[str]:
    """What is of another value than on Zen 3."""
    default = dict(DEFAULT.numbers())
    return {number for number, value in machine_of(name).tuning_at(isa).numbers() if value != default[number]}


def test_what_differs_from_zen_3_was_measured_elsewhere_or_is_from_manuals() -> None:
    from_manuals = {
        "skylake_sp": {"moves.permute_cost"},
        "icelake_sp": {"moves.permute_cost", "moves.set_lines", "products.panel_lines", "products.set_lines"},
        "alder_lake": {"moves.page_bytes", "moves.set_lines", "products.panel_lines", "products.set_lines"},
    }
    measured = {"sapphire_rapids", "zen4", "zen5"}
    for name, row in MACHINES.items():
        found = differing(name, row.isas[-1].name)
        assert bool(found) == (name in measured or name in from_manuals), name
        assert name not in from_manuals or found == from_manuals[name]
    assert "products.columns_depth" in differing("sapphire_rapids", "avx512_core")


@pytest.mark.parametrize("name", ["zen4", "zen5"])
def test_what_was_measured_with_zmm_is_not_taken_with_ymm(name: str) -> None:
    """Of products, Winograd's algorithm and groups; sizes beyond which dst goes past the caches hold for both."""
    wide, narrow = differing(name, "avx512_core"), differing(name, "avx2")
    narrow.remove("products.alias_columns")  # whose tiles have few rows
    assert narrow < wide
    of_zmm = {each for each in wide - narrow if each.split(".")[0] not in ("products", "winograd", "winograd_groups")}
    further = {"convolution.part_turns"}
    if name == "zen5":
        further |= {"recurrent.starts_last", "convolution.dst_runs_bytes"}
    if name == "zen4":
        further |= {"convolution.rows_of_whole", "convolution.narrow_cost", "phases.latency_cycles"}
    assert of_zmm == further
    assert "moves.streaming_bytes" in narrow
    levels = ("avx2", "avx2_vnni") if name == "zen5" else ("avx2",)
    assert {machine_of(name).tuning_at(level) for level in levels} == {machine_of(name).tuning_at("avx2")}


@pytest.mark.parametrize(("isa", "blocks"), [("avx2", True), ("avx512_core", False)])
def test_blocks_of_sixteen_rows_on_zen_4(isa: str, blocks: bool) -> None:
    """Packed blocks are twice as fast with ymm registers, and slower with zmm."""
    engine = dnn.Engine(isa=isa, threads=1, machine="zen4")
    found = dnn.primitive_desc(matmul(16, 4096, 4096), engine=engine).implementation
    assert ("pack_blocks" in found) == blocks


@pytest.mark.parametrize("name", MACHINES)
def test_with_ymm_alone_no_vectors_are_narrower(name: str) -> None:
    """A discount would then be direct convolution's, whatever else is compared with it."""
    assert machine_of(name).tuning_at("avx2").convolution.narrow_cost == 1


def test_what_differs_on_emerald_rapids_with_ymm() -> None:
    narrow, wide = (dict(machine_of("sapphire_rapids").tuning_at(isa).numbers()) for isa in ("avx2", "avx512_core"))
    assert {name: (wide[name], narrow[name]) for name in wide if wide[name] != narrow[name]} == {
        "convolution.rows_of_whole": (False, True),
        "products.block_least_rows": (33, 17),
    }


@pytest.mark.parametrize(
    ("size", "stride", "algorithm", "tag", "name"),
    [
        (14, 2, "direct", "any", "direct"),
        (14, 1, "direct", "any", "grouped"),
        (7, 1, "direct", "any", "direct"),
        (7, 1, "auto", "any", "grouped"),
        (14, 2, "direct", "acdb", "grouped"),
    ],
)
def test_groups_that_fill_a_vector(size: int, stride: int, algorithm: Any, tag: str, name: str) -> None:
    """On Emerald Rapids tiles take those with strides, and short rows; on Zen 5 Winograd's algorithm is fast."""
    src, dst = (desc((1, 64, n, n), tag) for n in (size, -(-size // stride)))
    weights = desc((4, 16, 16, 3, 3), "any")
    steps = (stride,) * 2
    request = dnn.ConvolutionForward(src, weights, dst, None, steps, (0, 0), (1, 1), (1, 1), algorithm=algorithm)
    for machine, wanted in (("sapphire_rapids", name), ("zen5", "winograd" if algorithm == "auto" else "grouped")):
        engine = dnn.Engine(isa="avx512_core", threads=1, machine=machine)
        pd = dnn.primitive_desc(request, engine=engine)
        pd.plan.check()
        assert pd.implementation == f"{wanted}:avx512_core"


@pytest.mark.parametrize(
    ("kernel", "stride", "width", "name"),
    [(1, 1, 28, "direct"), (2, 2, 28, "direct"), (1, 2, 28, "direct"), (2, 1, 28, "grouped"), (1, 1, 14, "grouped")],
)
@pytest.mark.parametrize("tag", ["any", "acdb"])
def test_groups_whose_positions_share_no_pixel(kernel: int, stride: int, width: int, name: str, tag: str) -> None:
    """Rows gain by what positions of a kernel row have in common; short rows start sooner, however."""
    size = (width - 1) * stride + kernel
    request = dnn.ConvolutionForward(
        desc((1, 64, size, size), tag), desc((4, 16, 16, kernel, kernel), "any"), desc((1, 64, width, width), tag),
        None, (stride, stride),
    )  # fmt: skip
    pd = dnn.primitive_desc(request, engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen5"))
    pd.plan.check()
    assert pd.implementation == f"{name}:avx512_core"


def test_what_classes_choose_otherwise() -> None:
    """At AVX-512, with the caches of the default's class, so that the numbers alone decide."""

    def chosen(request: Any, machine: str) -> str:
        engine = dnn.Engine(isa="avx512_core", threads=1, l2_bytes=1 << 20, machine=machine)
        return dnn.primitive_desc(request, engine=engine).implementation

    groups = dnn.MemoryDesc((1, 512, 14, 14), dnn.f32, "any")
    weights = dnn.MemoryDesc((32, 16, 16, 3, 3), dnn.f32, "any")
    resnext = dnn.ConvolutionForward(groups, weights, groups, padding_l=(1, 1), padding_r=(1, 1), algorithm="auto")
    found = {
        name: [chosen(x, name) for x in (matmul(16, 1024, 1024), matmul(64, 1024, 1024), resnext)]
        for name in ("skylake_sp", "zen4", "zen5")
    }
    blocks, tiles = "pack_src+pack_blocks+tiles:avx512_core", "copying_tiles+tiles:avx512_core"
    assert found == {
        "skylake_sp": [blocks, blocks, "grouped:avx512_core"],
        "zen4": ["tiles:avx512_core", "pack_blocks+tiles:avx512_core", "winograd:avx512_core"],
        "zen5": [tiles, "packing_tiles+copying_tiles+tiles:avx512_core", "winograd:avx512_core"],
    }


@pytest.mark.parametrize(
    ("sizes", "columns"), [((7, 1024, 1024), 32), ((8, 1024, 1024), 16), ((24, 1024, 1024), 16), ((25, 1024, 1024), 32),
                           ((16, 128, 256), 32)]
)  # fmt: skip
def test_panels_of_one_vector(sizes: tuple[int, int, int], columns: int) -> None:
    """On Zen 5, for some rows and weights beyond L2; inner products and bf16, too."""
    m, k, n = sizes
    for machine, wanted in (("zen5", columns), ("zen4", 32)):
        engine = dnn.Engine(isa="avx512_core_bf16", threads=1, machine=machine)
        rows = desc((m, k)), desc((n, k), "any"), desc((m, n))
        pd = dnn.primitive_desc(dnn.InnerProductForward(*rows), engine=engine)
        assert pd.plan.tensors["weights"] == desc((n, k), f"Ab{wanted}a")
        halves = [dnn.MemoryDesc(dims, dnn.bf16, tag) for dims, tag in (((m, 2 * k), "ab"), ((2 * k, n), "any"))]
        pd = dnn.primitive_desc(dnn.MatMul(*halves, desc((m, n))), engine=engine)
        assert pd.plan.tensors["weights"] == dnn.MemoryDesc((2 * k, n), dnn.bf16, f"BA{wanted}b2a")


@pytest.mark.parametrize(
    ("machine", "isa", "dtype", "post_ops", "streams"),
    [
        ("zen5", "avx512_core", dnn.f32, (dnn.Eltwise("relu"),), True),
        ("zen5", "avx512_core", dnn.f32, (dnn.Sum(),), False),
        ("zen5", "avx512_core_bf16", dnn.bf16, (), True),
        ("zen5", "avx512_core", dnn.bf16, (), False),
        ("zen5", "avx2", dnn.f32, (), False),
        ("zen4", "avx512_core", dnn.f32, (), False),
    ],
)
def test_tiles_that_stream(machine: str, isa: str, dtype: dnn.DataType, post_ops: Any, streams: bool) -> None:
    """Those of a large dst that write whole lines, and do not read them."""
    src, dst = (desc((1, channels, 360, 360), "any", dtype) for channels in (32, 96))
    request = dnn.ConvolutionForward(src, desc((96, 32, 1, 1), "any", dtype), dst)
    pd = dnn.primitive_desc(request, dnn.Attr(post_ops=post_ops), dnn.Engine(isa=isa, threads=1, machine=machine))
    pd.plan.check()
    tiles = [spec for spec in pd.plan.specs if isinstance(spec, ConvTileSpec)]
    assert tiles and {spec.streams for spec in tiles} == {streams}


@pytest.mark.parametrize(
    ("machine", "m", "n", "attr", "streams"),
    [
        ("zen5", 1024, 1024, dnn.Attr(), True),
        ("zen5", 1024, 1023, dnn.Attr(), False),
        ("zen5", 512, 1024, dnn.Attr(), False),
        ("zen5", 1024, 1024, dnn.Attr(post_ops=(dnn.Sum(),)), False),
        ("zen4", 1024, 1024, dnn.Attr(), False),
    ],
)
def test_products_that_stream(machine: str, m: int, n: int, attr: dnn.Attr, streams: bool) -> None:
    """Those of a large dst whose rows are whole lines, and are not read."""
    engine = dnn.Engine(isa="avx512_core", threads=1, machine=machine)
    pd = dnn.primitive_desc(dnn.MatMul(desc((m, 256)), desc((256, n), "any"), desc((m, n))), attr, engine)
    pd.plan.check()
    tiles = [spec.tile for spec in pd.plan.specs if isinstance(spec, MatmulTileSpec)]
    assert tiles and {tile.streams for tile in tiles} == {streams}


@pytest.mark.parametrize(("elements", "k", "way"), [(16, 8, "rows"), (17, 6, "rows"), (17, 7, "sorted")])
def test_long_rows_are_sorted(elements: int, k: int, way: str) -> None:
    """On Zen 5 from fewer results on than elsewhere."""
    request = dnn.TopKForward("max", desc((64, elements)), desc((64, k), dtype=dnn.s32), 1)
    for machine, wanted in (("zen5", way), ("zen4", "rows")):
        engine = dnn.Engine(isa="avx2", threads=1, machine=machine)
        assert dnn.primitive_desc(request, engine=engine).implementation == f"{wanted}:avx2"


def test_rows_that_are_too_long_to_come_ahead() -> None:
    ahead = with_numbers(DEFAULT, "convolution", rows_ahead_l2=0.001)
    assert planned(LAST_ROWS, ahead) != planned(LAST_ROWS)
    assert planned(LAST_ROWS, with_numbers(ahead, "convolution", rows_ahead_bytes=1)) == planned(LAST_ROWS)


def test_rows_that_are_read_once_come_ahead_at_any_length() -> None:
    """Lines as a whole: two vectors of bf16 at a time."""
    dims = (4, 480, 64, 64)
    src, dst = (desc(dims, "acdb", dtype=dnn.bf16) for _ in range(2))
    engine = dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen5", l2_bytes=1 << 20)
    for kernel, wanted in ((1, (1, 2)), (3, (0, 1))):
        padding = (kernel // 2,) * 2
        weights = desc((30, 16, 16, kernel, kernel), "any", dtype=dnn.bf16)
        conv = dnn.ConvolutionForward(src, weights, dst, padding_l=padding, padding_r=padding)
        specs = [x for x in dnn.primitive_desc(conv, engine=engine).plan.specs if isinstance(x, GroupedRows)]
        assert specs and {(spec.rows_ahead, spec.abreast) for spec in specs} == {wanted}


@pytest.mark.parametrize("row_tiles", [1, 2, 4])
def test_memory_comes_while_a_first_tile_runs(row_tiles: int) -> None:
    """Or while all do, or before."""
    waits = WinogradTuning(memory_bytes_per_cycle=10.0, memory_overlapped=True, first_tile_waits=True)
    overlapped, before = replace(waits, first_tile_waits=False), replace(waits, memory_overlapped=False)
    found = [with_memory_cycles(1200.0, 8000, row_tiles, own) for own in (waits, overlapped, before)]
    assert found == [{1: 1200, 2: 1400, 4: 1700}[row_tiles], 1200, 2000]


def test_every_number_is_used() -> None:
    sources = "\n".join(path.read_text() for path in sorted(PACKAGE.rglob("*.py")))
    unused = {name for name, _ in DEFAULT.numbers() if not re.search(rf"\.{name.split('.')[1]}\b", sources)}
    assert unused == set()


def test_planners_read_nothing_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither CPUID nor the variables; the engine is all that they know."""
    requests = [request for *_, request in CHANGED]
    before = [planned(request) for request in requests]

    def fail(*_: Any) -> Any:
        raise AssertionError("a planner asks for the machine at hand")

    engine = dnn.Engine(isa="avx2", threads=1, l2_bytes=L2_BYTES, machine="zen3")
    for module, name in ((cpu, "cpuid"), (cpu, "cpu_features"), (cpu, "cache_sizes"), (host_module, "host")):
        monkeypatch.setattr(module, name, fail)
    dnn.clear_caches()
    for request, wanted in zip(requests, before, strict=True):
        plan = next(x for x in dnn.implementations(request, engine=engine) if isinstance(x, dnn.PrimitiveDesc)).plan
        assert digest(plan) == wanted


def test_distances() -> None:
    number = ByDistance(1, 2, 3)
    assert [number.of(x) for x in (4, 1000, 1024, 3072, 2048, 4096, 12288, 0)] == [1, 1, 2, 2, 2, 3, 3, 3]
    assert L1_SETS_BYTES == 4096


def test_defaults_are_numbers_above_zero() -> None:
    """Which no tuning checks again."""
    assert all(value is False or value > 0 for _, value in DEFAULT.numbers())


@pytest.mark.parametrize("value", [0, 1, 1.0, "yes", None])
def test_what_is_neither_yes_nor_no(value: Any) -> None:
    message = "tuning.winograd.memory_overlapped must be True or False, not"
    with pytest.raises(dnn.InvalidArguments, match=message):
        with_numbers(DEFAULT, "winograd", memory_overlapped=value)


@pytest.mark.parametrize("number", [0, -1, "many", None, True])
def test_numbers_that_mean_nothing(number: Any) -> None:
    with pytest.raises(dnn.InvalidArguments, match=r"tuning.products.panel_share must be a number above zero, not"):
        with_numbers(DEFAULT, "products", panel_share=number)
    with pytest.raises(dnn.InvalidArguments, match="tuning must be that of a machine"):
        dnn.Engine(tuning="fast")  # type: ignore[arg-type]


def test_rows_whose_operands_repeat_are_cut_so_that_these_stay_in_l1() -> None:
    """Records go down the rows, of which several read the same parts of the operands."""
    plan = dnn.primitive_desc(WIDE_NORM, engine=dnn.Engine(isa="avx2", threads=1, machine="zen3")).plan
    specs = [spec for spec in plan.phases[-1].kernels if isinstance(spec, ElementwiseSpec)]
    alike = [operand for operand in operands_of(specs[0].chain) if not operand.row_bytes]
    assert len(alike) == 4 and {spec.elements for spec in specs} == {1024} and specs[0].rows == 4
    assert all(operand.row_bytes in (0, 4 * 2048) for operand in operands_of(specs[0].chain))
    assert 4 * 1024 * len(alike) == DEFAULT.elementwise.repeated_bytes
    plan.check()
