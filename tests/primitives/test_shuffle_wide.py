"""Shuffles by permuted vectors: whole plans on an emulated CPU, forced ones on this one, and what the planner takes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.move.permute import PermuteSpec
from asmdnn.generators.move.shuffle import ShuffleSpec
from asmdnn.planning.move_tuning import MoveTuning
from asmdnn.planning.tuning import DEFAULT
from asmdnn.primitives.shuffle.permutes import permute_kernels
from asmdnn.primitives.shuffle.positions import positions_of, runs_of
from asmdnn.primitives.shuffle.schedule import Placed, ShuffledDim, pixels_of, unit_kernels
from tests.support.plans import emulate_plan, proved_desc

CHEAP = replace(DEFAULT, moves=MoveTuning(permute_cost=0.1))  # permutations wherever vectors fit


def planned(dims: tuple[int, ...], tag: str, groups: int, engine: dnn.Engine) -> dnn.PrimitiveDesc:
    desc = dnn.MemoryDesc(dims, dnn.f32, tag)
    return proved_desc(dnn.Shuffle(desc, desc, 1, groups), engine=engine)


def permutes(pd: dnn.PrimitiveDesc) -> bool:
    return any(isinstance(spec, PermuteSpec) for spec in pd.plan.specs)


def memories_of(pd: dnn.PrimitiveDesc) -> dict[str, dnn.Memory]:
    desc = pd.plan.tensors["src"]
    values = np.arange(desc.nelems(), dtype=np.float32).reshape(desc.dims)
    return {"src": dnn.Memory(desc, values), "dst": dnn.Memory(desc)}


def assert_shuffled(memories: dict[str, dnn.Memory], groups: int) -> None:
    src = memories["src"].numpy()
    n, c, *rest = src.shape
    shuffled = src.reshape(n, c // groups, groups, *rest).swapaxes(1, 2).reshape(src.shape)
    assert np.array_equal(memories["dst"].numpy(), shuffled)


WIDE = [
    ((1, 48, 3, 3), "nhwc", 2), ((1, 48, 3, 3), "nhwc", 24), ((2, 36, 2, 5), "nhwc", 3), ((1, 64, 3, 3), "nChw16c", 2),
    ((1, 96, 3, 4), "nChw16c", 32),
]  # fmt: skip


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("dims", "tag", "groups"), WIDE)
def test_results(dims: tuple[int, ...], tag: str, groups: int) -> None:
    pd = planned(dims, tag, groups, dnn.Engine(isa="avx512_core", threads=1, machine="skylake_sp"))
    assert pd.implementation == "units:avx512_core"
    assert permutes(pd)
    memories = memories_of(pd)
    emulate_plan(pd.plan, memories)
    assert_shuffled(memories, groups)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("dims", "tag", "groups"), [*WIDE, ((1, 48, 3, 3), "nChw8c", 2), ((32, 64, 64, 64), "nhwc", 2)]
)
def test_ymm_registers(dims: tuple[int, ...], tag: str, groups: int) -> None:
    """The last one streams."""
    pd = planned(dims, tag, groups, dnn.Engine(isa="avx2", threads=2, tuning=CHEAP))
    assert permutes(pd)
    memories = memories_of(pd)
    dnn.Primitive(pd).execute(**memories)
    assert_shuffled(memories, groups)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("dtype", [dnn.u8, dnn.bf16])
@pytest.mark.parametrize(
    ("dims", "tag", "groups"),
    [
        ((1, 48, 3, 5), "nhwc", 3),
        ((1, 64, 3, 3), "nChw8c", 2),
        ((1, 96, 5, 3), "nChw16c", 8),
        ((1, 20, 9, 11), "nchw", 5),
    ],
)
def test_small_elements(dtype: dnn.DataType, dims: tuple[int, ...], tag: str, groups: int) -> None:
    """By units of four pixels and the rest; rows of nchw, which are copied."""
    desc = dnn.MemoryDesc(dims, dtype, tag)
    pd = dnn.primitive_desc(
        dnn.Shuffle(desc, desc, 1, groups), engine=dnn.Engine(isa="avx512_core", threads=1, machine="skylake_sp")
    )
    pd.plan.check()
    assert any(spec.name.endswith("__avx512_core") for spec in pd.plan.specs)
    values = dnn.Memory.from_array((np.arange(np.prod(dims)) % 251).astype(np.float32).reshape(dims))
    memories = {"src": dnn.reorder(values, desc), "dst": dnn.Memory(desc)}
    emulate_plan(pd.plan, memories)
    found = dnn.reorder(memories["dst"], dnn.MemoryDesc(dims, dnn.f32, "nchw"))
    assert_shuffled({"src": values, "dst": found}, groups)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("dims", "groups"), [((1, 48, 3, 3), 2), ((2, 64, 5, 4), 32)])
def test_two_pixels_of_8_channels(dims: tuple[int, ...], groups: int) -> None:
    """Vectors of nChw8c have two pixels; an odd one is moved by units."""
    pd = planned(dims, "nChw8c", groups, dnn.Engine(isa="avx512_core", threads=1, machine="skylake_sp"))
    odd = dims[2] * dims[3] % 2
    assert permutes(pd) and any(isinstance(spec, ShuffleSpec) for spec in pd.plan.specs) == bool(odd)
    memories = memories_of(pd)
    emulate_plan(pd.plan, memories)
    assert_shuffled(memories, groups)


def test_units_where_permutations_cost_more() -> None:
    """With ymm registers; where src has many rows; and what vectors do not fit: padding, short rows, bytes."""
    wide = dnn.Engine(isa="avx512_core", threads=1, machine="skylake_sp")
    assert not permutes(planned((1, 240, 7, 7), "nhwc", 2, dnn.Engine(isa="avx2", threads=1)))
    assert not permutes(planned((1, 240, 7, 7), "nhwc", 8, wide))
    assert not permutes(planned((1, 24, 7, 7), "nChw16c", 2, wide))
    assert not permutes(planned((1, 12, 7, 7), "nhwc", 2, wide))
    desc = dnn.MemoryDesc((1, 240, 7, 7), dnn.u8, "nhwc")
    assert not permutes(dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 2), engine=wide))


def test_long_axes_are_several_kernels() -> None:
    """At most 64 vectors each; a row that no vector divides cannot be cut."""
    wide = dnn.Engine(isa="avx512_core", threads=1, machine="skylake_sp")
    kernels = planned((1, 16 * 100, 2, 2), "nhwc", 2, wide).plan.specs
    assert sorted(len(spec.units) for spec in kernels if isinstance(spec, PermuteSpec)) == [36, 64]
    assert not permutes(planned((1, 16 * 100 + 2, 2, 2), "nhwc", 2, wide))


@pytest.mark.parametrize(
    ("images", "cost", "level"), [(1, 1.0, "avx512_core"), (1, 1.9, "avx2"), (16, 1.9, "avx512_core")]
)
def test_what_wide_units_cost_in_the_caches(images: int, cost: float, level: str) -> None:
    """Eight groups of 240 channels at 28x28: 0.75 MB stay in the caches, 12 MB go past them in whole lines."""
    tuning = replace(DEFAULT, moves=MoveTuning(wide_shuffle_cost=cost))
    desc = dnn.MemoryDesc((images, 240, 28, 28), dnn.f32, "acdb")
    engine = dnn.Engine(isa="avx512_core", threads=1, tuning=tuning)
    pd = dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 8), engine=engine)
    assert {spec.isa for spec in pd.plan.specs} == {level}  # type: ignore[attr-defined]
    pd.plan.check()


@pytest.mark.parametrize(
    ("tag", "cost", "kind"), [("acdb", 9.0, PermuteSpec), ("aBcd16b", 1.0, PermuteSpec), ("aBcd16b", 1.4, ShuffleSpec)]
)
def test_what_permuted_blocks_cost_in_the_caches(tag: str, cost: float, kind: type) -> None:
    """Three groups of 80 channels; the cost of blocks is none of dense channels."""
    tuning = replace(DEFAULT, moves=MoveTuning(wide_shuffle_cost=1.9, blocked_permute_cost=cost))
    desc = dnn.MemoryDesc((1, 240, 28, 28), dnn.f32, tag)
    engine = dnn.Engine(isa="avx512_core", threads=1, tuning=tuning)
    pd = dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 3), engine=engine)
    assert {type(spec) for spec in pd.plan.specs} == {kind}
    pd.plan.check()


@pytest.mark.parametrize(("images", "streams"), [(1, False), (16, True)])
@pytest.mark.parametrize(("isa", "machine"), [("avx2", "zen3"), ("avx512_core", "zen4")])
def test_what_fills_lines_goes_first_past_the_caches(isa: str, machine: str, images: int, streams: bool) -> None:
    """Eight groups by units write quarters of eight lines, by vectors whole ones."""
    desc = dnn.MemoryDesc((images, 240, 28, 28), dnn.f32, "acdb")
    pd = dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, 8), engine=dnn.Engine(isa=isa, threads=1, machine=machine))
    (spec,) = pd.plan.specs
    assert (type(spec), spec.streaming) == (PermuteSpec if streams else ShuffleSpec, streams)  # type: ignore[attr-defined]
    pd.plan.check()


@pytest.mark.parametrize(("groups", "level"), [(2, "avx512_core"), (3, "avx2"), (4, "avx2"), (8, "avx2"), (16, "avx2")])
def test_vectors_of_many_places_past_the_caches_are_narrow_on_zen_5(groups: int, level: str) -> None:
    desc = dnn.MemoryDesc((16, 240, 28, 28), dnn.f32, "acdb")
    engine = dnn.Engine(isa="avx512_core", threads=1, machine="zen5")
    pd = dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, groups), engine=engine)
    kinds = {(type(spec), spec.isa, spec.streaming) for spec in pd.plan.specs}  # type: ignore[attr-defined]
    assert kinds == {(PermuteSpec, level, True)}
    pd.plan.check()


BLOCKED, DENSE = ("aBcd8b", "aBcd16b"), ("acdb",)
# group_size of 240 channels, formats; instructions for a vector by units with ymm, zmm, and by vectors; sources; choice
COUNTED = [
    (2, BLOCKED, (6, 5, 3), 2, "units"), (3, BLOCKED, (26 / 3, 19 / 3, 4), 3, "units"),
    (4, BLOCKED, (8, 6, 5), 4, "units"), (60, BLOCKED, (8, 6, 5), 4, "units"), (80, BLOCKED, (10, 7, 4), 3, "vectors"),
    (120, BLOCKED, (6, 5, 3), 2, "vectors"), (2, DENSE, (6, 5, 3), 2, "vectors"),
    (4, DENSE, (8, 6, 5), 4, "units"), (120, DENSE, (6, 5, 3), 2, "vectors"),
]  # fmt: skip


@pytest.mark.parametrize(("groups", "tags", "counts", "sources", "way"), COUNTED)
def test_units_of_many_sources_on_zen_5(
    groups: int, tags: tuple[str, ...], counts: tuple[float, ...], sources: int, way: str
) -> None:
    """Zmm registers where a vector of dst comes from two places, which L1 still holds; by count all would take them."""
    assert min(counts) == counts[-1], "fewest instructions by vectors"
    for tag, (machine, wanted) in product(tags, {"zen5": way, "skylake_sp": "vectors"}.items()):
        desc = dnn.MemoryDesc((1, 240, 28, 28), dnn.f32, tag)
        engine = dnn.Engine(isa="avx512_core", threads=1, machine=machine)
        shuffled = ShuffledDim(desc, 1, groups)
        step = runs_of(dnn.f32.size_bytes * positions_of(desc, 1))[0]
        axis = shuffled.axis(step)
        narrow = unit_kernels(axis, step, engine.tuning.moves)
        wide = [(replace(spec, isa="avx512_core"), *at) for spec, *at in narrow]
        vectors = permute_kernels("avx512_core", axis, step, engine.tuning.moves.permuted_units)
        assert [per_vector(kernels, step) for kernels in (narrow, wide, vectors)] == pytest.approx(counts)
        assert {spec.sources for spec, *_ in vectors} == {sources}
        pd = dnn.primitive_desc(dnn.Shuffle(desc, desc, 1, groups), engine=engine)
        kind, level = (PermuteSpec, "avx512_core") if wanted == "vectors" else (ShuffleSpec, "avx2")
        assert {(type(spec), spec.isa) for spec in pd.plan.specs} == {(kind, level)}  # type: ignore[attr-defined]
        pd.plan.check()


def per_vector(kernels: Placed, step: int) -> float:
    """Instructions for 16 of 240 channels."""
    pixels = ((spec.operations, spec.pixels_together * pixels_of(spec, step)) for spec, _, _ in kernels)
    return sum(count / together for count, together in pixels) / (240 // 16)


def test_bytes_of_many_sources_on_zen_5() -> None:
    """Of four rows: with zmm registers, as was measured; the cost is of f32."""
    desc = dnn.MemoryDesc((1, 240, 28, 28), dnn.u8, "acdb")
    pd = dnn.primitive_desc(
        dnn.Shuffle(desc, desc, 1, 4), engine=dnn.Engine(isa="avx512_core", threads=1, machine="zen5")
    )
    assert {spec.isa for spec in pd.plan.specs} == {"avx512_core"}  # type: ignore[attr-defined]
    pd.plan.check()
