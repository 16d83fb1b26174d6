"""Memory: allocation, attaching, padding, numpy in and out, and a clear error for every buffer that does not fit."""

import array as stdlib_array
import copy
import gc
import mmap
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.types import DATA_TYPES, DataType, bf16, f16, f32, s8, s32, u8

PADDED = MemoryDesc((2, 5, 3), f32, "aBc8b")
PLAIN = MemoryDesc((2, 5, 3), f32, "abc")


def numbered(dims: tuple[int, ...], dtype: DataType = f32) -> np.ndarray[Any, Any]:
    """Different, non-zero values."""
    return np.arange(1, 1 + int(np.prod(dims))).reshape(dims).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", DATA_TYPES.values(), ids=str)
def test_allocation(dtype: DataType) -> None:
    memory = Memory(MemoryDesc((2, 17, 5, 4), dtype, "nChw16c"))
    assert memory.address % 64 == 0
    assert memory.address == memory.array.ctypes.data
    assert memory.array.shape == (2 * 32 * 5 * 4,)
    assert memory.array.dtype == np.dtype(dtype.numpy)
    assert not memory.array.any()
    assert memory.writable


def test_allocation_without_elements() -> None:
    memory = Memory(MemoryDesc((2, 0, 3), f32, "aBc8b"))
    assert memory.array.size == 0
    assert memory.numpy().shape == (2, 0, 3)
    assert memory.padding_is_zero()


LAYOUTS = ["abcd", "acdb", "bcda", "cdba", "aBcd8b", "aBcd16b", "ABcd8b8a", "ABcd16b16a", "ABcd4b16a4b", "AcdB3a2b2a"]


@pytest.mark.parametrize("tag", LAYOUTS)
@pytest.mark.parametrize("dtype", [f32, bf16, s8], ids=str)
def test_round_trip(tag: str, dtype: DataType) -> None:
    desc = MemoryDesc((18, 17, 3, 2), dtype, tag)
    values = numbered(desc.dims, dtype)
    memory = Memory.from_numpy(values, desc)
    expected = np.zeros(desc.nelems(with_padding=True), dtype.numpy)
    expected[desc.offsets()] = values  # by the offset formula, which from_numpy does not use
    assert np.array_equal(memory.array, expected)
    assert np.array_equal(memory.numpy(), values)
    assert memory.padding_is_zero()


AXIS = st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 3))  # dim and its two blocks


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(AXIS, min_size=1, max_size=4), st.randoms())
def test_padding_of_nested_blocks(axes: list[tuple[int, int, int]], random: Any) -> None:
    letters = "abcd"[: len(axes)]
    blocks = [f"{size}{c}" for c, axis in zip(letters, axes, strict=True) for size in axis[1:]]
    random.shuffle(blocks)
    desc = MemoryDesc([n for n, _, _ in axes], f32, letters.upper() + "".join(blocks))
    elements = np.zeros(desc.nelems(with_padding=True), bool)
    elements[desc.offsets()] = True
    memory = Memory(desc, np.ones(elements.size, np.float32))
    assert np.array_equal(memory.array, elements)
    for place in np.flatnonzero(~elements):
        memory.array[place] = 1
        assert not memory.padding_is_zero()
        memory.array[place] = 0
    assert memory.padding_is_zero()


def test_numpy_is_a_dense_copy() -> None:
    source = numbered((2, 5, 3))
    copied = Memory.from_array(source).numpy()
    assert copied.flags.c_contiguous
    assert not np.shares_memory(source, copied)
    strided = MemoryDesc((2, 3), f32, strides=(8, 2), offset0=3)
    memory = Memory.from_numpy(numbered((2, 3)), strided)
    assert memory.array.tolist() == [0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0, 4, 0, 5, 0, 6]
    assert memory.numpy().flags.c_contiguous
    assert np.array_equal(memory.numpy(), numbered((2, 3)))


def test_attached_buffer_is_not_copied() -> None:
    source = numbered((2, 5, 3))
    memory = Memory(PLAIN, source)
    memory.array[0] = 77
    assert source[0, 0, 0] == 77
    assert memory.address == source.ctypes.data


@pytest.mark.parametrize(
    "buffer",
    [
        bytearray(120), memoryview(bytearray(120)), np.zeros(120, np.uint8), np.zeros(31, np.float32),
        stdlib_array.array("f", [0] * 30), mmap.mmap(-1, 4096),
    ],
    ids=lambda b: type(b).__name__,
)  # fmt: skip
def test_buffers_that_fit(buffer: Any) -> None:
    memory = Memory(PLAIN, buffer)
    memory.array[...] = 1
    assert memory.writable
    assert memory.array.shape == (30,)
    assert np.frombuffer(buffer, np.float32).sum() == 30


def test_attached_buffer_lives_as_long_as_the_memory() -> None:
    source = numbered((2, 5, 3))
    gone = weakref.ref(source)
    memory = Memory(PLAIN, source)
    del source
    gc.collect()
    assert gone() is not None
    assert memory.array.sum() == 465
    exported = bytearray(120)
    memory = Memory(PLAIN, exported)
    with pytest.raises(BufferError):
        exported.clear()


def test_attaching_zeroes_the_padding_and_nothing_else() -> None:
    memory = Memory(PADDED, np.full(48, 9, np.float32))
    assert np.array_equal(memory.numpy(), np.full((2, 5, 3), 9))
    assert memory.array.sum() == 9 * 30
    assert memory.padding_is_zero()


def test_attaching_can_trust_the_padding() -> None:
    source = np.full(48, 9, np.float32)
    memory = Memory(PADDED, source, padding_is_zero=True)
    assert (source == 9).all()
    assert not memory.padding_is_zero()


def test_larger_buffer_keeps_its_rest() -> None:
    source = np.full(50, 9, np.float32)
    assert Memory(PADDED, source).array.size == 48
    assert (source[48:] == 9).all()


def test_read_only_buffers() -> None:
    assert not Memory(PLAIN, bytes(120)).writable
    assert not Memory(PADDED, bytes(192)).writable
    frozen = np.full(48, 9, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(InvalidArguments, match=r"read-only and its padding in f32 2x5x3 nCw8c is not zero"):
        Memory(PADDED, frozen)
    assert not Memory(PADDED, frozen, padding_is_zero=True).writable
    assert not Memory.from_array(frozen).writable
    assert "read-only" in str(Memory.from_array(frozen))


@pytest.mark.parametrize("dtype", [np.uint16, np.int16, np.uint8])
def test_bf16_storage(dtype: Any) -> None:
    memory = Memory(MemoryDesc((4,), bf16, "a"), np.ones(8 // np.dtype(dtype).itemsize, dtype))
    assert memory.array.dtype == np.uint16
    assert memory.numpy().dtype == np.uint16


@pytest.mark.parametrize(
    ("desc", "buffer", "message"),
    [
        (PLAIN, np.zeros(29, np.float32), "buffer has 116 bytes, but f32 2x5x3 ncw needs 120"),
        (PADDED, np.zeros(30, np.float32), "buffer has 120 bytes, but f32 2x5x3 nCw8c needs 192"),
        (PLAIN, b"", "buffer has 0 bytes"),
        (PLAIN, np.zeros(30, np.float64), r"elements of float64, not f32: use array.astype\('float32'\)"),
        (PLAIN, np.zeros(30, np.int32), "elements of int32, not f32"),
        (PLAIN, np.zeros(30, ">f4"), "elements of >f4, not f32"),
        (PLAIN, np.zeros(30, object), "elements of object, not f32"),
        (MemoryDesc((8,), u8, "a"), np.zeros(8, np.int8), "elements of int8, not u8"),
        (MemoryDesc((8,), bf16, "a"), np.zeros(8, np.float16), "elements of float16, not bf16: use uint16"),
        (PLAIN, np.zeros(60, np.float32)[::2], "not C-contiguous storage: use Memory.from_array"),
        (PLAIN, np.zeros((5, 6), np.float32).T, "not C-contiguous storage"),
        (PLAIN, memoryview(bytearray(240))[::2], "not C-contiguous storage"),
        (PLAIN, np.zeros(121, np.uint8)[1:], "is not aligned to the element's 4 bytes"),
        (PLAIN, [0.0] * 30, "buffer of type list is neither"),
        (PLAIN, "text", "buffer of type str is neither"),
        (PLAIN, 0x1000, "buffer of type int is neither"),
        (MemoryDesc((2,), f32, "any"), None, "f32 2 any has no size"),
        (MemoryDesc((2,), f32, "any"), np.zeros(2, np.float32), "f32 2 any has no size"),
        ((2, 5, 3), None, "is not a MemoryDesc"),
    ],
)
def test_buffers_that_do_not_fit(desc: Any, buffer: Any, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        Memory(desc, buffer)


def test_from_array_takes_any_positive_strides() -> None:
    base = numbered((4, 6, 8, 10))
    inserted = base[1, 2][None, :, None]
    for view in (base, base.transpose(0, 2, 3, 1), base[1:3, 2:4], base[:, ::2, 1:, ::3], inserted, base[:0]):
        memory = Memory.from_array(view)
        assert memory.address == view.ctypes.data
        assert np.array_equal(memory.numpy(), view)
        assert np.array_equal(memory.array[memory.desc.offsets()], view)
        assert memory.desc.dtype == f32
        assert memory.array.size * 4 == memory.desc.size_bytes
    view = base[1:3, 2:4]
    Memory.from_array(view).array[0] = -1
    assert base[1, 2, 0, 0] == -1


@pytest.mark.parametrize(
    "kind",
    [np.float32, np.float16, np.int32, np.int8, np.uint8, "bfloat16", "float8_e5m2", "float8_e4m3fn"],
)
def test_from_array_takes_strides_of_every_type(kind: Any) -> None:
    """numpy calls float8_e5m2 "<f1", which it does not know itself."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="numpy itself has no types of 8 and 16 bits")
    dtype = np.dtype(getattr(ml_dtypes, kind) if isinstance(kind, str) else kind)
    base = np.arange(48).reshape(6, 8).astype(dtype)
    for view in (base.T, base[:, 2:5], base[::2, ::3]):
        memory = Memory.from_array(view)
        assert memory.address == view.ctypes.data
        found = memory.array.view(dtype)[memory.desc.offsets()]
        assert found.tobytes() == view.tobytes()


def test_from_array_finds_the_tag() -> None:
    nhwc = np.zeros((2, 5, 4, 3), np.float32).transpose(0, 3, 1, 2)
    assert Memory.from_array(nhwc).desc == MemoryDesc((2, 3, 5, 4), f32, "nhwc")
    image = np.zeros((3, 5, 4), np.float32)
    assert str(Memory.from_array(image[None]).desc) == "f32 1x3x5x4 nchw"
    # numpy's stride of 0 for the new dim says nothing about its place.
    crop = np.zeros((3, 6, 4), np.float32)[:, :5, :, None]
    assert Memory.from_array(crop).desc.strides == (24, 4, 1, 1)


@pytest.mark.parametrize("dtype", [f32, f16, s32, s8, u8], ids=str)
def test_from_array_knows_the_type(dtype: DataType) -> None:
    assert Memory.from_array(np.zeros(3, dtype.numpy)).desc.dtype == dtype


def test_from_array_reads_bf16_when_told() -> None:
    memory = Memory.from_array(np.ones((2, 4), np.int16)[:, 1:], bf16)
    assert memory.desc.dtype == bf16
    assert memory.array.dtype == np.dtype(np.uint16)


@pytest.mark.parametrize(
    ("array", "dtype", "message"),
    [
        (np.zeros(3), None, r"elements of float64, which asmdnn does not have: .*astype\(numpy.float32\)"),
        (np.zeros(3, bool), None, "elements of bool"),
        (np.zeros(3, np.uint16), None, "or pass dtype=bf16"),
        (np.zeros(3, np.float32), s32, "elements of float32, not s32"),
        (np.zeros((2, 3), np.float32)[::-1], None, "stride of -12 bytes in dim 0, which must be positive"),
        (np.broadcast_to(np.float32(1), (2, 3)), None, "elements share memory: use numpy.ascontiguousarray"),
        (as_strided(np.zeros(9, np.float32), (3, 3), (4, 4)), None, "elements share memory"),
        (np.zeros((3, 2), "f4,i1")["f0"], None, "stride of 5 bytes in dim 1"),
        (np.float32(1) * np.ones(()), None, "is not a numpy array"),
        (np.zeros((), np.float32), None, "has 0 dims"),
        ([1.0], None, "array of type list"),
    ],
)
def test_arrays_that_do_not_fit(array: Any, dtype: DataType | None, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        Memory.from_array(array, dtype)


@pytest.mark.parametrize(
    ("array", "desc", "message"),
    [
        (np.zeros((2, 5), np.float32), PLAIN, r"array has shape \(2, 5\), but desc has dims \(2, 5, 3\)"),
        (np.zeros((2, 5, 3)), PLAIN, "elements of float64, not f32"),
        (np.zeros((2, 3), np.float32), MemoryDesc((2, 3), f32, strides=(0, 1)), "lets elements share memory"),
        (np.zeros(3, np.float32), MemoryDesc((3,), f32, "any"), "has no size"),
    ],
)
def test_from_numpy_errors(array: Any, desc: MemoryDesc, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        Memory.from_numpy(array, desc)


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_have_their_own_address(clone: Any) -> None:
    memory = Memory.from_numpy(numbered((2, 5, 3)), PADDED)
    other = clone(memory)
    assert other.address == other.array.ctypes.data != memory.address
    assert np.array_equal(other.array, memory.array)
    assert other.desc == memory.desc


def test_text_and_value() -> None:
    memory = Memory(PADDED)
    assert str(memory) == f"Memory f32 2x5x3 nCw8c at {memory.address:#x}"
    with pytest.raises(AttributeError):
        memory.address = 0  # type: ignore[misc]
