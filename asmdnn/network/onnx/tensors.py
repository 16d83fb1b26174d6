"""TensorProto as a numpy array, its data in the file or in another one of its folder; claims are checked first."""

import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import counted
from asmdnn.files import regular_file
from asmdnn.network.element_types import EXTENSIONS, PACKED_BITS, STRING, element_type
from asmdnn.network.onnx.messages import Message
from asmdnn.network.onnx.wire import Malformed

Array = npt.NDArray[Any]

EXTERNAL = 1  # data_location
HALF = 10  # ONNX's number of f16
MOST_DIMS = 12
MOST_ELEMENTS = 1 << 40  # no product of dims beyond this is even computed with
TYPED = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}


def array_of(tensor: Message, folder: Path | None) -> Array:
    """The tensor's elements, a view of the file where that is possible.  Raises Malformed."""
    name = f"tensor {tensor.get('name', '')!r}"
    if tensor.get("data_type", 0) == STRING:
        return texts_of(tensor, name)
    dtype, dims = element_type(tensor.get("data_type", 0), name), checked_dims(integers(tensor, "dims"), name)
    bits = PACKED_BITS.get(tensor.get("data_type", 0), 8 * dtype.itemsize)
    size = -(-prod(dims) * bits // 8)
    if tensor.get("data_location", 0) == EXTERNAL:
        data = external(tensor, folder, size, name)
        return elements(data, dtype, dims, bits)
    if "raw_data" in tensor:
        raw = tensor["raw_data"]
        if len(raw) != size:
            raise Malformed(f"{name} has {len(raw)} bytes, {dtype} of dims {dims} needs {size}")
        return elements(raw, dtype, dims, bits)
    return typed_data(tensor, dtype, dims, name)


def texts_of(tensor: Message, name: str) -> Array:
    """Texts, of which a graph may have some at its end alone."""
    dims, texts = checked_dims(integers(tensor, "dims"), name), tensor.get("string_data", ())
    if len(texts) != prod(dims):
        raise Malformed(f"{name} has {counted(len(texts), 'element')} in string_data, dims {dims} need {prod(dims)}")
    found = np.empty(len(texts), object)
    found[:] = [bytes(text).decode("utf-8", "surrogateescape") for text in texts]
    return found.reshape(dims)


def elements(data: Any, dtype: np.dtype[Any], dims: tuple[int, ...], bits: int) -> Array:
    """Those of bytes; of several in a byte a copy with one in each."""
    if bits >= 8:
        return np.frombuffer(data, dtype).reshape(dims)
    single = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").reshape(-1, bits)
    codes = np.packbits(single, axis=1, bitorder="little").ravel()[: prod(dims)]
    if dtype.name.startswith("int"):  # whose sign is that of the highest bit
        return np.asarray(((codes.astype(np.int8) ^ (1 << bits - 1)) - (1 << bits - 1)).astype(dtype)).reshape(dims)
    return np.asarray(codes.view(dtype)).reshape(dims)


def typed_data(tensor: Message, dtype: np.dtype[Any], dims: tuple[int, ...], name: str) -> Array:
    """Elements stored as numbers; halves as the integers of the same bits."""
    field = TYPED.get(tensor["data_type"], "int32_data")
    stored = "<f4" if field == "float_data" else "<f8" if field == "double_data" else "<i8"
    values = numbers(tensor.get(field, ()), stored)
    bits = PACKED_BITS.get(tensor["data_type"], 8)
    count = -(-prod(dims) * bits // 8) if bits < 8 else prod(dims)
    if len(values) != count:
        raise Malformed(
            f"{name} has {counted(len(values), 'element')} in {field}, {dtype.name} of dims {dims} needs {count}"
        )
    are_bits = tensor["data_type"] in (HALF, *EXTENSIONS) and field == "int32_data"
    kept = f"<u{dtype.itemsize}" if are_bits else dtype
    check_range(values, np.dtype(kept), name)
    if bits < 8:
        return elements(values.astype(np.uint8).tobytes(), dtype, dims, bits)
    return values.astype(kept).view(dtype).reshape(dims)


def check_range(values: Array, dtype: np.dtype[Any], name: str) -> None:
    """Raise Malformed for integers that their type does not hold; of unsigned ones these may be the signed bits."""
    if dtype.kind not in "iu" or values.dtype.kind != "i" or not values.size:
        return
    bits = 8 * dtype.itemsize
    least, end = -(1 << bits - 1), 1 << (bits if dtype.kind == "u" else bits - 1)
    wrong = values[(values < least) | (values >= min(end, 1 << 63))] if bits < 64 else values[:0]
    if wrong.size:
        raise Malformed(f"{name} has the element {wrong[0]}, which {dtype.name} does not hold")


def numbers(parts: Any, dtype: str) -> Array:
    """What a repeated field has, single numbers and packed ones, as one array."""
    pieces = [np.atleast_1d(np.asarray(part, dtype)) for part in parts]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype)


def integers(message: Message, name: str) -> tuple[int, ...]:
    """A repeated field of integers."""
    return tuple(numbers(message.get(name, ()), "<i8").tolist())


def checked_dims(dims: tuple[int, ...], name: str) -> tuple[int, ...]:
    """The dims if a tensor can have them.  Raises Malformed."""
    if len(dims) > MOST_DIMS:
        raise Malformed(f"{name} has {counted(len(dims), 'dim')}, at most {MOST_DIMS} are possible")
    if any(n < 0 for n in dims) or prod(dims) > MOST_ELEMENTS:
        raise Malformed(f"{name} has dims {dims}, which no tensor can have")
    return dims


def external(tensor: Message, folder: Path | None, size: int, name: str) -> bytes:
    """The bytes of a tensor that lie in another file, in the model's folder or below.  Raises Malformed."""
    entries = {entry.get("key", ""): entry.get("value", "") for entry in tensor.get("external_data", ())}
    location = entries.get("location", "")
    if folder is None:
        raise Malformed(f"{name} lies in the file {location!r}: load the model by its path, not from bytes")
    try:
        base, path = folder.resolve(), (folder / location).resolve()
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", str(size)))
    except (ValueError, OSError, RuntimeError):
        raise Malformed(f"{name} has no usable place in the file {location!r}") from None
    if not location or not path.is_relative_to(base):
        raise Malformed(f"{name} lies in {location!r}, which is not in the model's folder")
    if length != size or offset < 0:
        raise Malformed(f"{name} has {length} bytes at {offset} of {location!r}, its dims need {size}")
    try:
        with regular_file(path) as file:
            if os.fstat(file.fileno()).st_size < offset + size:
                raise Malformed(f"{name} ends at byte {offset + size} of {location!r}, which is shorter")
            file.seek(offset)
            data: bytes = file.read(size)
    except OSError as error:
        raise Malformed(f"{name} lies in {location!r}, which cannot be read: {error.strerror}") from None
    if len(data) != size:
        raise Malformed(f"{name} ends after the end of {location!r}")
    return data
