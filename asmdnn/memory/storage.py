"""Memory: a MemoryDesc and the bytes that it describes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from asmdnn.errors import InvalidArguments
from asmdnn.memory.blocks import Array, blocked_view, padding_views
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.types import DATA_TYPES, DataType, bf16

ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Memory:
    """A tensor in memory: `desc`, and storage that it owns or that belongs to somebody else and is kept alive.

    Memory(desc)            allocates 64-byte aligned zeros
    Memory(desc, buffer)    attaches a numpy array or any object with the buffer protocol, without copying

    An attached buffer is the raw storage in the order that `desc` gives it: C-contiguous, at least desc.size_bytes,
    aligned to the element, and of desc's element type (bf16: any 2-byte integers or ml_dtypes' bfloat16) or plain
    bytes (uint8).  Attaching to a padded desc zeroes the padding; pass padding_is_zero=True if it already is zero.  A
    read-only buffer is accepted if its padding is zero, and is no destination.  Raises InvalidArguments.
    """

    desc: MemoryDesc
    array: Array  # flat view of the storage, from its base; bf16 as uint16
    address: int  # of the base
    writable: bool

    def __init__(self, desc: MemoryDesc, buffer: object = None, *, padding_is_zero: bool = False) -> None:
        if not isinstance(desc, MemoryDesc):
            raise InvalidArguments(f"desc {desc!r} is not a MemoryDesc: use MemoryDesc(dims, f32, 'nchw') or such")
        size_bytes = desc.size_bytes
        raw = _allocate(size_bytes) if buffer is None else _attach(desc, buffer)
        self._set(desc, raw[:size_bytes].view(desc.dtype.numpy))
        if buffer is not None and desc.has_padding and not padding_is_zero:
            self._settle_padding()

    @classmethod
    def from_array(cls, array: Array, dtype: DataType | None = None) -> "Memory":
        """The ndarray itself as a Memory whose plain strides are the array's; no copy.

        `dtype` is needed only to read 2-byte integers as bf16.  Raises InvalidArguments for element types that asmdnn
        does not have, for negative strides and for strides that let elements overlap.
        """
        if not isinstance(array, np.ndarray):
            raise InvalidArguments(f"array of type {type(array).__name__} is not a numpy array: use numpy.asarray")
        array = np.asarray(array)  # a subclass may reshape by rules of its own
        if dtype is None:
            dtype = _data_type(array.dtype)
        elif not _is_stored_as(array.dtype, dtype):
            raise InvalidArguments(f"array has elements of {array.dtype}, not {dtype}: use {_way_to(dtype)}")
        if array.flags.c_contiguous:
            desc = MemoryDesc(array.shape, dtype, LETTERS[: array.ndim])
            storage = array.reshape(-1)
        else:
            desc = MemoryDesc(array.shape, dtype, strides=_element_strides(array))
            if desc.may_overlap:
                raise InvalidArguments(
                    f"array has strides {array.strides} in bytes, so elements share memory: use numpy.ascontiguousarray"
                )
            storage = as_strided(array, (desc.size_bytes // dtype.size_bytes,), (dtype.size_bytes,))
        memory = cls.__new__(cls)
        memory._set(desc, storage.view(dtype.numpy))
        return memory

    @classmethod
    def from_numpy(cls, array: Array, desc: MemoryDesc) -> "Memory":
        """A new Memory laid out by `desc` that holds a copy of `array`, which has desc's dims and element type.

        Index by index and exact, in numpy: the reference for reorders, not a fast one.
        """
        array = np.asarray(array)
        if array.shape != desc.dims:
            raise InvalidArguments(f"array has shape {array.shape}, but desc has dims {desc.dims}: make them equal")
        if not _is_stored_as(array.dtype, desc.dtype):
            raise InvalidArguments(f"array has elements of {array.dtype}, not {desc.dtype}: use {_way_to(desc.dtype)}")
        if desc.may_overlap:
            raise InvalidArguments(f"desc {desc} lets elements share memory: use strides that keep them apart")
        memory = cls(desc)
        padded = np.zeros(desc.padded_dims, memory.array.dtype)
        padded[tuple(map(slice, desc.dims))] = array.view(memory.array.dtype)
        view = blocked_view(desc, memory.array)
        view[...] = padded.reshape(view.shape)
        return memory

    def numpy(self) -> Array:
        """A copy as a dense ndarray shaped dims, in logical order; bf16 as uint16."""
        padded = blocked_view(self.desc, self.array).reshape(self.desc.padded_dims)
        copied: Array = padded[tuple(map(slice, self.desc.dims))].copy()
        return copied

    def padding_is_zero(self) -> bool:
        """Whether every element of the padding is zero, as it must be: a debug check."""
        return not any(view.any() for view in padding_views(self.desc, self.array))

    def __repr__(self) -> str:
        """For example "Memory f32 1x64x56x56 nChw16c at 0x7f0c8c0d1000"."""
        return f"Memory {self.desc} at {self.address:#x}{'' if self.writable else ', read-only'}"

    def __reduce__(self) -> "tuple[Callable[[MemoryDesc, Array], Memory], tuple[MemoryDesc, Array]]":
        # The default would copy `address` into a process or an object where it points nowhere.
        return _copy_of, (self.desc, self.array)

    def _set(self, desc: MemoryDesc, storage: Array) -> None:
        address = storage.ctypes.data
        if address % desc.dtype.size_bytes:
            raise InvalidArguments(
                f"buffer at address {address:#x} is not aligned to the element's {desc.dtype.size_bytes} bytes: copy it"
            )
        put = object.__setattr__
        put(self, "desc", desc)
        put(self, "array", storage)
        put(self, "address", address)
        put(self, "writable", storage.flags.writeable)

    def _settle_padding(self) -> None:
        if self.writable:
            for view in padding_views(self.desc, self.array):
                view[...] = 0
        elif not self.padding_is_zero():
            raise InvalidArguments(
                f"buffer is read-only and its padding in {self.desc} is not zero: attach a writable copy"
            )


def _allocate(size_bytes: int) -> Array:
    raw = np.zeros(size_bytes + ALIGNMENT_BYTES - 1, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + size_bytes]


def _attach(desc: MemoryDesc, buffer: object) -> Array:
    """The bytes of a buffer that can be the storage of `desc`."""
    try:
        array = buffer if isinstance(buffer, np.ndarray) else np.asarray(memoryview(buffer))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        raise InvalidArguments(
            f"buffer of type {type(buffer).__name__} is neither a numpy array nor a buffer: use numpy.asarray"
        ) from None
    if array.dtype != np.uint8 and not _is_stored_as(array.dtype, desc.dtype):
        raise InvalidArguments(f"buffer has elements of {array.dtype}, not {desc.dtype}: use {_way_to(desc.dtype)}")
    if not array.flags.c_contiguous:
        raise InvalidArguments(
            f"buffer has strides {array.strides} in bytes, so it is not C-contiguous storage: use Memory.from_array"
        )
    if array.nbytes < desc.size_bytes:
        raise InvalidArguments(f"buffer has {array.nbytes} bytes, but {desc} needs {desc.size_bytes}: use a larger one")
    return np.asarray(array).reshape(-1).view(np.uint8)


def _element_strides(array: Array) -> tuple[int, ...]:
    """Strides in elements; dims of 1 without a meaningful stride (x[None]) get the one of a row-major tensor."""
    strides, item, dense = [0] * array.ndim, array.itemsize, 1
    for dim in reversed(range(array.ndim)):
        stride, count = array.strides[dim], array.shape[dim]
        if count == 1 and (stride <= 0 or stride % item):
            stride = dense * item
        if stride < 0 or stride % item:
            raise InvalidArguments(
                f"array has a stride of {stride} bytes in dim {dim}, which must be positive and a multiple of {item}: "
                "use numpy.ascontiguousarray"
            )
        strides[dim] = stride // item
        dense = strides[dim] * count
    return tuple(strides)


@lru_cache(maxsize=64)
def _is_stored_as(found: np.dtype[Any], wanted: DataType) -> bool:
    if wanted == bf16 and (found == np.int16 or found.name == "bfloat16"):
        return True
    return found == np.dtype(wanted.numpy)


@lru_cache(maxsize=64)
def _data_type(found: np.dtype[Any]) -> DataType:
    if found.name == "bfloat16":
        return bf16
    for dtype in DATA_TYPES.values():
        if dtype != bf16 and found == np.dtype(dtype.numpy):
            return dtype
    raise InvalidArguments(
        f"array has elements of {found}, which asmdnn does not have: convert it, such as array.astype(numpy.float32), "
        "or pass dtype=bf16 for 2-byte integers"
    )


def _way_to(dtype: DataType) -> str:
    return "uint16 that hold bf16" if dtype == bf16 else f"array.astype('{np.dtype(dtype.numpy).name}')"


def _copy_of(desc: MemoryDesc, storage: Array) -> Memory:
    memory = Memory(desc)
    memory.array[...] = storage
    return memory
