"""Types of 4 bits: two elements in a byte, the first one in its lower half."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory.allocation import allocated
from asmdnn.memory.layout import Placement
from asmdnn.types import DataType

BITS: Final = 4
LIMITS: Final = {"s4": (-8, 7), "u4": (0, 15), "f4_e2m1": (0, 15), "nf4": (0, 15)}  # of floats their codes


def check_packed(dims: tuple[int, ...], dtype: DataType, place: Placement, offset0: int) -> None:
    """Raise InvalidArguments for a layout in which rows, blocks or the whole begin or end within a byte."""
    if 0 in dims or not place.strides:
        return
    block = 1
    for _, size in place.inner_blocks:
        block *= size
    what = f"dims {dims} of {dtype}, two in a byte,"
    if offset0 % 2:
        raise InvalidArguments(f"{what} begin at element {offset0}, within a byte: begin at an even one")
    if block > 1 and block % 2:
        raise InvalidArguments(f"{what} have blocks of {block} elements: their number must be even")
    steps = list(enumerate(zip(place.padded_dims, place.live, strict=True)))
    for dim, (n, stride) in steps:
        if block == 1 and stride == 1 and n % 2:
            raise InvalidArguments(
                f"{what} have {counted(n, 'element')} side by side in dim {dim}: their number must be even"
            )
    for dim, (_, stride) in steps:
        if stride % 2 and not (block == 1 and stride == 1):
            raise InvalidArguments(f"{what} have a stride of {stride} in dim {dim}: it must be even")
    if place.extent % 2:
        raise InvalidArguments(f"{what} reach over {counted(place.extent, 'element')}: their number must be even")


def unpacked(octets: NDArray[Any], dtype: DataType) -> NDArray[Any]:
    """All elements in order, a byte each, of bytes that hold them."""
    halves = allocated(np.empty, 2 * octets.size, np.uint8)
    halves[::2], halves[1::2] = octets & 15, octets >> BITS
    if LIMITS[dtype.name][0] == 0:
        return halves
    signed: NDArray[Any] = (halves ^ 8).view(np.int8)
    signed -= 8
    return signed


def packed(elements: NDArray[Any], dtype: DataType) -> NDArray[Any]:
    """The bytes that hold integers in range."""
    halves = allocated(elements.astype, np.int8).view(np.uint8) & 15
    found: NDArray[Any] = halves[::2] | halves[1::2] << BITS
    return found


def packed_dims(array: NDArray[Any]) -> tuple[int, ...]:
    """Those of the tensor that dense bytes hold.  Raises InvalidArguments."""
    if array.dtype != np.uint8 or not array.ndim or not array.flags.c_contiguous:
        raise InvalidArguments(
            f"array has elements of {array.dtype} and strides {array.strides}: two elements of 4 bits each lie in a "
            "byte of a C-contiguous array of uint8; Memory.from_numpy packs integers"
        )
    return (*array.shape[:-1], 2 * array.shape[-1])


def as_integers(array: NDArray[Any], dtype: DataType) -> NDArray[Any]:
    """int8 or uint8 of integers in range, ml_dtypes' among them.  Raises InvalidArguments."""
    least, most = LIMITS[dtype.name]
    kind = np.int8 if least else np.uint8
    numbers = allocated(array.astype, kind) if array.dtype.name == dtype.extension else array
    if numbers.dtype.kind not in "iu":
        raise InvalidArguments(f"array has elements of {array.dtype}, not {dtype}: use integers")
    if numbers.size and not (least <= numbers.min() and numbers.max() <= most):
        what = f"from {numbers.min()} to {numbers.max()}"
        raise InvalidArguments(f"array has numbers {what}, {dtype} has {least} to {most}")
    found: NDArray[Any] = allocated(numbers.astype, kind)
    return found
