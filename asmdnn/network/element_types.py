"""ONNX's numbers of element types, and numpy's types for them; those that numpy lacks are ml_dtypes'."""

from functools import cache
from typing import Any

import numpy as np

from asmdnn.forking import importing
from asmdnn.network.onnx.wire import Malformed, NotRead

ELEMENTS = {
    1: "<f4", 2: "|u1", 3: "|i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 9: "|b1", 10: "<f2", 11: "<f8", 12: "<u4",
    13: "<u8",
}  # fmt: skip
EXTENSIONS = {
    16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4",
    22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
}  # fmt: skip
CODES = {np.dtype(name).name: code for code, name in ELEMENTS.items()} | {x: i for i, x in EXTENSIONS.items()}
PACKED_BITS = {
    21: 4,
    22: 4,
    23: 4,
    25: 2,
    26: 2,
}  # of elements; a file has several in a byte, the low one first
STRING = 8  # ONNX's number of texts
UNREAD = {STRING: "string", 14: "complex64", 15: "complex128"}


def element_type(code: int, what: str) -> np.dtype[Any]:
    """numpy's type for ONNX's number of a type.  Raises Malformed, NotRead."""
    found = ELEMENTS.get(code)
    if found is not None:
        return np.dtype(found)
    if code not in EXTENSIONS:
        if code in UNREAD:
            kind = UNREAD[code]
            raise NotRead(f"{what} has elements of type {kind}, only numbers and bool are read: cut the file off there")
        raise Malformed(f"{what} has elements of type number {code}, only numbers and bool are read")
    extension = extension_type(EXTENSIONS[code])
    if extension is None:
        raise NotRead(f"{what} has elements of type {EXTENSIONS[code]}, which ml_dtypes has: pip install ml_dtypes")
    return extension


@cache
def extension_type(name: str) -> np.dtype[Any] | None:
    """ml_dtypes' type of this name; None without the package, or if it is too old for it."""
    try:
        with importing():
            import ml_dtypes
    except ImportError:
        return None
    found = getattr(ml_dtypes, name, None)
    return None if found is None else np.dtype(found)
