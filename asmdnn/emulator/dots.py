"""Dot products of small groups: VPDPBUSD, VPDPWSSD, both with saturation too, and VDPBF16PS.

VDPBF16PS adds two products, that of the odd elements first, each with one rounding to nearest even; whatever MXCSR
says, denormal inputs and results count as zero.  So measured on hardware, bit for bit, and so in the manual.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.emulator.fma import round_to_odd
from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

S32 = np.iinfo(np.int32)
SMALLEST_NORMAL = 2.0**-126
# What is below the middle between the smallest normal number and the one before it in a format without denormals is
# tiny after rounding, and so flushed; the middle itself rounds to even, which is normal.
TINY = SMALLEST_NORMAL * (1 - 2.0**-25)


def of_integers(a_type: type[Any], b_type: type[Any], *, saturates: bool = False) -> Callable[[Operands], Step]:
    """VPDPBUSD, VPDPWSSD: the products of a lane's elements are added to its s32, modulo 2^32; or, as those that end in
    S do, with one saturation of the exact sum."""

    def build(ops: Operands) -> Step:
        size = ops.vector_size
        sums, a, b = ops.vector(0, np.int32), ops.vector(1, a_type), ops.source(2, np.uint32, size)
        group = S32.bits // np.iinfo(a_type).bits

        def fill(out: Array) -> None:
            products = a.astype(np.int64) * b().view(b_type)
            total = sums + products.reshape(-1, group).sum(axis=1)
            out[:] = (np.clip(total, S32.min, S32.max) if saturates else total).astype(np.uint32)

        return ops.define(np.uint32, fill)

    return build


def bf16_by_bf16(ops: Operands) -> Step:
    """VDPBF16PS."""
    size = ops.vector_size
    sums, a, b = ops.vector(0, np.float32), ops.vector(1, np.uint32), ops.source(2, np.uint32, size)

    def fill(out: Array) -> None:
        left, right, total = a.copy(), b().copy(), flushed(sums.copy())
        for half in (upper, lower):
            total = add_product(flushed(half(left)), flushed(half(right)), total)
        out[:] = total

    return ops.define(np.float32, fill)


def upper(pairs: Array) -> Array:
    """The bf16 of odd number as f32."""
    return (pairs & np.uint32(0xFFFF_0000)).view(np.float32)


def lower(pairs: Array) -> Array:
    return (pairs << np.uint32(16)).view(np.float32)


def flushed(x: Array) -> Array:
    """x with denormals as zeros of their sign."""
    return np.where(np.abs(x) < np.float32(SMALLEST_NORMAL), np.copysign(np.float32(0), x), x)


def add_product(x: Array, y: Array, addend: Array) -> Array:
    """x * y + addend, rounded once, flushed if tiny; all f32."""
    product, start = x.astype(np.float64) * y, addend.astype(np.float64)  # the product is exact
    total = round_to_odd(product, start, product + start)
    return np.where(np.abs(total) < TINY, np.copysign(0.0, total), total).astype(np.float32)


TABLE: dict[str, Callable[[Operands], Step]] = {
    "VPDPBUSD": of_integers(np.uint8, np.int8),
    "VPDPBUSDS": of_integers(np.uint8, np.int8, saturates=True),
    "VPDPWSSD": of_integers(np.int16, np.int16),
    "VPDPWSSDS": of_integers(np.int16, np.int16, saturates=True),
    "VDPBF16PS": bf16_by_bf16,
}
