"""What gathers have beside tests/conformance: indices that count from the end, or name nothing; any shape."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.primitives.gather.indices import check_indices
from asmdnn.runtime.execution import program_of
from tests.primitives.guarded import guarded_memory, in_child
from tests.primitives.tensors import write

ISA_LEVELS = ("avx2", "avx512_core")


def describe(
    dims: tuple[int, ...], indices: tuple[int, ...], axis: int, tag: str = "", dtype: dnn.DataType = dnn.f32
) -> dnn.Gather:
    letters = "abcdefgh"
    made = (*dims[:axis], *indices, *dims[axis + 1 :])
    return dnn.Gather(
        dnn.MemoryDesc(dims, dtype, tag or letters[: len(dims)]),
        dnn.MemoryDesc(indices, dnn.s32, letters[: len(indices)]),
        dnn.MemoryDesc(made, dtype, letters[: len(made)]),
        axis,
    )


def data_of(desc: dnn.Gather) -> dict[str, Any]:
    random = np.random.default_rng(3)
    src = random.integers(0, 100, desc.src.dims).astype(desc.src.dtype.numpy)
    return {"src": src, "indices": random.integers(-desc.limit, desc.limit, desc.indices.dims, np.int32)}


def run(desc: dnn.Gather, arrays: dict[str, Any], threads: int = 1, way: str = "gather", isa: Any = "avx2") -> Any:
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=threads))
    assert pd.implementation.partition(":")[0] == way
    memories = {name: dnn.Memory.from_numpy(array, pd.plan.tensors[name]) for name, array in arrays.items()}
    memories["dst"] = dnn.Memory(pd.plan.tensors["dst"])
    dnn.Primitive(pd).execute(**memories)
    return memories["dst"].numpy()


CASES = [
    ((30, 19), (7,), 0), ((30, 19), (2, 3), 0), ((5, 30, 19), (4,), 1), ((5, 30, 19), (3, 2), 2), ((200,), (33,), 0),
    ((3, 20000), (5,), 0), ((2, 3, 4, 9, 5), (2, 2), 2), ((1, 1), (4,), 0), ((4, 3), (0,), 0), ((4, 0), (2,), 0),
]  # fmt: skip


LOOKED_UP = [((5, 30, 19), (3, 2), 2), ((1, 1), (4,), 0), ((4, 0), (2,), 0)]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_axes(case: Any) -> None:
    desc, way = describe(*case), "lanes" if case in LOOKED_UP else "gather"
    arrays = data_of(desc)
    wanted = np.take(arrays["src"], arrays["indices"], desc.axis)
    assert np.array_equal(run(desc, arrays, way=way), wanted)
    assert np.array_equal(run(desc, arrays, threads=2, way=way), wanted)


SHORT = [  # rows, elements that an index chooses from, indices
    (1, 1, 3), (1, 8, 5000), (1, 32, 10_001), (1000, 4, 4), (777, 3, 3), (1, 7, 9), (5000, 2, 1), (41, 17, 40),
    (300, 31, 64), (7, 32, 4096), (3, 9, 4100), (2500, 16, 12),
]  # fmt: skip


@pytest.mark.parametrize("isa", ISA_LEVELS)
@pytest.mark.parametrize("dtype", [dnn.f32, dnn.s32], ids=str)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("sizes", SHORT, ids=str)
def test_short_rows_are_looked_up(isa: Any, dtype: dnn.DataType, wide: bool, sizes: tuple[int, ...]) -> None:
    """Also by the low halves of s64, and with rows apart."""
    rows, limit, count = sizes
    step = 2 if wide else 1
    src = dnn.MemoryDesc((rows, limit), dtype, strides=(limit + 3 * wide, 1))
    dst = dnn.MemoryDesc((rows, count), dtype, strides=(count + wide, 1))
    desc = dnn.Gather(src, dnn.MemoryDesc((count,), dnn.s32, strides=(step,)), dst, 1)
    arrays = data_of(desc)
    dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=2)).plan.check()
    wanted = np.take(arrays["src"], arrays["indices"], 1)
    for threads in (1, 3):
        assert np.array_equal(run(desc, arrays, threads, "lanes", isa), wanted)


@pytest.mark.parametrize("isa", ISA_LEVELS)
@pytest.mark.parametrize("wide", [False, True])
def test_look_ups_stay_inside(isa: Any, wide: bool) -> None:
    """Of all tensors; indices of any bits name elements of their row."""

    def run_unchecked() -> None:
        for rows, limit, count in ((1, 5, 37), (40, 5, 5), (9, 21, 20)):
            src, dst = (dnn.MemoryDesc((rows, n), dnn.f32, "ab") for n in (limit, count))
            desc = dnn.Gather(src, dnn.MemoryDesc((count,), dnn.s32, strides=(1 + wide,)), dst, 1)
            plan = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=1)).plan
            assert plan.implementation.startswith("lanes")
            for at_end in (True, False):
                memories = {name: guarded_memory(tensor, at_end)[0] for name, tensor in plan.tensors.items()}
                write(memories["src"], data_of(desc)["src"])
                write(memories["indices"], np.random.default_rng(1).integers(-(2**31), 2**31, count).astype(np.int32))
                call = program_of(plan, 1)[0].prepare()
                call.bind([memories[name].address for name in plan.tensors], memories)
                call()
                found, given = (memories[name].numpy() for name in ("dst", "src"))
                assert all(np.isin(a, b).all() for a, b in zip(found, given, strict=True))

    assert not in_child(run_unchecked)


@pytest.mark.isa("avx2")
def test_what_registers_do_not_hold_has_a_reason() -> None:
    for desc, reason in (
        (describe((4, 40), (5,), 1), "an index chooses from 40 elements, registers hold 1 to 32"),
        (describe((4, 8), (5,), 1, dtype=dnn.bf16), "elements of bf16 have 2 bytes, lanes have 4"),
        (describe((4, 8), (5,), 0), "indices, or what they write, are not side by side"),
        (describe((4, 32), (1,), 1), "a row of 32 elements in registers does not pay for 1 result"),
    ):
        answers = dnn.implementations(desc, engine=dnn.Engine(isa="avx2", threads=1))
        assert isinstance(answers[0], dnn.Refusal)
        assert (answers[0].implementation, answers[0].reason) == ("lanes:avx2", reason)


@pytest.mark.parametrize("isa", ISA_LEVELS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_plans_are_proved(case: Any, isa: Any) -> None:
    dnn.primitive_desc(describe(*case), engine=dnn.Engine(isa=isa, threads=2)).plan.check()


@pytest.mark.isa("avx2")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_any_shape(data: st.DataObject) -> None:
    sizes = st.integers(1, 12)
    dims = tuple(data.draw(st.lists(sizes, min_size=1, max_size=4)))
    indices, axis = tuple(data.draw(st.lists(sizes, min_size=1, max_size=2))), data.draw(st.integers(0, len(dims) - 1))
    desc = describe(dims, indices, axis, dtype=data.draw(st.sampled_from([dnn.f32, dnn.u8])))
    arrays = data_of(desc)
    dnn.primitive_desc(desc).plan.check()
    (way, *_) = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2")).implementation.split(":")
    assert way in ("gather", "lanes")
    assert np.array_equal(run(desc, arrays, way=way), np.take(arrays["src"], arrays["indices"], axis))


@pytest.mark.isa("avx2")
def test_the_kernels_bound_what_nobody_checked() -> None:
    """Indices that another thread spoils after the check: wrong rows, but no byte outside of src."""

    def run_unchecked() -> None:
        desc = describe((9, 37), (64,), 0)
        plan = dnn.primitive_desc(desc, engine=dnn.Engine(threads=1)).plan
        for at_end in (True, False):
            memories = {name: guarded_memory(tensor, at_end)[0] for name, tensor in plan.tensors.items()}
            write(memories["src"], data_of(desc)["src"])
            spoiled = np.random.default_rng(1).integers(-(2**31), 2**31, 64).astype(np.int32)
            spoiled[:6] = 9, -10, 2**31 - 1, -(2**31), 10, -9
            write(memories["indices"], spoiled)
            call = program_of(plan, 1)[0].prepare()
            call.bind([memories[name].address for name in plan.tensors], memories)
            call()
            rows = memories["src"].numpy()
            assert np.array_equal(memories["dst"].numpy()[:6], rows[[0] * 6])

    assert not in_child(run_unchecked)


@pytest.mark.isa("avx2")
def test_indices_out_of_range() -> None:
    """An error by execute and by every call of a bound primitive, before dst is touched."""
    desc = describe((4, 3), (2, 2), 0)
    primitive = dnn.Primitive(dnn.primitive_desc(desc))
    indices = np.array([[0, 1], [-4, 3]], np.int32)
    memories = {"src": dnn.Memory(desc.src), "indices": dnn.Memory.from_array(indices), "dst": dnn.Memory(desc.dst)}
    bound = primitive.bind(**memories)
    bound()
    for wrong in (4, -5, 2**31 - 1, -(2**31)):
        indices[1, 0] = wrong
        memories["dst"].array[:] = 7
        for call in (bound, lambda: primitive.execute(**memories)):
            with pytest.raises(dnn.InvalidArguments, match=rf"indices\[1, 0\] is {wrong}, axis 0 of src has 4: use -4"):
                call()
        assert (memories["dst"].array == 7).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": dnn.MemoryDesc((2,), dnn.f32, "a")}, "indices are f32, they must be s32"),
        ({"axis": 2}, "axis is 2, the tensors have 2 dims: use -2 to 1"),
        ({"dst": dnn.MemoryDesc((3, 3), dnn.f32, "ab")}, r"dst has dims \(3, 3\), those of src and indices make it"),
        ({"dst": dnn.MemoryDesc((2, 3), dnn.s8, "ab")}, "dst is s8, it must have the type of src, f32"),
        ({"src": dnn.MemoryDesc((0, 3), dnn.f32, "ab")}, "axis 0 of src has no elements"),
        ({"src": dnn.MemoryDesc((4, 3), dnn.f32, "any")}, "src has the format any"),
    ],
)
def test_bad_descriptions(change: dict[str, Any], message: str) -> None:
    good = describe((4, 3), (2,), 0)
    fields = {"src": good.src, "indices": good.indices, "dst": good.dst, "axis": 0}
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.Gather(**{**fields, **change})
    if not change.keys() - {"axis"}:
        return
    with pytest.raises(dnn.Unimplemented, match="a gather has no post-ops"):
        dnn.primitive_desc(good, dnn.Attr([dnn.Eltwise("relu")]))


@pytest.mark.isa("avx2")
def test_arrays() -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((5, 6, 7)).astype(np.float32)
    for axis in (0, 1, -1):
        for indices in (np.array([[0, -1], [3, 2]]), np.int32([4, 4, 0]), np.int64(2), np.zeros((0, 2), np.int64)):
            found = dnn.ops.gather(x, indices, axis)
            assert found.shape == np.take(x, indices, axis).shape
            assert np.array_equal(found, np.take(x, indices, axis))
    strided = np.arange(12).reshape(3, 4)[:, ::2] % 5
    assert np.array_equal(dnn.ops.gather(x[::2, :, 1:], strided, 1), np.take(x[::2, :, 1:], strided, 1))
    out = np.empty((3, 7), np.float32)
    assert dnn.ops.embedding(x[0], [1, -1, 0], out=out) is out
    assert np.array_equal(out, x[0][[1, -1, 0]])
    assert np.array_equal(dnn.ops.gather(np.arange(9, dtype=np.int8), [8, -9]), np.int8([8, 0]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dnn.ops.gather(np.zeros((4, 3), np.float32), [1, 2**40]), r"indices\[1\] is 1099511627776, axis 0"),
        (lambda: dnn.ops.gather(np.zeros((4, 3), np.float32), [-5]), r"indices\[0\] is -5"),
        (lambda: dnn.ops.gather(np.zeros((4, 3), np.float32), [1.0]), "indices have dtype float64, convert them"),
        (lambda: dnn.ops.gather(np.zeros((4, 3), np.float32), [True]), "indices have dtype bool"),
        (lambda: dnn.ops.gather(np.zeros((4, 3), np.float32), [1], 2), "axis is 2"),
        (lambda: dnn.ops.embedding(np.zeros(4, np.float32), [1]), "table has 1 dim, it must be a matrix"),
    ],
)
def test_bad_arrays(call: Any, message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()


@pytest.mark.parametrize(("bad", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (4.0, "4"), (-5.0, "-5")])
def test_indices_that_a_kernel_made(bad: float, shown: str) -> None:
    """They are f32 there, and may be no numbers."""
    with pytest.raises(dnn.InvalidArguments, match=rf"indices\[1\] is {shown}, axis 0 of src has 4: use -4 to 3"):
        check_indices("indices", np.array([0, bad], np.float32), 4, 0)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "f4", "u1", ">i4"])
@pytest.mark.parametrize("least", [0, -10])
def test_limits_of_all_types(dtype: str, least: int) -> None:
    """What has no numbers below 0 is looked at once where the type allows it: what is beside the limits is found."""
    indices = np.arange(24).reshape(4, 6).astype(dtype)[::2, ::-2] % 10
    check_indices("at", indices, 10, 0, least)
    check_indices("at", indices[:0], 10, 0, least)
    check_indices("at", indices[0, 0], 10, 0, least)  # type: ignore[arg-type]
    for wrong in (10, 100, least - 1, -128 if dtype.endswith("i1") else -30000):
        if wrong < 0 and dtype == "u1":
            continue
        changed = indices.copy()
        changed[1, 2] = wrong
        said = rf"at\[1, 2\] is {wrong}, axis 0 of src has 10: use {least} to 9"
        with pytest.raises(dnn.InvalidArguments, match=said):
            check_indices("at", changed, 10, 0, least)
