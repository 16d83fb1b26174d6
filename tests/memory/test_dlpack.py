"""Tensors from and to other libraries: the same memory, given back exactly once; and why some cannot be lent."""

import ctypes
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.dlpack import _Legacy, _Versioned
from asmdnn.types import DataType, bf16, f16, f32, s8, s32, u8

BLOCKED = MemoryDesc((2, 16, 5, 4), f32, "nChw8c")
PADDED = MemoryDesc((2, 17, 5, 4), f32, "nChw8c")
NUMPY_IS_VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class Producer:
    """A library that lends `array`, in the legacy or the versioned protocol, and counts what comes back."""

    def __init__(self, array: Any, versioned: bool, flags: int = 0, device: int = 1, major: int = 1) -> None:
        self.array, self.versioned, self.device, self.returned, self.capsules = array, versioned, device, 0, 0
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*(stride // array.itemsize for stride in array.strides))
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.take_back)
        self.managed: Any = (_Versioned if versioned else _Legacy)()
        if versioned:
            self.managed.major, self.managed.flags = major, flags
        tensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = array.ctypes.data - 8, device, array.ndim
        tensor.kind, tensor.bits, tensor.lanes = (
            {"i": 0, "u": 1, "f": 2, "c": 5}[array.dtype.kind],
            array.itemsize * 8,
            1,
        )
        tensor.shape, tensor.strides, tensor.byte_offset = self.shape, self.strides, 8
        self.managed.deleter = ctypes.cast(self.deleter, ctypes.c_void_p)

    def take_back(self, address: int) -> None:
        assert address == ctypes.addressof(self.managed)
        self.returned += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        if options and not self.versioned:
            raise TypeError("__dlpack__() takes no arguments")
        self.capsules += 1
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
            ("PyCapsule_New", ctypes.pythonapi)
        )
        return new(ctypes.addressof(self.managed), b"dltensor_versioned" if self.versioned else b"dltensor", None)


@pytest.mark.parametrize("versioned", [True, False])
def test_import_is_the_same_memory_until_the_last_user_has_gone(versioned: bool) -> None:
    source = np.arange(30, dtype=np.float32).reshape(5, 6)[:, 1:5]
    producer = Producer(source, versioned)
    memory = Memory.from_dlpack(producer)
    assert memory.address == source.ctypes.data
    assert memory.writable
    assert memory.desc == MemoryDesc((5, 4), f32, strides=(6, 1))
    assert np.array_equal(memory.numpy(), source)
    memory.array[0] = 77
    assert source[0, 0] == 77
    storage = memory.array
    view = memory.view()
    del memory
    gc.collect()
    assert producer.returned == 0
    del storage
    gc.collect()
    assert (producer.returned, view[0, 0]) == (0, 77)
    del view
    gc.collect()
    assert (producer.returned, producer.capsules) == (1, 1)


def test_read_only_flag() -> None:
    memory = Memory.from_dlpack(Producer(np.zeros(3, np.float32), versioned=True, flags=1))
    assert not memory.writable
    with pytest.raises(ValueError, match="read-only"):
        memory.array[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        memory.view()[0] = 1


def test_no_strides_means_row_major() -> None:
    producer = Producer(np.arange(6, dtype=np.float32).reshape(2, 3), versioned=False)
    producer.managed.tensor.strides = None
    assert Memory.from_dlpack(producer).desc == MemoryDesc((2, 3), f32, "ab")


def test_no_deleter_and_no_elements() -> None:
    producer = Producer(np.zeros((2, 0), np.float32), versioned=False)
    producer.managed.deleter = None
    producer.managed.tensor.data = None
    producer.managed.tensor.byte_offset = 0
    assert Memory.from_dlpack(producer).desc.dims == (2, 0)


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (np.zeros(3), {}, "elements of DLPack kind 2, 64 bits, 1 lanes, which asmdnn does not have"),
        (np.zeros(3, np.complex64), {}, "elements of DLPack kind 5"),
        (np.zeros(3, np.float32), {"device": 2}, r"device \(2, 0\), not on the CPU"),
        (np.zeros(3, np.float32), {"major": 2}, "DLPack 2.0"),
        (np.zeros((3, 2), np.float32)[::-1], {}, "stride of -8 bytes"),
    ],
)
def test_import_errors(array: Any, options: dict[str, int], message: str) -> None:
    producer = Producer(array, versioned=True, **options)
    with pytest.raises(InvalidArguments, match=message):
        Memory.from_dlpack(producer)
    gc.collect()
    # Once it is ours we give it back; before, that is up to the capsule, and this one has no destructor.
    assert producer.returned == (1 if "stride" in message else 0)


@pytest.mark.parametrize("producer", [[1.0], None, bytearray(4)])
def test_no_producer(producer: object) -> None:
    with pytest.raises(InvalidArguments, match="has no __dlpack__"):
        Memory.from_dlpack(producer)


@pytest.mark.parametrize("dtype", [f32, f16, s32, s8, u8, bf16], ids=str)
@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}, {"max_version": (1, 0), "dl_device": (1, 0)}])
def test_round_trip(dtype: DataType, options: dict[str, Any]) -> None:
    class Asking:
        def __init__(self, memory: Memory) -> None:
            self.memory, self.names = memory, list[str]()

        __dlpack_device__ = lambda self: self.memory.__dlpack_device__()  # noqa: E731

        def __dlpack__(self, **_: Any) -> object:
            capsule = self.memory.__dlpack__(**options)
            self.names.append(str(capsule).split('"')[1])
            return capsule

    memory = Memory(MemoryDesc((3, 4), dtype, strides=(1, 5), offset0=2))
    memory.array[...] = np.arange(memory.array.size) % 100
    asking = Asking(memory)
    other = Memory.from_dlpack(asking)
    assert other.address == memory.address + 2 * dtype.size_bytes
    assert other.desc == MemoryDesc((3, 4), dtype, strides=(1, 5))
    assert np.array_equal(other.numpy(), memory.numpy())
    assert asking.names == ["dltensor_versioned" if options and NUMPY_IS_VERSIONED else "dltensor"]


def test_exported_memory_lives_as_long_as_the_consumer() -> None:
    memory = Memory(MemoryDesc((3, 4), f32, "ba"))
    memory.array[...] = 5
    gone = weakref.ref(memory.array.base)
    lent = np.from_dlpack(memory)  # type: ignore[arg-type]
    assert lent.ctypes.data == memory.address
    assert lent.strides == (4, 12)
    del memory
    gc.collect()
    assert gone() is not None
    assert lent.sum() == 60
    del lent
    gc.collect()
    assert gone() is None


def test_unused_capsule_gives_the_memory_back() -> None:
    memory = Memory(MemoryDesc((3, 4), bf16, "ab"))
    gone = weakref.ref(memory.array.base)
    capsule = memory.__dlpack__(max_version=(1, 0))
    del memory
    gc.collect()
    assert gone() is not None
    del capsule
    gc.collect()
    assert gone() is None


def test_a_capsule_is_used_once() -> None:
    class Again:
        capsule = Memory(MemoryDesc((3,), f32, "a")).__dlpack__(max_version=(1, 0))
        __dlpack_device__ = staticmethod(lambda: (1, 0))
        __dlpack__ = staticmethod(lambda **_: Again.capsule)

    assert Memory.from_dlpack(Again()).desc.dims == (3,)
    with pytest.raises(InvalidArguments, match="a capsule that is used or not DLPack's"):
        Memory.from_dlpack(Again())


def test_export_of_read_only_memory() -> None:
    memory = Memory(MemoryDesc((3,), f32, "a"), bytes(12))
    if NUMPY_IS_VERSIONED:
        assert not Memory.from_dlpack(memory).writable
    with pytest.raises(BufferError, match="readonly"):
        memory.__dlpack__()


def test_export_copies_when_asked() -> None:
    memory = Memory(MemoryDesc((3,), f32, "a"))
    capsule: Any = memory.__dlpack__(copy=True)
    memory.array[...] = 1
    holder = type("Holder", (), {"__dlpack__": lambda s, **_: capsule, "__dlpack_device__": lambda s: (1, 0)})()
    assert Memory.from_dlpack(holder).array.tolist() == [0, 0, 0]


@pytest.mark.parametrize("options", [{"stream": 1}, {"dl_device": (2, 0)}])
def test_export_errors(options: dict[str, Any]) -> None:
    with pytest.raises(BufferError, match=next(iter(options))):
        Memory(MemoryDesc((3,), f32, "a")).__dlpack__(**options)


@pytest.mark.parametrize(("desc", "what"), [(BLOCKED, "blocked"), (PADDED, "padded")])
@pytest.mark.parametrize(
    "export", [Memory.view, np.asarray, np.from_dlpack, Memory.__dlpack__, lambda memory: memory.__buffer__(0)]
)
def test_blocked_and_padded_tensors_are_not_lent(desc: MemoryDesc, what: str, export: Any) -> None:
    memory = Memory(desc)
    dims = desc.dims
    message = f"{desc} is {what}, so no strides say it: use asmdnn.reorder(memory, MemoryDesc({dims}, f32, 'abcd'))"
    with pytest.raises(BufferError) as error:
        export(memory)
    assert str(error.value) == message


@pytest.mark.parametrize("tag", ["abcd", "acdb", "bcda", "aBcd8b", "ABcd16a8b"])
def test_blocks_that_make_no_difference_are_lent(tag: str) -> None:
    desc = MemoryDesc((16, 8, 5, 4), f32, tag)
    values = np.arange(16 * 8 * 20, dtype=np.float32).reshape(desc.dims)
    memory = Memory.from_numpy(values, desc)
    assert np.array_equal(memory.view(), values)
    assert np.shares_memory(memory.view(), memory.array)


def test_numpy_and_buffers_share_the_memory() -> None:
    memory = Memory(MemoryDesc((2, 3), f32, strides=(8, 1), offset0=4))
    for array in (memory.view(), np.asarray(memory), np.asarray(memoryview(memory.view()))):
        array += 1
        assert array.shape == (2, 3)
    assert np.flatnonzero(memory.array).tolist() == [4, 5, 6, 12, 13, 14]
    assert (memory.numpy() == 3).all()
    assert np.asarray(memory, np.float64).dtype == np.float64
    assert not np.shares_memory(np.array(memory), memory.array)
    with pytest.raises(ValueError, match="must be copied to become float64"):
        memory.__array__(np.float64, copy=False)
    if sys.version_info >= (3, 12):
        assert np.shares_memory(np.asarray(memoryview(memory)), memory.array)  # type: ignore[arg-type]


def test_bf16_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    source = np.arange(12).astype(ml_dtypes.bfloat16).reshape(3, 4)
    for memory in (
        Memory.from_array(source),
        Memory.from_dlpack(source),
        Memory(MemoryDesc((3, 4), bf16, "ab"), source),
    ):
        assert (memory.desc.dtype, memory.address) == (bf16, source.ctypes.data)
        back = memory.view().view(ml_dtypes.bfloat16)
        assert np.shares_memory(back, source)
        assert np.array_equal(back, source)


@pytest.mark.parametrize("name", ["float32", "float16", "int32", "int8", "uint8", "bfloat16"])
def test_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    tensor = torch.arange(60).to(getattr(torch, name)).reshape(3, 4, 5).permute(2, 0, 1)
    memory = Memory.from_dlpack(tensor)
    assert memory.address == tensor.data_ptr()
    assert memory.desc == MemoryDesc((5, 3, 4), memory.desc.dtype, "bca")
    assert memory.writable
    back = torch.from_dlpack(memory)
    assert (back.dtype, back.data_ptr(), back.stride()) == (tensor.dtype, tensor.data_ptr(), tensor.stride())
    del memory, tensor
    gc.collect()
    assert back.sum() == 1770 or name in ("float16", "bfloat16", "int8", "uint8")
    with pytest.raises(BufferError, match=r"use asmdnn.reorder"):
        torch.from_dlpack(Memory(PADDED))


def test_torch_refusals() -> None:
    torch = pytest.importorskip("torch", reason="not compared with torch: pip install '.[torch]'")
    with pytest.raises(BufferError, match="grad"):
        Memory.from_dlpack(torch.zeros(3, requires_grad=True))
    with pytest.raises(InvalidArguments, match="64 bits"):
        Memory.from_dlpack(torch.zeros(3, dtype=torch.float64))
    with pytest.raises(InvalidArguments, match="elements share memory"):
        Memory.from_dlpack(torch.zeros(3).expand(2, 3))
