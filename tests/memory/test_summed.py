"""Weights with the sums of their columns after them: what lies where, who makes them, who takes them, who does not."""

import copy

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.memory.summed import SummedDesc
from asmdnn.planning.codec import decode_plan, encode_plan

PANELS = dnn.MemoryDesc((10, 21), dnn.s8, "BA16b4a")
EACH = (PANELS, dnn.MemoryDesc((10, 21), dnn.s8, "ab"), dnn.MemoryDesc((3, 10, 21), dnn.s8, "aCB32c4b"))


def numbers(dims: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(3).integers(-128, 128, dims).astype(np.int8)


@pytest.mark.parametrize("plain", EACH, ids=str)
def test_what_lies_where(plain: dnn.MemoryDesc) -> None:
    """Elements as without sums; from the next line on -128 times the sums, then -1 times."""
    desc, values = SummedDesc(plain), numbers(plain.dims)
    memory = dnn.Memory.from_numpy(values, desc)
    data = memory.array.view(np.uint8)
    assert desc.begins[0] % 64 == 0 and 0 <= desc.begins[0] - plain.size_bytes < 64
    assert (data[: plain.size_bytes] == dnn.Memory.from_numpy(values, plain).array.view(np.uint8)).all()
    sums = values.sum(-2, dtype=np.int64).ravel()
    assert (data[desc.begins[0] :].view(np.int32) == np.concatenate((-128 * sums, -sums))).all()
    assert (memory.numpy() == values).all() and memory.padding_is_zero()


@pytest.mark.parametrize("plain", EACH, ids=str)
@pytest.mark.parametrize("level", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
def test_reorders_make_them_and_bring_elements_back(plain: dnn.MemoryDesc, level: str) -> None:
    engine, values = dnn.Engine(isa=level, machine="zen3"), numbers(plain.dims)
    desc, source = SummedDesc(plain), dnn.Memory.from_array(values)
    pd = dnn.primitive_desc(dnn.Reorder(source.desc, desc), engine=engine)
    pd.plan.check()
    found = dnn.reorder(source, desc, engine=engine)
    assert found.array.tobytes() == dnn.Memory.from_numpy(values, desc).array.tobytes()
    assert (dnn.reorder(found, source.desc, engine=engine).numpy() == values).all()


def test_of_other_types_it_is_quantized_first() -> None:
    values = np.random.default_rng(0).integers(-500, 500, (10, 21)).astype(np.float32)
    found = dnn.reorder(dnn.Memory.from_array(values), SummedDesc(PANELS))
    wanted = dnn.Memory.from_numpy(np.clip(values, -128, 127).astype(np.int8), SummedDesc(PANELS))
    assert found.array.tobytes() == wanted.array.tobytes()


def test_it_is_a_format_of_its_own() -> None:
    desc = SummedDesc(PANELS)
    assert desc != PANELS and desc == SummedDesc(PANELS) and hash(desc) == hash(SummedDesc(PANELS))
    assert str(desc) == "s8 10x21 sums:BA16b4a" and not desc.is_dense
    assert copy.deepcopy(desc) == desc and desc.widened(2).dims == (1, 1, 10, 21)
    pd = dnn.primitive_desc(dnn.Reorder(PANELS, desc), engine=dnn.Engine(isa="avx2", machine="zen3"))
    assert decode_plan(encode_plan(pd.plan))[0].tensors == pd.plan.tensors


def test_columns_of_no_rows() -> None:
    desc = SummedDesc(dnn.MemoryDesc((0, 5), dnn.s8, "ab"))
    assert desc.size_bytes == 0 or not dnn.Memory(desc).array.any()


@pytest.mark.parametrize(
    "desc",
    [
        dnn.MemoryDesc((3, 4), dnn.u8, "ab"),
        dnn.MemoryDesc((3, 4), dnn.s8, "any"),
        dnn.MemoryDesc((3,), dnn.s8, "a"),
        SummedDesc(PANELS),
    ],
    ids=str,
)
def test_bad_weights(desc: dnn.MemoryDesc) -> None:
    with pytest.raises(dnn.InvalidArguments, match="have no sums of columns: s8 of 2 dims or more have"):
        SummedDesc(desc)


def test_only_products_take_them() -> None:
    desc = SummedDesc(dnn.MemoryDesc((16, 16), dnn.s8, "ab"))
    plain = dnn.MemoryDesc((16, 16), dnn.s8, "ab")
    match = "with sums of columns, which only products read: reorder it to s8 16x16 ab"
    with pytest.raises(dnn.InvalidArguments, match=f"src is s8 16x16 sums:ab, {match}"):
        dnn.primitive_desc(dnn.MatMul(desc, plain, dnn.MemoryDesc((16, 16), dnn.s32, "ab")))
    with pytest.raises(dnn.InvalidArguments, match=match):
        dnn.primitive_desc(dnn.Shuffle(desc, desc, 0, 4))
