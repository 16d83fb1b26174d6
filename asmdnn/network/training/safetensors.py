"""Arrays as a safetensors file: the size of a header, the header in JSON, then the data of all arrays.

Source: https://github.com/huggingface/safetensors, README.md, "Format".
"""

import json
import struct
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from asmdnn.network.arrays import Array
from asmdnn.network.passing import type_named
from asmdnn.network.states import TYPES as STATE_TYPES

NAMES = {name: name.replace("uint", "u").replace("int", "i").replace("float", "f").upper() for name in STATE_TYPES}
TYPES = {word: name for name, word in NAMES.items()}
ALIGNMENT, MOST_TENSORS_HEADER_BYTES = 8, 100_000_000
METADATA = "__metadata__"


def tensors_bytes(arrays: Mapping[str, Array]) -> bytes:
    """The file, for arrays of the types that states have, and of i64.  Raises ValueError for a name that it has not."""
    if METADATA in arrays:
        raise ValueError(f"{METADATA} is no name of a tensor in it: use .npz, or another name")
    header, start = dict[str, Any](), 0
    for name, array in arrays.items():
        end = start + array.nbytes
        header[name] = {"dtype": NAMES[array.dtype.name], "shape": array.shape, "data_offsets": (start, end)}
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    return b"".join((struct.pack("<Q", len(text)), text, *(np.ascontiguousarray(x).tobytes() for x in arrays.values())))


def tensors_in(data: bytes) -> dict[str, Array]:
    """The arrays by name, copies of a file's bytes.  Raises ValueError and others for what is no such file."""
    size = int(struct.unpack_from("<Q", data)[0])
    if size > min(len(data) - 8, MOST_TENSORS_HEADER_BYTES):
        raise ValueError(f"its header has {size} bytes, the file {len(data)}")
    header, data = json.loads(data[8 : 8 + size].decode()), data[8 + size :]
    found = {name: tensor_in(name, entry, data) for name, entry in header.items() if name != METADATA}
    if sum(array.nbytes for array in found.values()) != len(data):
        raise ValueError(f"its tensors are not the {len(data)} bytes of data that it has")
    return found


def tensor_in(name: str, entry: Mapping[str, Any], data: bytes) -> Array:
    """Raises ValueError and others for an entry that does not fit the data."""
    kind, dims, (start, end) = TYPES.get(entry["dtype"]), tuple(entry["shape"]), entry["data_offsets"]
    if kind is None or not all(type(n) is int and n >= 0 for n in (*dims, start, end)):
        raise ValueError(f"{name} is {entry['dtype']}{list(dims)}, only {', '.join(TYPES)} are read")
    dtype = type_named(kind)
    if not start <= end <= len(data) or end - start != prod(dims) * dtype.itemsize:
        raise ValueError(f"{name} of dims {list(dims)} lies at {start} to {end} of {len(data)} bytes")
    found: Array = np.frombuffer(data, dtype, prod(dims), start).reshape(dims).copy()
    return found
