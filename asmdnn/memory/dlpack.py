"""DLPack: tensors from and to other libraries without a copy, in versioned (1.0) and legacy capsules.

A capsule owns a C struct with the address, type, shape and strides of a tensor, and a function that gives it all back.
Whoever takes the struct renames the capsule, and calls that function once, when done.

Export is numpy's, with the element type corrected where numpy lacks it.  Import is our own: numpy refuses such types,
and takes all tensors of legacy capsules for read-only.  Source: dlpack.h; "Python Specification for DLPack".
"""

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any, NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory.allocation import allocated
from asmdnn.memory.blocks import Array
from asmdnn.types import DATA_TYPES, DataType

CPU_DEVICE = (1, 0)  # kDLCPU, the only one
VERSION = (1, 0)
READ_ONLY = 1
_KINDS = {"i": 0, "u": 1, "f": 2}  # DLPack's, of numpy's
_TYPES = {(dtype.dlpack or _KINDS[dtype.numpy[1]], 8 * dtype.size_bytes): dtype for dtype in DATA_TYPES.values()}


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
        ("kind", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
        ("shape", ctypes.POINTER(c_int64)), ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64),
    )  # fmt: skip


class _Legacy(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p))


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
        ("tensor", _Tensor),
    )  # fmt: skip


class _Format(NamedTuple):
    struct: Any
    name: bytes
    used: bytes  # a capsule keeps only the address of its name, so these must live as long as the module


_FORMATS = (
    _Format(_Versioned, b"dltensor_versioned", b"used_dltensor_versioned"),
    _Format(_Legacy, b"dltensor", b"used_dltensor"),
)


def _python(name: str, result: Any, *arguments: Any) -> Any:
    """A function of Python's C API, with types of its own: those of ctypes.pythonapi are everybody's."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_is_valid = _python("PyCapsule_IsValid", c_int, py_object, c_char_p)
_get_pointer = _python("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_set_name = _python("PyCapsule_SetName", c_int, py_object, c_char_p)
# Deleters are called with the GIL held: those that take it themselves do not mind, and those that forgot to need it.
_deleter = ctypes.PYFUNCTYPE(None, c_void_p)


class _Borrowed:
    """The storage of another library, given back when the last array over it has gone."""

    __slots__ = ("__array_interface__", "__weakref__", "_address", "_deleter")

    def __init__(self, address: int, deleter: int | None, interface: dict[str, object]) -> None:
        self._address, self._deleter = address, _deleter(deleter) if deleter else None
        self.__array_interface__ = interface

    def __del__(self) -> None:
        if self._deleter is not None:
            self._deleter(self._address)


def import_array(producer: object) -> tuple[Array, DataType]:
    """The tensor of `producer` as an ndarray, bf16 as uint16, and its element type; see Memory.from_dlpack."""
    capsule = _capsule_from(producer)
    layout = next((layout for layout in _FORMATS if _is_valid(capsule, layout.name)), None)
    if layout is None:
        raise InvalidArguments(
            f"producer of type {type(producer).__name__} gave a capsule that is used or not DLPack's"
        )
    address = _get_pointer(capsule, layout.name)
    managed = layout.struct.from_address(address)
    read_only = False
    if layout.struct is _Versioned:
        if managed.major > VERSION[0]:
            raise InvalidArguments(f"producer uses DLPack {managed.major}.{managed.minor}, which asmdnn does not know")
        read_only = bool(managed.flags & READ_ONLY)
    dtype, interface = _interface(managed.tensor, read_only)
    # From here on the struct is ours; until here the capsule would have given it back.
    _set_name(capsule, layout.used)
    return np.asarray(_Borrowed(address, managed.deleter, interface)), dtype


def _capsule_from(producer: Any) -> object:
    if not all(callable(getattr(type(producer), name, None)) for name in ("__dlpack__", "__dlpack_device__")):
        raise InvalidArguments(f"producer of type {type(producer).__name__} has no __dlpack__: use numpy.asarray")
    try:
        device = tuple(map(int, producer.__dlpack_device__()))
    except Exception as error:  # whatever the producer does
        what = f"producer of type {type(producer).__name__} does not tell where it lies ({type(error).__name__})"
        raise InvalidArguments(f"{what}: use numpy.asarray") from error
    if device[:1] == () or device[0] != CPU_DEVICE[0]:
        raise InvalidArguments(f"producer lies on the DLPack device {device}, not on the CPU, (1, 0): copy it there")
    try:
        try:
            return producer.__dlpack__(max_version=VERSION)
        except TypeError:  # from before versions
            return producer.__dlpack__()
    except BufferError:
        raise
    except Exception as error:  # whatever the producer does
        what = f"producer of type {type(producer).__name__} gives no tensor ({type(error).__name__}: {error})"
        raise InvalidArguments(f"{what}: use numpy.asarray") from error


def _interface(tensor: _Tensor, read_only: bool) -> tuple[DataType, dict[str, object]]:
    """The tensor in the words of numpy's array interface.  Raises InvalidArguments for element types we lack."""
    dtype = _TYPES.get((tensor.kind, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise InvalidArguments(
            f"producer has elements of DLPack kind {tensor.kind}, {tensor.bits} bits, {tensor.lanes} lanes, which "
            "asmdnn does not have: convert it, such as to float32"
        )
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(stride * dtype.size_bytes for stride in tensor.strides[: tensor.ndim]) if tensor.strides else None
    # Without elements the address may be null, which numpy may take for none given.
    data = ((tensor.data or 0) + tensor.byte_offset or ctypes.addressof(tensor), read_only)
    return dtype, {"version": 3, "shape": shape, "strides": strides, "typestr": dtype.numpy, "data": data}


def export_array(
    array: Array,
    dtype: DataType,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> object:
    """The capsule of an array, whose type may be one that numpy lacks; see Memory.__dlpack__."""
    if dl_device is not None and tuple(dl_device) != CPU_DEVICE:
        raise BufferError(f"dl_device {dl_device} must be the CPU, (1, 0)")
    array = allocated(array.copy) if copy else array
    try:
        capsule: object = array.__dlpack__(max_version=max_version)
    except TypeError:  # numpy before 2.1, which makes legacy capsules
        capsule = array.__dlpack__()
    if dtype.extension:
        layout = next(layout for layout in _FORMATS if _is_valid(capsule, layout.name))
        layout.struct.from_address(_get_pointer(capsule, layout.name)).tensor.kind = dtype.dlpack
    return capsule
