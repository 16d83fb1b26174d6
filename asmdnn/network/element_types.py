"""ONNX's numbers of element types, and numpy's types for them."""

from typing import Any

import numpy as np

from asmdnn.network.onnx.wire import Malformed

ELEMENTS = {
    1: "<f4", 2: "|u1", 3: "|i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 9: "|b1", 10: "<f2", 11: "<f8", 12: "<u4",
    13: "<u8",
}  # fmt: skip
UNREAD = {8: "string", 14: "complex64", 15: "complex128", 16: "bfloat16"}  # others are 8 bits and less


def element_type(code: int, what: str) -> np.dtype[Any]:
    """numpy's type for ONNX's number of a type.  Raises Malformed."""
    found = ELEMENTS.get(code)
    if found is None:
        name = UNREAD.get(code, f"number {code}")
        raise Malformed(f"{what} has elements of type {name}, only f16, f32, f64, bool and integers are read")
    return np.dtype(found)
