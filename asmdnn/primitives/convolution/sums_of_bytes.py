"""Whether sums of products of bytes are integers or floats."""

from math import prod
from typing import Any

from asmdnn.generators.dot.depthwise import LONGEST_KERNEL, MOST_ROWS
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.types import INTEGERS8, f32, s8, s32, u8

CHANNEL = 1  # the dim
CHANNELS = 1 << CHANNEL  # of src: the bit of their dim in a mask
LARGEST_IN_FLOATS = 2**24  # of integers that f32 holds without a gap
LARGEST = {u8: 255, s8: 128}  # without a sign
FACTORS = {"src", "weights"}
DIFFERENCE = 255  # the largest of two bytes


def needs_integers(desc: Any, attr: Attr) -> bool:
    """Whether sums have to be exact, which those of f32 may not be; sums of either type may be asked for."""
    if attr.accumulation_mode in (s32.name, f32.name):
        return bool(attr.accumulation_mode != f32.name)
    if scales_channels(attr) or (desc.dst.dtype == s32 and dict(attr.zero_points).keys() & FACTORS):
        return bool(desc.dst.dtype == s32)  # zero points of any size, as their sums wrap
    products: int = prod(desc.weights.dims) // max(1, desc.dst.dims[CHANNEL])
    return products * prod(largest(desc, attr, name) for name in FACTORS) > LARGEST_IN_FLOATS


def largest(desc: Any, attr: Attr, name: str) -> int:
    """The largest of the numbers that are multiplied, without its sign; zero points are bytes of the tensor's type."""
    return DIFFERENCE if name in dict(attr.zero_points) else LARGEST[getattr(desc, name).dtype]


def scales_channels(attr: Attr) -> bool:
    """Whether scales come before sums."""
    return bool(dict(attr.scales).get("src", 0) & CHANNELS)


def are_long_rows(desc: Any, attr: Attr) -> bool:
    """Whether a depthwise kernel of bytes is longer than rows take it, and f32 holds its sums.

    Tiles have one channel then: 144 channels, 13x13 at 33x33, 2 images, took a Zen 5 5,168 us, and 140 as f32.  Of so
    many positions src is rather interleaved, where that is taken (interleaved.py).
    """
    rows, columns = (1, *desc.weights.dims)[-2:]
    is_depthwise = 1 < desc.groups == desc.src.dims[CHANNEL] == desc.dst.dims[CHANNEL]
    of_bytes = {desc.src.dtype, desc.weights.dtype} <= {*INTEGERS8}
    is_long = rows > MOST_ROWS or columns > LONGEST_KERNEL
    return is_depthwise and of_bytes and is_long and not needs_integers(desc, attr)
