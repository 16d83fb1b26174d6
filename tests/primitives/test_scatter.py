"""What scatters have beside tests/conformance: indices that name a row again, or nothing; any shape, any threads."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.definitions.moves import scattered as wanted
from asmdnn.errors import PlanError
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.records import replace

ALGS = ("none", "add", "mul", "max", "min")
Array = npt.NDArray[Any]


def desc_of(array: Array) -> dnn.MemoryDesc:
    return dnn.Memory.from_array(array).desc


def run(x: Array, indices: Array, updates: Array, axis: int, alg: Any, threads: int = 1) -> Array:
    memories = {"src": x, "indices": indices, "updates": updates}
    given = {name: dnn.Memory.from_array(array) for name, array in memories.items()}
    desc = dnn.Scatter(*(memory.desc for memory in given.values()), given["src"].desc, axis, alg)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(threads=threads))
    assert pd.implementation.removeprefix("reorder+") == "scatter:avx2"
    pd.plan.check()
    dst = dnn.Memory(pd.dst_desc)
    dnn.Primitive(pd).execute(**given, dst=dst)
    return dst.numpy()


FIELDS: dict[str, Any] = {
    "src": desc_of(np.zeros((4, 3), np.float32)), "indices": desc_of(np.zeros(2, np.int32)),
    "updates": desc_of(np.zeros((2, 3), np.float32)), "dst": desc_of(np.zeros((4, 3), np.float32)),
}  # fmt: skip


@st.composite
def problems(draw: st.DrawFn) -> tuple[Array, Array, Array, int, str]:
    ndims = draw(st.integers(1, 4))
    dims = [draw(st.integers(1, 5)) for _ in range(ndims)]
    axis = draw(st.integers(0, ndims - 1))
    dims[-1] = draw(st.sampled_from((1, 3, 16, 33, 70))) if axis < ndims - 1 else dims[-1]
    count = [draw(st.integers(0, 4)) for _ in range(draw(st.integers(1, 2)))]
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    indices = random.integers(-dims[axis], dims[axis], count, np.int32)
    x = random.standard_normal(dims).astype(np.float32)
    updates = random.standard_normal([*dims[:axis], *count, *dims[axis + 1 :]]).astype(np.float32)
    return x, indices, updates, axis, draw(st.sampled_from(ALGS))


@pytest.mark.isa("avx2")
@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from((1, 2, 3)))
def test_any_scatter(problem: tuple[Array, Array, Array, int, str], threads: int) -> None:
    np.testing.assert_array_equal(run(*problem, threads), wanted(*problem))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize("dims", [(1, 1), (7, 3), (500, 70), (3000, 257)])
def test_in_place(dims: tuple[int, int], alg: Any) -> None:
    """src may be dst; then nothing is copied, but rows that indices name are written as elsewhere."""
    random, indices = np.random.default_rng(2), np.array([0, -1, 0], np.int32)
    x, updates = random.standard_normal(dims, np.float32), random.standard_normal((3, dims[1]), np.float32)
    given = {"src": x.copy(), "indices": indices, "updates": updates}
    memories = {name: dnn.Memory.from_numpy(array, desc_of(array)) for name, array in given.items()}
    desc = dnn.Scatter(*(memory.desc for memory in memories.values()), memories["src"].desc, 0, alg)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(threads=2))
    assert pd.plan.in_place == (("src", "dst"),)
    copies = [kernel for phase in pd.plan.phases for kernel in phase.kernels if isinstance(kernel, RowsSpec)]
    assert copies and all(kernel.in_place for kernel in copies)
    dnn.Primitive(pd).execute(**memories, dst=memories["src"])
    assert np.array_equal(memories["src"].numpy(), wanted(x, indices, updates, 0, alg))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("alg", ALGS)
def test_one_row_again_and_again(alg: str) -> None:
    """In the order of indices, whatever the threads: the last one stays, and sums have one order."""
    random = np.random.default_rng(3)
    x = random.standard_normal((5, 700)).astype(np.float32)
    indices = random.integers(-5, 5, 400, np.int32)
    updates = random.uniform(0.5, 1.5, (400, 700)).astype(np.float32)
    results = [run(x, indices, updates, 0, alg, threads) for threads in (1, 2, 3, 7)]
    np.testing.assert_array_equal(results[0], wanted(x, indices, updates, 0, alg))
    assert all(np.array_equal(results[0], other) for other in results)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("alg", ["max", "min"])
def test_nan_is_handed_on(alg: str) -> None:
    x = np.array([[np.nan], [1.0], [2.0], [np.nan]], np.float32)
    updates = np.array([[3.0], [np.nan], [2.5], [np.nan]], np.float32)
    found = run(x, np.arange(4, dtype=np.int32), updates, 0, alg)
    assert np.isnan(found[[0, 1, 3]]).all() and found[2] == (2.5 if alg == "max" else 2.0)


@pytest.mark.isa("avx2")
def test_indices_lie_anyhow() -> None:
    """Low halves of wide ones, every other one, and a transposed matrix of them, which is copied."""
    random = np.random.default_rng(4)
    x, updates = random.standard_normal((9, 5)).astype(np.float32), random.standard_normal((6, 5)).astype(np.float32)
    numbers = np.array([8, -9, 0, 3, 3, -1], np.int64)
    np.testing.assert_array_equal(run(x, numbers.view(np.int32)[::2], updates, 0, "add"),
                                  wanted(x, numbers, updates, 0, "add"))  # fmt: skip
    matrix = np.ascontiguousarray(numbers.reshape(2, 3).astype(np.int32).T)
    np.testing.assert_array_equal(run(x, matrix.T, updates.reshape(2, 3, 5), 0, "none"),
                                  wanted(x, matrix.T, updates.reshape(2, 3, 5), 0, "none"))  # fmt: skip


@pytest.mark.isa("avx2")
def test_a_large_table_is_one_record_of_rows() -> None:
    """Whose footprint is not listed row by row."""
    x, updates = np.zeros((40_000, 96), np.float32), np.ones((3, 96), np.float32)
    found = run(x, np.array([39_999, 0, -1], np.int32), updates, 0, "add", threads=2)
    assert found[39_999].tolist() == [2.0] * 96 and found.sum() == 3 * 96


@pytest.mark.parametrize("alg", ALGS)
def test_rows_that_stay_must_have_been_written(alg: Any) -> None:
    """Data say which rows a kernel writes: a plan that does not copy src first is no proof that dst is whole."""
    pd = dnn.primitive_desc(dnn.Scatter(**FIELDS, alg=alg), engine=dnn.Engine(threads=1))
    assert len(pd.plan.phases) == 2
    pd.plan.check()
    with pytest.raises(PlanError, match="dst"):
        replace(pd.plan, phases=pd.plan.phases[1:]).check()


@pytest.mark.parametrize("index", [4, -5, 2**31 - 1, -(2**31)])
def test_an_index_of_no_row_is_refused(index: int) -> None:
    x, updates = np.ones((4, 3), np.float32), np.zeros((2, 3), np.float32)
    indices = np.array([0, index], np.int32)
    with pytest.raises(dnn.InvalidArguments, match=rf"indices\[1\] is {index}, axis 0 of src has 4: use -4 to 3"):
        run(x, indices, updates, 0, "none")
    out = x.copy()
    with pytest.raises(dnn.InvalidArguments, match=rf"indices\[1\] is {index}"):
        dnn.ops.scatter(x, indices, updates, out=out)
    assert (out == 1).all(), "nothing is written before"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"alg": "sum"}, r"Scatter.alg must be one of none, add, mul, max, min, not 'sum'"),
        ({"axis": 2}, "axis is 2"),
        ({"indices": desc_of(np.zeros(2, np.float32))}, "indices are f32, they must be s32"),
        ({"updates": desc_of(np.zeros((3, 3), np.float32))}, r"updates has dims \(3, 3\), those of src .* \(2, 3\)"),
        ({"updates": desc_of(np.zeros((2, 3), np.uint8))}, "updates is u8, it must have the type of src, f32"),
        ({"dst": desc_of(np.zeros((5, 3), np.float32))}, r"dst has dims \(5, 3\), src has \(4, 3\)"),
        ({"src": dnn.MemoryDesc((4, 3), dnn.f32, "any")}, "src has the format any"),
        ({"indices": 3}, "indices must be a MemoryDesc, not 3"),
    ],
)
def test_a_wrong_description_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=says):
        dnn.Scatter(**{**FIELDS, **change})


def test_what_is_not_combined_has_a_reason() -> None:
    narrow = {
        name: desc if name == "indices" else dnn.MemoryDesc(desc.dims, dnn.u8, "ab") for name, desc in FIELDS.items()
    }
    with pytest.raises(dnn.Unimplemented, match="src is u8, alg add combines f32, bf16 and f16: use alg none"):
        dnn.primitive_desc(dnn.Scatter(**narrow, alg="add"))
    with pytest.raises(dnn.Unimplemented, match="a scatter has no post-ops"):
        dnn.primitive_desc(dnn.Scatter(**FIELDS), dnn.Attr(post_ops=[dnn.Eltwise("relu")]))


def test_arrays() -> None:
    """Of any type where rows are only moved; an index may be a single number."""
    x = np.arange(12, dtype=np.int8).reshape(4, 3)
    found = dnn.ops.scatter(x, [3, -4], np.full((2, 3), 9, np.int8))
    assert found.tolist() == [[9] * 3, [3, 4, 5], [6, 7, 8], [9] * 3] and x[0, 0] == 0
    assert dnn.ops.scatter(x, np.int64(1), np.zeros((4,), np.int8), axis=1)[:, 1].tolist() == [0] * 4
    halves = np.ones((3, 2), np.float16)
    assert dnn.ops.scatter(halves, [0, 0], np.ones((2, 2), np.float16), reduction="add")[0].tolist() == [3.0, 3.0]
    with pytest.raises(dnn.InvalidArguments, match="reduction must be one of none, add"):
        dnn.ops.scatter(x, [0], x[:1], reduction="sum")
    with pytest.raises(
        dnn.InvalidArguments, match=r"updates has dims \(4, 3\), those of x and indices make it \(1, 3\)"
    ):
        dnn.ops.scatter(x, [0], x)
