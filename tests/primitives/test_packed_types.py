"""s4 and u4: two elements in a byte, in descriptors, memories and reorders; and where they are refused."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.support.drawing import RANDOM
from tests.support.plans import emulate_plan, proved_desc

LIMITS = {dnn.s4: (-8, 7), dnn.u4: (0, 15)}
LAYOUTS = ["ab", "ba", "BA16b8a", "Ab2a"]


def integers(dtype: dnn.DataType, *dims: int) -> Any:
    least, most = LIMITS[dtype]
    return RANDOM.integers(least, most, dims, endpoint=True).astype(np.int8 if least else np.uint8)


@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("tag", LAYOUTS)
def test_memories_hold_two_in_a_byte(dtype: dnn.DataType, tag: str) -> None:
    """The first of two neighbours is in the lower half; padding is zero; what goes in comes out."""
    desc, numbers = dnn.MemoryDesc((6, 20), dtype, tag), integers(dtype, 6, 20)
    memory = dnn.Memory.from_numpy(numbers, desc)
    assert desc.size_bytes == memory.array.nbytes == desc.nelems(with_padding=True) // 2
    assert memory.array.dtype == np.uint8
    assert np.array_equal(memory.numpy(), numbers)
    assert memory.numpy().dtype == numbers.dtype
    assert memory.padding_is_zero()
    for index in ((0, 0), (3, 7), (5, 19)):
        byte, half = divmod(desc.offset(index), 2)
        assert (int(memory.array[byte]) >> 4 * half) % 16 == numbers[index] % 16
    with pytest.raises(BufferError, match="has two elements in a byte, so no array views them"):
        memory.view()


def test_bytes_as_they_are() -> None:
    octets = np.array([[0x21, 0xF3], [0x80, 0x7E]], np.uint8)
    signed = dnn.Memory.from_array(octets, dnn.s4)
    assert signed.desc == dnn.MemoryDesc((2, 4), dnn.s4, "ab")
    assert signed.numpy().tolist() == [[1, 2, 3, -1], [0, -8, -2, 7]]
    assert dnn.Memory.from_array(octets, dnn.u4).numpy().tolist() == [[1, 2, 3, 15], [0, 8, 14, 7]]
    assert np.shares_memory(signed.array, octets)
    given = np.array([[-8, 7]]).astype(ml_dtypes.int4)
    assert dnn.Memory.from_numpy(given, dnn.MemoryDesc((1, 2), dnn.s4, "ab")).array.tolist() == [0x78]
    padded = dnn.Memory(dnn.MemoryDesc((2, 3), dnn.u4, "aB4b"), np.full(4, 0xFF, np.uint8))
    assert padded.array.tolist() == [0xFF, 0x0F, 0xFF, 0x0F]
    assert padded.first_stray() is None


@pytest.mark.parametrize(("dims", "layout", "says"), [
    ((4, 5), {"tag": "ab"}, "have 5 elements side by side in dim 1: their number must be even"),
    ((5, 4), {"tag": "ba"}, "have 5 elements side by side in dim 0: their number must be even"),
    ((1,), {"tag": "a"}, "reach over 1 element: their number must be even"),
    ((4, 4), {"strides": (5, 1)}, "have a stride of 5 in dim 0: it must be even"),
    ((4, 4), {"strides": (4, 1), "offset0": 1}, "begin at element 1, within a byte: begin at an even one"),
    ((4, 6), {"tag": "aB3b"}, "have blocks of 3 elements: their number must be even"),
])  # fmt: skip
def test_layouts_that_split_a_byte_are_refused(dims: tuple[int, ...], layout: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArguments, match=f"of s4, two in a byte, {says}"):
        dnn.MemoryDesc(dims, dnn.s4, **layout)


def test_parts_begin_and_end_at_whole_bytes() -> None:
    memory = dnn.Memory.from_numpy(integers(dnn.s4, 4, 8), dnn.MemoryDesc((4, 8), dnn.s4, "ab"))
    part = dnn.Memory(memory.desc.submemory((2, 4), (1, 2)), memory.array, padding_is_zero=True)
    assert np.array_equal(part.numpy(), memory.numpy()[1:3, 2:6])
    for dims, offsets, says in (((2, 4), (0, 1), "begin at element 1"), ((2, 3), (0, 0), "have 3 elements")):
        with pytest.raises(InvalidArguments, match=f"two in a byte, {says}"):
            memory.desc.submemory(dims, offsets)


def test_numbers_out_of_range_are_refused() -> None:
    desc = dnn.MemoryDesc((1, 2), dnn.s4, "ab")
    with pytest.raises(InvalidArguments, match="array has numbers from -9 to 0, s4 has -8 to 7"):
        dnn.Memory.from_numpy(np.array([[-9, 0]], np.int8), desc)
    with pytest.raises(InvalidArguments, match="array has elements of float32"):
        dnn.Memory.from_numpy(np.zeros((1, 2), np.float32), desc)
    with pytest.raises(InvalidArguments, match="two elements of 4 bits each lie in a byte of a C-contiguous array"):
        dnn.Memory.from_array(np.zeros((2, 4), np.int8), dnn.s4)


TYPES = {dnn.f32: np.float32, dnn.s8: np.int8, dnn.u8: np.uint8}
REORDERS = [("ab", "BA16b8a"), ("BA16b8a", "ba"), ("ab", "ab")]


def wanted(x: Any, dtype: dnn.DataType, scale: float = 1.0, zero: float = 0.0) -> Any:
    least, most = LIMITS[dtype] if dtype in LIMITS else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
    return np.clip(np.rint(x.astype(np.float64) / scale + zero), least, most)


@pytest.mark.parametrize("isa", [pytest.param(x, marks=pytest.mark.isa(x)) for x in ("avx2", "avx512_core")])
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("tags", REORDERS, ids=str)
@pytest.mark.parametrize("other", TYPES, ids=str)
def test_reorders(isa: str, dtype: dnn.DataType, tags: tuple[str, str], other: dnn.DataType) -> None:
    """To 4 bits rounded to nearest even and saturated, and from them exactly; beyond one piece, too."""
    dims, engine = (90, 218), dnn.Engine(isa=isa, threads=2)
    x = RANDOM.uniform(-20, 20, dims).astype(np.float32) if other == dnn.f32 else integers(dnn.u4, *dims)
    x = x.astype(TYPES[other])
    src = dnn.Memory.from_numpy(x, dnn.MemoryDesc(dims, other, tags[0]))
    target = dnn.MemoryDesc(dims, dtype, tags[1])
    pd = proved_desc(dnn.Reorder(src.desc, target), engine=engine)
    assert pd.implementation == f"nibbles+reorder:{isa}"
    narrow = dnn.reorder(src, target, engine)
    assert np.array_equal(narrow.numpy(), wanted(x, dtype))
    assert narrow.padding_is_zero()
    back = dnn.reorder(narrow, src.desc, engine)
    exact = narrow.numpy().astype(np.float64)
    assert np.array_equal(back.numpy(), exact if other == dnn.f32 else wanted(exact, other))


@pytest.mark.isa("avx2")
def test_scales_and_zero_points() -> None:
    x, scales = RANDOM.uniform(-20, 20, (16, 6)).astype(np.float32), np.float32([1, 2, 3, 4, 5, 0.5])
    src, dst = dnn.Memory.from_array(x), dnn.Memory(dnn.MemoryDesc((16, 6), dnn.u4, "ab"))
    attr = dnn.Attr(scales={"dst": 2}, zero_points={"dst": 0})
    pd = proved_desc(dnn.Reorder(src.desc, dst.desc), attr, dnn.Engine(isa="avx2"))
    numbers = {"dst_scales": scales, "dst_zero_points": np.array([8], np.int32)}
    dnn.Primitive(pd).execute(src=src, dst=dst, **{n: dnn.Memory.from_array(a) for n, a in numbers.items()})
    assert np.abs(dst.numpy() - wanted(x, dnn.u4, scales, 8)).max() <= 1  # 1 / scale is rounded
    assert (dst.numpy() == wanted(x, dnn.u4, scales, 8)).mean() > 0.9


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_emulated(isa: str) -> None:
    x = integers(dnn.s4, 6, 34)
    narrow = dnn.Memory.from_numpy(x, dnn.MemoryDesc((6, 34), dnn.s4, "ab"))
    for target in (dnn.MemoryDesc((6, 34), dnn.s8, "ba"), dnn.MemoryDesc((6, 34), dnn.s4, "BA16b8a")):
        pd = proved_desc(dnn.Reorder(narrow.desc, target), engine=dnn.Engine(isa=isa, threads=1))
        dst = dnn.Memory(target)
        emulate_plan(pd.plan, {"src": narrow, "dst": dst})
        assert np.array_equal(dst.numpy(), x)


def test_other_kinds_refuse_them() -> None:
    """Every kind by one rule, whatever its format; post-ops, too."""
    four, wide = dnn.MemoryDesc((4, 4), dnn.s4, "ab"), dnn.MemoryDesc((4, 4), dnn.f32, "ab")
    free = dnn.MemoryDesc((4, 4), dnn.u4, "any")
    for desc, says in (
        (dnn.MatMul(four, wide, wide), "src is s4 4x4 ab, a type of weights alone: reorder it to s8 or f32"),
        (dnn.EltwiseForward(dnn.PropKind.forward_inference, "relu", free, free), "src is u4 4x4 any, a type of"),
        (dnn.Concat((four, four), dnn.MemoryDesc((8, 4), dnn.s4, "ab"), 0), "s4 .*a type of weights alone"),
        (dnn.SumForward((four, four), wide, (1.0, 1.0)), "s4 .*a type of weights alone"),
    ):
        with pytest.raises(InvalidArguments, match=says):
            dnn.primitive_desc(desc)
    with pytest.raises(InvalidArguments, match="s4"):
        dnn.Binary("add", four)
    for attr, says in ((dnn.Attr([dnn.Sum()]), "post-op sum of a dst of s4 is not implemented"),):
        with pytest.raises(Unimplemented, match=says):
            dnn.primitive_desc(dnn.Reorder(wide, four), attr)
