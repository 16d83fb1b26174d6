"""Memory: a MemoryDesc and the bytes that it describes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from asmdnn.errors import InvalidArguments, not_one_of, shown
from asmdnn.memory import dlpack
from asmdnn.memory.allocation import allocated, no_memory
from asmdnn.memory.arrays import data_type_of, element_strides, is_stored_as, way_to
from asmdnn.memory.blocks import Array, blocked_view, padding_views
from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.packed import as_integers, packed, packed_dims, unpacked
from asmdnn.memory.tags import LETTERS
from asmdnn.memory.views import plain_strides
from asmdnn.notebook import html_of
from asmdnn.records import dataclass
from asmdnn.types import DATA_TYPES, DataType

ALIGNMENT_BYTES = 64


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Memory:
    """A tensor in memory: `desc`, and storage that it owns or that belongs to somebody else and is kept alive.

    Memory(desc)            allocates 64-byte aligned zeros
    Memory(desc, buffer)    attaches a numpy array or any object with the buffer protocol, without copying

    An attached buffer is the raw storage in the order that `desc` gives it: C-contiguous, at least desc.size_bytes,
    aligned to the element, and of desc's element type (of one that numpy lacks: integers of its size or ml_dtypes'
    type) or plain bytes (uint8).  Attaching to a padded desc zeroes the padding; pass padding_is_zero=True if it
    already is zero.  A read-only buffer is accepted if its padding is zero, and is no destination.  Raises
    InvalidArguments.
    """

    desc: MemoryDesc
    array: Array  # flat view of the storage, from its base; types that numpy lacks as integers
    address: int  # of the base
    writable: bool

    def __init__(self, desc: MemoryDesc, buffer: object = None, *, padding_is_zero: bool = False) -> None:
        if not isinstance(desc, MemoryDesc):
            raise InvalidArguments(f"desc {shown(desc)} is not a MemoryDesc: use MemoryDesc(dims, f32, 'nchw') or such")
        size_bytes = desc.size_bytes
        raw = _allocate(size_bytes) if buffer is None else _attach(desc, buffer)
        self._set(desc, raw[:size_bytes].view(desc.dtype.numpy))
        if buffer is not None and desc.has_padding and not padding_is_zero:
            self._settle_padding()

    @classmethod
    def from_array(cls, array: Array, dtype: DataType | None = None) -> "Memory":
        """The ndarray itself as a Memory whose plain strides are the array's; no copy.

        `dtype` is needed only to read integers as a type that numpy lacks; bytes hold two s4 or u4 of the last dim.
        Raises InvalidArguments for element types that asmdnn does not have, for negative strides and for strides that
        let elements overlap.
        """
        if not isinstance(array, np.ndarray):
            raise InvalidArguments(f"array of type {type(array).__name__} is not a numpy array: use numpy.asarray")
        array = np.asarray(array)  # a subclass may reshape by rules of its own
        if dtype is not None and not isinstance(dtype, DataType):
            raise InvalidArguments(not_one_of("dtype, such as asmdnn.f32,", dtype, DATA_TYPES))
        if dtype is None:
            dtype = data_type_of(array.dtype)
        elif dtype.in_a_byte > 1:
            return cls(MemoryDesc(packed_dims(array), dtype, LETTERS[: array.ndim]), array)
        elif not is_stored_as(array.dtype, dtype):
            raise InvalidArguments(f"array has elements of {array.dtype}, not {dtype}: use {way_to(dtype)}")
        if array.flags.c_contiguous:
            desc = MemoryDesc(array.shape, dtype, LETTERS[: array.ndim])
            storage = array.reshape(-1)
        else:
            desc = MemoryDesc(array.shape, dtype, strides=element_strides(array))
            if desc.may_overlap:
                raise InvalidArguments(
                    f"array has strides {array.strides} in bytes, so elements share memory: use numpy.ascontiguousarray"
                )
            stored = array.view(dtype.numpy)  # as_strided knows numpy's own types alone
            storage = as_strided(stored, (desc.size_bytes // dtype.size_bytes,), (dtype.size_bytes,))
        memory = cls.__new__(cls)
        memory._set(desc, storage.view(dtype.numpy))
        return memory

    @classmethod
    def from_numpy(cls, array: Array, desc: MemoryDesc) -> "Memory":
        """A new Memory laid out by `desc` that holds a copy of `array`, which has desc's dims and element type.

        Index by index and exact, in numpy: the reference for reorders, not a fast one.
        """
        if not isinstance(desc, MemoryDesc):
            raise InvalidArguments(f"desc {shown(desc)} is not a MemoryDesc: use MemoryDesc(dims, f32, 'nchw') or such")
        try:
            array = np.asarray(array)
        except MemoryError as error:
            raise no_memory(error) from None
        except Exception as error:  # whatever the caller's object does
            what = f"array of type {type(array).__name__} cannot be read ({type(error).__name__})"
            raise InvalidArguments(f"{what}: pass a numpy array") from error
        if array.shape != desc.dims:
            raise InvalidArguments(f"array has shape {array.shape}, but desc has dims {desc.dims}: make them equal")
        if not is_stored_as(array.dtype, desc.dtype):
            raise InvalidArguments(f"array has elements of {array.dtype}, not {desc.dtype}: use {way_to(desc.dtype)}")
        if desc.may_overlap:
            raise InvalidArguments(f"desc {desc} lets elements share memory: use strides that keep them apart")
        memory = cls(desc)
        storage = desc if memory.is_packed else desc.storage
        kind = memory._elements().dtype
        stored = as_integers(array, desc.dtype) if memory.is_packed else array.view(kind)
        padded = allocated(desc._stored, stored)
        if storage.padded_dims != storage.dims:
            inside, padded = padded, allocated(np.zeros, storage.padded_dims, kind)
            padded[tuple(map(slice, storage.dims))] = inside
        held = memory._elements()
        view = blocked_view(storage, held)
        view[...] = padded.reshape(view.shape)
        memory._keep(held)
        desc.complete(array, memory.array)
        return memory

    @classmethod
    def from_dlpack(cls, producer: object) -> "Memory":
        """The tensor of another library (torch, jax, numpy, ...) in CPU memory as a Memory; no copy.

        The strides are the producer's, and a tensor that it flags as read-only is no destination.
        Raises InvalidArguments, as from_array does and for other devices; BufferError if the producer refuses.
        """
        if isinstance(producer, np.ndarray):  # numpy's own DLPack refuses types of ml_dtypes
            return cls.from_array(producer)
        return cls.from_array(*dlpack.import_array(producer))

    def view(self) -> Array:
        """The tensor as an ndarray shaped dims that shares this memory; bf16 is uint16, to .view(ml_dtypes.bfloat16).

        It keeps the storage alive, and is read-only if that is.  Raises BufferError, naming the reorder to use, where
        strides cannot say it: for blocked and padded formats.
        """
        self._check_elements("view")
        if self.is_packed:
            raise BufferError(f"{self.desc} has two elements in a byte, so no array views them: use numpy()")
        strides = plain_strides(self.desc)
        if strides is None:
            plain = f"MemoryDesc({self.desc.dims}, {self.desc.dtype}, '{LETTERS[: self.desc.ndims]}')"
            what = "padded" if self.desc.has_padding else "blocked"
            raise BufferError(f"{self.desc} is {what}, so no strides say it: use asmdnn.reorder(memory, {plain})")
        first = self.array[self.desc.offset0 :]
        item = self.desc.dtype.size_bytes
        return as_strided(first, self.desc.dims, [stride * item for stride in strides], writeable=self.writable)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """numpy.asarray(memory) is `view()`: zero copy.  Raises BufferError."""
        view = self.view()
        if copy is False and dtype is not None and view.dtype != dtype:
            raise ValueError(f"copy=False, but {self.desc} must be copied to become {np.dtype(dtype)}")
        return allocated(np.array if copy else np.asarray, view, dtype)

    def __buffer__(self, flags: int) -> memoryview:
        """The buffer protocol of Python 3.12 on; before, use memoryview(memory.view()).  Raises BufferError."""
        return memoryview(self.view())  # type: ignore[arg-type, unused-ignore]  # an error before Python 3.12

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule with this tensor, as torch.from_dlpack(memory) asks for: versioned if the consumer can.

        Raises BufferError for blocked and padded formats, other devices, and read-only memory in a legacy capsule.
        """
        if stream is not None:
            raise BufferError(f"stream {shown(stream)} must be None: the memory is the CPU's")
        return dlpack.export_array(self.view(), self.desc.dtype, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU_DEVICE

    def numpy(self) -> Array:
        """A copy as a dense ndarray shaped dims, in logical order; of types as `view` has, int8 of s4, uint8 of u4."""
        self._check_elements("copy")
        padded = blocked_view(self.desc, self._elements()).reshape(self.desc.padded_dims)
        copied: Array = allocated(padded[tuple(map(slice, self.desc.dims))].copy)
        return copied

    def padding_is_zero(self) -> bool:
        """Whether every element of the padding is zero, as it must be: a debug check."""
        desc = self.desc if self.is_packed else self.desc.storage
        return not any(view.any() for view in padding_views(desc, self._elements()))

    def first_stray(self) -> tuple[int, ...] | None:
        """The first index, in logical order, at which the padding is not zero; None if it is, as it must be."""
        if self.padding_is_zero():
            return None
        storage = self.desc if self.is_packed else self.desc.storage
        stray = blocked_view(storage, self._elements()).reshape(storage.padded_dims) != 0
        stray[tuple(map(slice, storage.dims))] = False
        return tuple(int(i) for i in np.unravel_index(int(stray.argmax()), stray.shape))

    def __repr__(self) -> str:
        """For example "Memory f32 1x64x56x56 nChw16c at 0x7f0c8c0d1000"."""
        return f"Memory {self.desc} at {self.address:#x}{'' if self.writable else ', read-only'}"

    def _repr_html_(self) -> str:
        return html_of(self)

    def __reduce__(self) -> "tuple[Callable[[MemoryDesc, Array], Memory], tuple[MemoryDesc, Array]]":
        # The default would copy `address` into a process or an object where it points nowhere.
        return _copy_of, (self.desc, self.array)

    def _check_elements(self, what: str) -> None:
        if not self.desc.holds_elements:
            raise InvalidArguments(f"memory of {self.desc} has no {what}, its elements are transformed")

    @property
    def is_packed(self) -> bool:
        """Whether elements share bytes."""
        return self.desc.dtype.in_a_byte > 1

    def _elements(self) -> Array:
        """The flat array, or a copy with a byte for each element."""
        return unpacked(self.array, self.desc.dtype) if self.is_packed else self.array

    def _keep(self, elements: Array) -> None:
        """Write back what `_elements` gave."""
        if self.is_packed:
            self.array[...] = packed(elements, self.desc.dtype)

    def _set(self, desc: MemoryDesc, storage: Array) -> None:
        address = storage.__array_interface__["data"][0]
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
            held = self._elements()
            for view in padding_views(self.desc if self.is_packed else self.desc.storage, held):
                view[...] = 0
            self._keep(held)
        elif not self.padding_is_zero():
            raise InvalidArguments(
                f"buffer is read-only and its padding in {self.desc} is not zero: attach a writable copy"
            )


def placed(desc: MemoryDesc, storage: Array, address: int) -> Memory:
    """A Memory of `storage`, flat, writable, of desc's element type and all of it, padding included, at `address`.

    For who has made and filled it: nothing is checked.
    """
    memory = Memory.__new__(Memory)
    put = object.__setattr__
    put(memory, "desc", desc)
    put(memory, "array", storage)
    put(memory, "address", address)
    put(memory, "writable", True)
    return memory


def _allocate(size_bytes: int) -> Array:
    raw = allocated(np.zeros, size_bytes + ALIGNMENT_BYTES - 1, np.uint8)
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
    if array.dtype != np.uint8 and not is_stored_as(array.dtype, desc.dtype):
        raise InvalidArguments(f"buffer has elements of {array.dtype}, not {desc.dtype}: use {way_to(desc.dtype)}")
    if not array.flags.c_contiguous:
        raise InvalidArguments(
            f"buffer has strides {array.strides} in bytes, so it is not C-contiguous storage: use Memory.from_array"
        )
    if array.nbytes < desc.size_bytes:
        raise InvalidArguments(f"buffer has {array.nbytes} bytes, but {desc} needs {desc.size_bytes}: use a larger one")
    return np.asarray(array).reshape(-1).view(np.uint8)


def _copy_of(desc: MemoryDesc, storage: Array) -> Memory:
    memory = Memory(desc)
    memory.array[...] = storage
    return memory
