"""When Winograd's convolution is taken, refused or excluded; the format of its weights."""

from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.memory.winograd import WinogradDesc, weights_matrix
from asmdnn.primitives.convolution.winograd.cut import blocks_of
from tests.generators.references.winograd import matrices
from tests.primitives.winograd_case import Case
from tests.support.plans import emulate_plan

LARGE = Case(1, 64, 64, (28, 28))
ENGINE = dnn.Engine(isa="avx2", threads=1, machine="zen3")


def implementation(desc: dnn.ConvolutionForward, engine: dnn.Engine = ENGINE) -> str:
    return dnn.primitive_desc(desc, engine=engine).implementation


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_the_algorithm_decides(isa: str) -> None:
    engine = dnn.Engine(isa=isa, threads=1, machine="zen3")
    assert implementation(LARGE.desc("direct"), engine) == f"direct:{isa}"
    assert implementation(LARGE.desc("auto"), engine) == f"winograd:{isa}"
    assert implementation(LARGE.desc("winograd"), engine) == f"winograd:{isa}"
    default = replace(LARGE.desc(), algorithm=dnn.ConvolutionForward.__dataclass_fields__["algorithm"].default)
    assert implementation(default, engine) == f"direct:{isa}"


def test_auto_takes_what_is_expected_to_be_faster() -> None:
    tiny = Case(1, 64, 64, (2, 2))
    assert implementation(tiny.desc("auto")) == "direct:avx2"
    pd = dnn.primitive_desc(tiny.desc("auto"), engine=ENGINE)
    assert "direct convolution" in pd.refusals[0].reason
    assert implementation(tiny.desc("winograd")) == "winograd:avx2"


def test_weights_that_are_transformed_with_every_call_count() -> None:
    case = Case(1, 512, 512, (7, 7))
    plain = dnn.MemoryDesc(case.weights_dims, dnn.f32, "abcd")
    assert implementation(case.desc("auto")) == "winograd:avx2"
    assert implementation(case.desc("auto", plain)) == "pack+direct:avx2"


@pytest.mark.parametrize(
    ("channels", "size", "machine", "m"),
    [
        (512, 9, "zen3", 2),
        (512, 9, "sapphire_rapids", 4),
        (512, 14, "zen3", 4),
        (256, 9, "zen3", 4),
        (1024, 7, "zen3", 2),
    ],
)
def test_weights_that_l3_does_not_hold_count(channels: int, size: int, machine: str, m: int) -> None:
    """512 channels have 17 MB of them with F(2x2), 38 with F(4x4); Zen 3 has 32 MB of L3."""
    case = Case(1, channels, channels, (size, size))
    engine = dnn.Engine(isa="avx2", threads=1, machine=machine, l2_bytes=ENGINE.l2_bytes)
    weights = dnn.primitive_desc(case.desc("auto"), engine=engine).weights_desc
    assert isinstance(weights, WinogradDesc)
    assert weights.m == m


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"strides": (2, 2), "dst": dnn.MemoryDesc((1, 64, 14, 14), dnn.f32, "any")}, "it is for dense 3x3"),
        ({"dilations": (1, 1), "padding_l": (2, 2), "padding_r": (2, 2)}, "it is for dense 3x3"),
        ({"weights": dnn.MemoryDesc((64, 64, 5, 5), dnn.f32, "any"), "padding_l": (2, 2), "padding_r": (2, 2)}, "5x5"),
        ({"weights": dnn.MemoryDesc((64, 1, 1, 3, 3), dnn.f32, "any")}, "1 channels in and 1 out, fewer than 4"),
    ],
)  # fmt: skip
def test_demanded_where_it_does_not_apply(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(dnn.Unimplemented, match=reason):
        dnn.primitive_desc(replace(LARGE.desc(), **changes), engine=ENGINE)  # type: ignore[arg-type]  # by name


def test_one_axis_and_types() -> None:
    line = dnn.ConvolutionForward(
        *(dnn.MemoryDesc(dims, dnn.f32, "any") for dims in ((1, 8, 9), (8, 8, 3), (1, 8, 7))),
        algorithm=dnn.Algorithm.convolution_winograd,
    )
    with pytest.raises(dnn.Unimplemented, match="1 spatial axes"):
        dnn.primitive_desc(line, engine=ENGINE)
    of_bytes = {
        "src": dnn.MemoryDesc(LARGE.src_dims, dnn.u8, "acdb"),
        "weights": dnn.MemoryDesc(LARGE.weights_dims, dnn.s8, "any"),
    }
    with pytest.raises(dnn.Unimplemented, match="weights is s8, transforms take f32, bf16, f16"):
        dnn.primitive_desc(replace(LARGE.desc(), **of_bytes), engine=ENGINE)
    deep = {"strides": (2, 2), "dst": dnn.MemoryDesc((1, 64, 14, 14), dnn.f32, "any"), "src": of_bytes["src"]}
    with pytest.raises(dnn.Unimplemented, match="does not multiply u8 by f32"):
        dnn.primitive_desc(replace(LARGE.desc("direct"), **deep), engine=ENGINE)


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize(("dims", "panel"), [((21, 7, 3, 3), 16), ((8, 40, 3, 3), 8), ((50, 3, 3, 3), 24)])
def test_a_reorder_transforms_weights(isa: str, m: int, dims: tuple[int, ...], panel: int) -> None:
    weights = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    desc = WinogradDesc(dims, dnn.f32, m, panel)
    assert desc.storage.dims == (*dims[:2], m + 2, m + 2)
    wanted = dnn.Memory.from_numpy(weights, desc)
    for threads in (1, 2, 3, 7):
        made = dnn.reorder(dnn.Memory.from_array(weights), desc, dnn.Engine(isa=isa, threads=threads))
        np.testing.assert_array_equal(made.array.view(np.uint32), wanted.array.view(np.uint32))
    g = matrices(m).weights
    exact = np.einsum("xr,ocrs,ys->ocxy", g, weights.astype(np.float64), g)
    held = np.zeros(desc.storage.padded_dims)
    held[: dims[0]] = exact
    found = wanted.array.reshape(-1, m + 2, m + 2, dims[1], panel).transpose(0, 4, 3, 1, 2).reshape(held.shape)
    np.testing.assert_allclose(found, held, rtol=2.0**-24, atol=1e-15)  # rounded once
    pd = dnn.primitive_desc(dnn.Reorder(dnn.MemoryDesc(dims, dnn.f32, "hwio"), desc), engine=dnn.Engine(isa=isa))
    pd.plan.check()
    assert pd.implementation == ("winograd:avx2" if dims[1] * panel % 16 else f"winograd:{isa}")
    np.testing.assert_allclose(weights_matrix(m), matrices(m).weights, rtol=1e-14)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("dtype", "turned"), [(dnn.f32, False), (dnn.f32, True), (dnn.bf16, False)])
def test_wider_vectors_transform_to_the_same_bits(dtype: dnn.DataType, turned: bool) -> None:
    """In whole vectors and where a tap of a panel has none; padding, zeros and numbers of every size among them."""
    random = np.random.default_rng(4)
    for dims, panel in (((9, 5, 3, 3), 16), ((3, 7, 3, 3), 8)):
        weights = np.float32(random.standard_normal(dims) * 10.0 ** random.integers(-30, 30, dims))
        weights[random.random(dims) < 0.3] = -0.0
        stored = weights if dtype == dnn.f32 else np.uint16(weights.view(np.uint32) >> 16)
        desc = WinogradDesc(dims, dtype, 4, panel, turned)
        source = dnn.Memory.from_numpy(stored, dnn.MemoryDesc(dims, dtype, "abcd"))
        pd = dnn.primitive_desc(dnn.Reorder(source.desc, desc), engine=dnn.Engine(isa="avx512_core", threads=1))
        made, wanted = dnn.Memory(desc), dnn.Memory.from_numpy(stored, desc)
        emulate_plan(pd.plan, {"src": source, "dst": made})
        np.testing.assert_array_equal(made.array.view(np.uint8), wanted.array.view(np.uint8))
        assert made.padding_is_zero()


def test_packed_weights_serve_images_of_other_sizes(isa: str) -> None:
    random = np.random.default_rng(2)
    w = random.standard_normal((24, 16, 3, 3)).astype(np.float32)
    packed = dnn.ops.pack_conv_weights(w, (1, 16, 20, 20), padding=1, algorithm="winograd")
    assert isinstance(packed.desc, WinogradDesc)
    for size in (5, 20, 33):
        x = random.standard_normal((2, 16, size, size)).astype(np.float32)
        for y in (dnn.ops.conv2d(x, packed, padding=1), dnn.ops.conv2d(x, w, padding=1, algorithm="winograd")):
            np.testing.assert_allclose(y, dnn.ops.conv2d(x, w, padding=1), atol=1e-4)


def test_what_transformed_weights_refuse() -> None:
    desc = WinogradDesc((8, 8, 3, 3), dnn.f32, 4, 8)
    memory = dnn.Memory(desc)
    x, w = np.ones((1, 8, 9, 9), np.float32), np.ones((8, 8, 3, 3), np.float32)
    calls = (
        memory.numpy,
        memory.view,
        lambda: desc.offset((0, 0, 0, 0)),
        lambda: desc.permute_axes((1, 0, 2, 3)),
        lambda: desc.reshape((64, 9)),
        lambda: dnn.reorder(memory, dnn.MemoryDesc(desc.dims, dnn.f32, "oihw")),
        lambda: dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 2)),
        lambda: WinogradDesc((8, 8, 5, 5), dnn.f32, 4, 8),
        lambda: dnn.ops.conv2d(x, w, algorithm="fft"),  # type: ignore[arg-type]
    )
    for call in calls:
        with pytest.raises(dnn.InvalidArguments):
            call()
    with pytest.raises(dnn.Unimplemented, match="it is for dense 3x3"):
        dnn.ops.conv2d(np.ones((1, 8, 9, 9), np.float32), memory, stride=2)


def test_few_blocks_can_be_shared() -> None:
    for tiles in (1, 3, 4, 16, 49, 100, 196, 3136):
        for rows in (4, 6, 14):
            blocks = blocks_of(tiles, rows)
            counts = [-(-tiles // block) for block in blocks]
            assert all(count >= 8 or count in (4, 6) for count in counts)
            assert counts or tiles <= 4
            assert min(blocks, default=2) > 1  # one row of products would wait for weights


def test_deep_layers_with_few_tiles_go_in_phases() -> None:
    """On any number of threads, of which each then has work."""
    pd = dnn.primitive_desc(Case(1, 256, 256, (14, 14)).desc(), engine=ENGINE)
    assert len(pd.plan.phases) == 3
    assert min(phase.shares for phase in pd.plan.phases) >= 16


def test_small_layers_go_in_blocks() -> None:
    """Two more phases take longer than what they save."""
    for channels, size in ((16, 28), (24, 28), (32, 14)):
        assert len(dnn.primitive_desc(Case(1, channels, channels, (size, size)).desc(), engine=ENGINE).plan.phases) == 1


def test_multiplies_in_two_turns_hide_what_loads_take() -> None:
    """On Zen 4 few tiles read their larger weights from L3 in time; those that L3 does not hold stay small."""
    engine = dnn.Engine(isa="avx512_core", threads=1, machine="zen4", l2_bytes=1 << 20)
    for channels, size, m, phases in ((160, 7, 4, 3), (512, 7, 2, 3), (256, 56, 4, 1)):
        pd = dnn.primitive_desc(Case(1, channels, channels, (size, size)).desc(), engine=engine)
        assert isinstance(pd.weights_desc, WinogradDesc)
        assert (pd.weights_desc.m, len(pd.plan.phases)) == (m, phases)
