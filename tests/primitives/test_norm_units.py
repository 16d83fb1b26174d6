"""Group norms that go unit by unit: when, with the bits of statistics of the whole tensor, whatever comes after."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.normalization import by_channels, by_groups, moments, normalized
from asmdnn.generators.functions.elementwise import ElementwiseSpec
from asmdnn.primitives.core.engine import NEVER
from asmdnn.primitives.core.uses import inside
from tests.support.plans import emulate_plan, proved_desc
from tests.support.tuning import with_numbers

TRAINING, EPSILON = dnn.PropKind.forward_training, 1e-5
Dims = tuple[int, ...]


def engine(isa: Any = "avx2", threads: int = 1, **numbers: Any) -> dnn.Engine:
    """Of a machine of 512 KiB L2, with other numbers of normalizations."""
    found = dnn.Engine(isa=isa, threads=threads, machine="zen3", l2_bytes=512 << 10)
    return replace(found, tuning=with_numbers(found.tuning, "normalization", **numbers))


def by_units(isa: Any, threads: int = 1) -> dnn.Engine:
    """That takes units of any size."""
    return engine(isa, threads, near_unit_bytes=1, far_unit_bytes=1 << 40)


def in_phases(isa: Any, threads: int = 1) -> dnn.Engine:
    return engine(isa, threads, least_units=NEVER)


def described(dims: Dims, tag: str, groups: int, dtype: dnn.DataType = dnn.f32, kept: bool = True) -> Any:
    tensor, vector = dnn.MemoryDesc(dims, dtype, tag), dnn.MemoryDesc(dims[1:2], dnn.f32, "a")
    statistics = dnn.MemoryDesc((dims[0], groups), dnn.f32, "ab")
    more: dict[str, Any] = {"mean": statistics, "variance": statistics} if kept else {}
    return dnn.GroupNormForward(TRAINING, tensor, tensor, groups, EPSILON, scale=vector, shift=vector, **more)


def numbers(name: str, dims: Dims) -> Any:
    """The same for every plan, whatever the order of its tensors."""
    values = np.random.default_rng(sum(map(ord, name))).standard_normal(dims) + 1
    return values.astype(np.float32)


def filled(pd: dnn.PrimitiveDesc) -> dict[str, Any]:
    return {name: dnn.Memory.from_numpy(numbers(name, desc.dims), desc) for name, desc in pd.plan.tensors.items()}


def results(pd: dnn.PrimitiveDesc) -> dict[str, Any]:
    memories = filled(pd)
    dnn.Primitive(pd).execute(**memories)
    return {name: memories[name].numpy() for name in pd.plan.outputs}


def wanted(dims: Dims, groups: int) -> dict[str, Any]:
    """In double precision."""
    x = by_groups(numbers("src", dims).astype(np.float64), groups)
    mean, variance = moments(x, (2, 3))
    dst = normalized(x, mean, variance, EPSILON).reshape(dims)
    scale, shift = (by_channels(numbers(name, dims[1:2]), len(dims)) for name in ("scale", "shift"))
    return {"dst": dst * scale + shift, "mean": mean.reshape(-1, groups), "variance": variance.reshape(-1, groups)}


def goes_by_units(pd: dnn.PrimitiveDesc) -> bool:
    return len(pd.plan.phases) == 1 and pd.plan.phases[0].groups is not None


# (dims, format, groups, units): long and short rows, blocks of groups, channels last, groups of one channel, a row
SHAPES = [
    ((2, 32, 9, 30), "abcd", 8, 16),
    ((3, 40, 5, 5), "abcd", 8, 24),
    ((2, 64, 5, 7), "aBcd8b", 8, 16),
    ((16, 24, 5, 7), "acdb", 4, 16),
    ((2, 16, 90, 100), "abcd", 16, 32),
    ((4, 12, 30), "abc", 12, 48),
    ((4, 12, 3, 4, 5), "abcde", 4, 16),
    ((1, 32, 40, 40), "abcd", 16, 16),
]


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(("dims", "tag", "groups", "units"), SHAPES, ids=str)
def test_units_have_the_bits_of_phases(isa: str, dims: Dims, tag: str, groups: int, units: int, kept: bool) -> None:
    request = described(dims, tag, groups, kept=kept)
    phases = proved_desc(request, engine=in_phases(isa))
    assert not goes_by_units(phases)
    before, exact = results(phases), wanted(dims, groups)
    for threads in (1, 2, 3, 7):
        pd = proved_desc(request, engine=by_units(isa, threads))
        assert goes_by_units(pd)
        assert pd.plan.phases[0].rounds == units
        assert pd.implementation == f"group_norm:{isa}"
        for name, found in results(pd).items():
            np.testing.assert_array_equal(found, before[name])
            np.testing.assert_allclose(found, exact[name], 2e-5, 2e-5)


@pytest.mark.parametrize(
    ("dims", "tag", "groups", "is_taken"),
    [
        ((1, 128, 64, 64), "abcd", 128, True),  # units of 16 KiB
        ((1, 128, 28, 28), "abcd", 32, True),  # 12 KiB
        ((1, 256, 28, 28), "abcd", 256, False),  # 3 KiB
        ((1, 256, 64, 64), "abcd", 128, False),  # 32 KiB, in the cache
        ((16, 256, 56, 56), "abcd", 32, True),  # past the caches
        ((16, 256, 56, 56), "aBcd8b", 32, True),
        ((16, 256, 56, 56), "aBcd16b", 32, False),  # blocks of two groups
        ((16, 256, 56, 56), "acdb", 32, False),  # images larger than L2
        ((64, 128, 28, 28), "acdb", 32, True),
        ((1, 64, 512, 512), "abcd", 32, False),  # groups larger than L2
        ((8, 64, 56, 56), "abcd", 1, False),  # eight units
    ],
    ids=str,
)
def test_when_units_are_taken(dims: Dims, tag: str, groups: int, is_taken: bool) -> None:
    pd = dnn.primitive_desc(described(dims, tag, groups), engine=engine())
    assert goes_by_units(pd) == is_taken
    assert pd.implementation == "group_norm:avx2"
    half = dnn.primitive_desc(described(dims, tag, groups, dnn.bf16), engine=engine())
    assert not goes_by_units(half)


def test_gaps_and_padding_stay_with_phases() -> None:
    """Images apart from one another, and channels that do not fill their blocks."""
    plane = dnn.MemoryDesc((4, 8, 20, 20), dnn.f32, strides=(8000, 400, 20, 1))
    for desc in (plane, dnn.MemoryDesc((4, 20, 20, 20), dnn.f32, "aBcd8b")):
        request = dnn.GroupNormForward(TRAINING, desc, desc, 4)
        assert not goes_by_units(proved_desc(request, engine=by_units("avx2")))


@pytest.mark.parametrize(("tag", "groups"), [("acbd", 1), ("bacd", 4), ("cadb", 1)])
def test_other_orders_of_dims_stay_with_phases(tag: str, groups: int) -> None:
    """Their statistics are taken in an order that the number of images decides."""
    pd = proved_desc(described((20, 4, 3, 30), tag, groups), engine=by_units("avx2"))
    assert not goes_by_units(pd)
    for name, found in results(pd).items():
        np.testing.assert_allclose(found, wanted((20, 4, 3, 30), groups)[name], 2e-5, 2e-5)


def test_only_results_are_written_past_the_caches() -> None:
    plan = proved_desc(described((16, 64, 56, 56), "abcd", 32), engine=engine()).plan
    maps = [spec for spec in map(inside, plan.specs) if isinstance(spec, ElementwiseSpec)]
    assert [spec.streaming for spec in maps if spec.elements == 56 * 56] == [True]
    assert not any(spec.streaming for spec in maps if spec.elements < 56 * 56)
    near = proved_desc(described((1, 64, 56, 56), "abcd", 64), engine=engine()).plan
    assert not any(spec.streaming for spec in map(inside, near.specs) if isinstance(spec, ElementwiseSpec))


def test_scratch_of_threads_lies_apart() -> None:
    """Two lines that a CPU fetches together are not written by two threads."""
    plan = dnn.primitive_desc(described((1, 128, 64, 64), "abcd", 128), engine=engine()).plan
    assert set(plan.per_part) == set(plan.scratch_bytes)
    assert all(plan.scratch_stride(name) >= 3 * 64 for name in plan.per_part)


@pytest.mark.parametrize("tag", ["abcd", "aBcd8b", "acdb"])
def test_post_ops_read_their_part(isa: str, tag: str) -> None:
    dims, groups = (16, 32, 4, 9), 4
    tensors = {
        "binary_0": dnn.MemoryDesc(dims, dnn.f32, tag),
        "binary_1": dnn.MemoryDesc((1, 32, 1, 1), dnn.f32, "abcd"),
        "prelu_2": dnn.MemoryDesc((16, 1, 1, 1), dnn.f32, "abcd"),
        "other_3": dnn.MemoryDesc((1, 32, 4, 9), dnn.f32, "any"),
    }
    attr = dnn.Attr([
        dnn.Binary("add", tensors["binary_0"]), dnn.Binary("mul", tensors["binary_1"]), dnn.PReLU(tensors["prelu_2"]),
        dnn.PostOp(lambda x, other: x * 0.5 + other, other=tensors["other_3"]), dnn.Sum(0.5),
    ])  # fmt: skip
    request = described(dims, tag, groups)
    plans = [proved_desc(request, attr, way(isa, 2)) for way in (in_phases, by_units)]
    assert [goes_by_units(pd) for pd in plans] == [False, True]
    before, found = map(results, plans)
    np.testing.assert_array_equal(found["dst"], before["dst"])
    others = {name: numbers(name, desc.dims) for name, desc in tensors.items()}
    x = (wanted(dims, groups)["dst"] + others["binary_0"]) * others["binary_1"]
    x = np.where(x > 0, x, x * others["prelu_2"]) * 0.5 + others["other_3"] + 0.5 * numbers("dst", dims)
    np.testing.assert_allclose(found["dst"], x, 5e-5, 5e-5)


@pytest.mark.parametrize("tag", ["abcd", "acdb"])
def test_in_place(isa: str, tag: str) -> None:
    dims, groups = (16, 16, 6, 9), 4
    pd = proved_desc(described(dims, tag, groups, kept=False), engine=by_units(isa, 3))
    assert goes_by_units(pd)
    assert pd.plan.in_place == (("src", "dst"),)
    memories = filled(pd)
    dnn.Primitive(pd).execute(**memories | {"dst": memories["src"]})
    np.testing.assert_allclose(memories["src"].numpy(), wanted(dims, groups)["dst"], 2e-5, 2e-5)


def test_vectors_whose_elements_lie_apart(isa: str) -> None:
    """They are copied before and after all units."""
    dims, groups = (4, 8, 5, 9), 4
    dense, tensor = described(dims, "abcd", groups), dnn.MemoryDesc(dims, dnn.f32, "abcd")
    apart = dnn.MemoryDesc((8,), dnn.f32, strides=(3,))
    statistics = dnn.MemoryDesc((4, 4), dnn.f32, "ba")
    request = dnn.GroupNormForward(TRAINING, tensor, tensor, groups, EPSILON, apart, apart, statistics, statistics)
    pd = proved_desc(request, engine=by_units(isa, 2))
    assert pd.implementation == f"reorder+group_norm:{isa}"
    found, before = results(pd), results(proved_desc(dense, engine=by_units(isa)))
    for name in before:
        np.testing.assert_array_equal(found[name], before[name])


@pytest.mark.emulated("avx512_core")
def test_units_emulated() -> None:
    pd = proved_desc(described((2, 16, 5), "abc", 8), engine=by_units("avx512_core"))
    assert goes_by_units(pd)
    memories = filled(pd)
    emulate_plan(pd.plan, memories)
    for name, exact in wanted((2, 16, 5), 8).items():
        np.testing.assert_allclose(memories[name].numpy(), exact, 2e-5, 2e-5)
