"""What top-k has beside tests/conformance: formats that differ, NaN, functions, bad input."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.reduction import top
from asmdnn.planning.tuning import DEFAULT
from tests.support.plans import emulate_plan
from tests.support.tuning import with_numbers


def integers(*dims: int, seed: int = 0) -> Any:
    """With many ties."""
    return np.random.default_rng(seed).integers(-6, 7, dims).astype(np.float32)


def descs(dims: tuple[int, ...], axis: int, tag: str, k: int) -> tuple[dnn.MemoryDesc, ...]:
    """src, indices, values."""
    results = tuple(k if dim == axis % len(dims) else n for dim, n in enumerate(dims))
    return (
        dnn.MemoryDesc(dims, dnn.f32, tag),
        dnn.MemoryDesc(results, dnn.s32, "any"),
        dnn.MemoryDesc(results, dnn.f32, "any"),
    )


def wanted(x: Any, axis: int, k: int, alg: str = "max", last: bool = False) -> tuple[Any, Any]:
    """Indices and numbers."""
    return top(x, k, axis, alg == "max", last)[::-1]


def test_results_that_lie_in_another_order(isa: str) -> None:
    """Than src, than one another, and in blocks that src's channels do not fill."""
    x = integers(2, 1, 9, 5)
    src, tags = dnn.MemoryDesc(x.shape, dnn.f32, "abcd"), ("abcd", "dbca", "aBcd8b")
    for one, other in ((one, other) for one in tags for other in tags):
        dst, values = dnn.MemoryDesc((2, 1, 9, 3), dnn.s32, one), dnn.MemoryDesc((2, 1, 9, 3), dnn.f32, other)
        pd = dnn.primitive_desc(dnn.TopKForward("max", src, dst, 3, values), engine=dnn.Engine(isa=isa))
        pd.plan.check()
        memories = {"src": dnn.Memory.from_numpy(x, src), "dst": dnn.Memory(dst), "values": dnn.Memory(values)}
        dnn.Primitive(pd).execute(**memories)
        places, numbers = wanted(x, 3, 3)
        assert np.array_equal(memories["dst"].numpy(), places) and np.array_equal(memories["values"].numpy(), numbers)
        assert memories["dst"].padding_is_zero() and memories["values"].padding_is_zero()


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("dims", "axis"), [((3, 70), 1), ((3, 4, 21), 1)])
def test_nan_emulated(dims: tuple[int, ...], axis: int) -> None:
    """Where numbers meet NaN, they are searched again."""
    x = integers(*dims)
    x.ravel()[40::50] = np.nan
    src, dst, _ = descs(dims, axis, "abc"[: len(dims)], 1)
    pd = dnn.primitive_desc(dnn.TopKForward("min", src, dst, axis), engine=dnn.Engine(isa="avx512_core", threads=1))
    places = dnn.Memory(pd.plan.tensors["dst"])
    emulate_plan(pd.plan, {"src": dnn.Memory.from_numpy(x, src), "dst": places})
    assert np.array_equal(places.numpy(), x.argmin(axis, keepdims=True))


def test_functions(isa: str) -> None:
    engine = dnn.Engine(isa=isa)
    x = integers(4, 30, 5)
    for axis in (0, 1, -1):
        assert np.array_equal(dnn.ops.argmax(x, axis, engine=engine), x.argmax(axis))
        assert np.array_equal(dnn.ops.argmin(x, axis, keepdims=True, engine=engine), x.argmin(axis, keepdims=True))
        last = wanted(x, axis, 1, "min", last=True)[0]
        found = dnn.ops.argmin(x, axis, keepdims=True, select_last_index=True, engine=engine)
        assert np.array_equal(found, last)
        assert found.dtype == np.int64
    values, indices = dnn.ops.topk(x, 3, 1, largest=False, engine=engine)
    assert np.array_equal(indices, wanted(x, 1, 3, "min")[0])
    assert np.array_equal(values, np.sort(x, 1)[:, :3])


def test_nan_infinities_and_zeros(isa: str) -> None:
    """As numpy for one, and as torch for several; -0 ties with 0."""
    engine, inf = dnn.Engine(isa=isa), np.float32(np.inf)
    x = np.float32([[1, np.nan, inf, -np.nan], [-inf, -0.0, 0.0, -inf], [-0.0, 0.0, -1, -1], [np.nan] * 4, [inf] * 4])
    for a, axis in ((x, 1), (np.ascontiguousarray(x.T), 0)):
        assert np.array_equal(dnn.ops.argmax(a, axis, engine=engine), [1, 1, 0, 0, 0])
        assert np.array_equal(dnn.ops.argmin(a, axis, engine=engine), [1, 0, 2, 0, 0])
        largest, at = dnn.ops.topk(a, 3, axis, engine=engine)
        assert np.array_equal(np.moveaxis(at, axis, 1), [[1, 3, 2], [1, 2, 0], [0, 1, 2], [0, 1, 2], [0, 1, 2]])
        assert np.isnan(np.moveaxis(largest, axis, 1)[[0, 0, 3], [0, 1, 2]]).all()
        smallest, at = dnn.ops.topk(a, 3, axis, largest=False, engine=engine)
        assert np.array_equal(np.moveaxis(at, axis, 1), [[0, 2, 1], [0, 3, 1], [2, 3, 0], [0, 1, 2], [0, 1, 2]])
        assert np.moveaxis(smallest, axis, 1)[0, 1] == inf


def test_extreme_numbers_keep_their_order(isa: str) -> None:
    """Subnormal ones too, unless they are zeros."""
    numbers = np.float32([-3e38, -1.5, -1e-38, -1e-45, 0, 1e-45, 1e-38, 1.5, 3e38])
    src, dst, _ = descs((1, 9), 1, "ab", 9)
    desc = dnn.TopKForward("min", src, dst, 1)
    primitive = dnn.Primitive(dnn.primitive_desc(desc, dnn.Attr(denormals="keep"), dnn.Engine(isa=isa)))
    shuffled = np.random.default_rng(1).permutation(9)
    places = dnn.Memory(primitive.pd.plan.tensors["dst"])
    primitive.execute(src=dnn.Memory.from_numpy(numbers[shuffled][None], src), dst=places)
    assert np.array_equal(numbers[shuffled][places.numpy()[0]], numbers)


def test_bad_input() -> None:
    src, dst, values = descs((2, 40), 1, "ab", 2)
    for arguments, says in (
        (("largest", src, dst, 1), "must be one of max, min"),
        (("max", src, values, 1), "dst is f32, the indices must be s32"),
        (("max", src, dst, 2), "axis is 2, src has 2 dims"),
        (("max", src, dst, 0), "dst has dims"),
        (("max", src, dst, 1, src), "values has dims"),
        (("max", src, dst, 1, values, True), "select_last is of one result, k is 2"),
        (("max", src, dst, 1, None, 1), "select_last must be True or False"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.TopKForward(*arguments)
    x = integers(2, 40)
    for call, says in (
        (lambda: dnn.ops.topk(x, 41), "k is 41, x has 40 elements along axis -1"),
        (lambda: dnn.ops.topk(x, 0), "k is 0"),
        (lambda: dnn.ops.topk(x, "a"), "k must be an integer, not 'a'"),  # type: ignore[arg-type]
        (lambda: dnn.ops.argmax(x, 2), "axis is 2, x has 2 dims"),
        (
            lambda: dnn.ops.argmax(np.zeros((2, 0), np.float32)),
            "x has no elements along axis -1, of which none is the best",
        ),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            call()
    with pytest.raises(dnn.Unimplemented, match="post-ops"):
        dnn.primitive_desc(dnn.TopKForward("max", src, dst, 1), dnn.Attr([dnn.Sum()]))


@pytest.mark.parametrize(
    ("k", "elements", "level"), [(2, 8, "avx2"), (5, 4096, "avx2"), (5, 4097, "avx512_core"), (1, 8, "avx512_core")]
)
def test_lists_of_short_rows_take_ymm_registers(k: int, elements: int, level: str) -> None:
    """A single result needs no lists; the lanes of a column are searched by zmm registers."""
    engine = dnn.Engine(isa="avx512_core", threads=1, machine="skylake_sp")
    for axis, wanted_level in ((1, level), (0, "avx512_core")):
        dims = (64, elements) if axis else (elements, 64)
        src, dst, values = descs(dims, axis, "ab", k)
        pd = dnn.primitive_desc(dnn.TopKForward("max", src, dst, axis, values), engine=engine)
        assert {spec.isa for spec in pd.plan.specs} == {wanted_level}
        assert pd.implementation == ("rows" if axis else "lanes") + ":avx512_core"
        pd.plan.check()


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("elements", "level"), [(24, "avx2"), (40, "avx512_core")])
def test_short_rows_of_one_result_may_take_ymm_registers(elements: int, level: str) -> None:
    tuning = with_numbers(DEFAULT, "topk", narrow_largest=32)
    src, dst, _ = descs((5, elements), 1, "ab", 1)
    engine = dnn.Engine(isa="avx512_core", threads=1, tuning=tuning)
    pd = dnn.primitive_desc(dnn.TopKForward("max", src, dst, 1), engine=engine)
    assert {spec.isa for spec in pd.plan.specs} == {level}
    x = integers(5, elements)
    memories = {"src": dnn.Memory.from_array(x), "dst": dnn.Memory(pd.plan.tensors["dst"])}
    emulate_plan(pd.plan, memories)
    assert np.array_equal(memories["dst"].numpy(), wanted(x, 1, 1)[0])
