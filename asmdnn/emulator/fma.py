"""Fused multiply-add of float32, rounded once.

The product of two float32 is exact in float64, the sum is not: rounding it to float64 and then to float32 goes wrong
when the first rounding lands on a tie of the second.  Such sums are rare and easy to spot, and are computed again with
rounding to odd, which makes the double rounding harmless (Boldo and Melquiond, "Emulation of a FMA and correctly
rounded sums: proved algorithms using rounding to odd", 2008); the rounding error comes from Knuth's TwoSum.

Where two or three operands are NaN, which of them the result shows is up to the host's arithmetic.
"""

from collections.abc import Callable

import numpy as np

from asmdnn.emulator.cpu import Cpu
from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

BELOW_F32 = np.uint64((1 << 29) - 1)  # the bits of a float64 significand that float32 lacks
TIE = (1 << 28).to_bytes(8, "little")  # their value halfway between two float32
COMBINE = {"VFMADD": (np.add, 1), "VFMSUB": (np.subtract, 1), "VFNMADD": (np.subtract, -1)}


def _scratch(cpu: Cpu, lanes: int) -> tuple[Array, ...]:
    """float64 copies of x, y, z in x * y + z; the product; the sum, also as bits; and the bits below float32."""
    if lanes not in cpu.scratch:
        x, y, z, product, total = np.zeros((5, lanes))
        cpu.scratch[lanes] = (x, y, z, product, total, total.view(np.uint64), np.zeros(lanes, np.uint64))
    return cpu.scratch[lanes]


def round_to_odd(product: Array, addend: Array, total: Array) -> Array:
    """product + addend in float64, of which `total` is the nearest: truncated, with a sticky last bit."""
    part = total - product
    error = (product - (total - part)) + (addend - part)
    inexact = np.isfinite(total) & (error != 0)
    towards_zero = inexact & ((error < 0) == (total > 0))
    bits: Array = (total.view(np.uint64) - towards_zero) | inexact
    return bits.view(np.float64)


def fused(cpu: Cpu, lanes: int, family: str) -> Callable[[Array, Array, Array, Array], None]:
    """A function (x, y, z, out): out = +-(x * y) +- z, where out may be any of them."""
    x64, y64, z64, product, total, bits, below = _scratch(cpu, lanes)
    combine, sign = COMBINE[family]
    multiply, bitwise_and = np.multiply, np.bitwise_and

    def compute(x: Array, y: Array, z: Array, out: Array) -> None:
        x64[:] = x
        y64[:] = y
        z64[:] = z
        multiply(x64, y64, product)
        if sign > 0:
            combine(product, z64, total)
        else:
            combine(z64, product, total)
        bitwise_and(bits, BELOW_F32, below)
        out[:] = total
        # An inexact subnormal result has its ties elsewhere; numpy reports it as an underflow of the conversion.
        if TIE in below.tobytes() or cpu.underflow:
            cpu.underflow = False
            addend = -z64 if family == "VFMSUB" else z64
            out[:] = round_to_odd(sign * product, addend, total)
            cpu.underflow = False

    return compute


def _roles(name: str) -> tuple[int, int, int]:
    """The operands that are x, y and z, from the digits in the mnemonic: first times second plus third."""
    digits = next(part for part in ("132", "213", "231") if part in name)
    return tuple(int(digit) - 1 for digit in digits)  # type: ignore[return-value]


def _family(name: str) -> str:
    return next(family for family in COMBINE if name.startswith(family))


def packed(ops: Operands) -> Step:
    ops.only_default_rounding()
    size = ops.vector_size
    compute = fused(ops.cpu, size // 4, _family(ops.name))
    first, second = ops.vector(0, np.float32), ops.vector(1, np.float32)
    last = ops.source(2, np.float32, size)
    order = _roles(ops.name)
    if order == (1, 2, 0):  # nearly all of them: no tuple to build
        return ops.define(np.float32, lambda out: compute(second, last(), first, out))
    if order == (1, 0, 2):
        return ops.define(np.float32, lambda out: compute(second, first, last(), out))
    return ops.define(np.float32, lambda out: compute(first, last(), second, out))


def scalar(ops: Operands) -> Step:
    """Lane 0 only; the destination keeps lanes 1 to 3."""
    ops.only_default_rounding()
    compute = fused(ops.cpu, 1, _family(ops.name))
    values = [ops.source(i, np.float32, 4) for i in range(3)]
    x, y, z = (values[i] for i in _roles(ops.name))
    lane, cpu, number = ops.vector(0, np.float32, 4), ops.cpu, ops.number(0)
    active, zeroing, result = ops.active(1), ops.ins.zeroing_masking, np.empty(1, np.float32)

    def step() -> None:
        compute(x(), y(), z(), result)
        if active is None or active()[0]:
            lane[:] = result
        elif zeroing:
            lane[:] = 0
        cpu.settle(number, 16)

    return step


_ORDERS = ("132", "213", "231")
TABLE: dict[str, Callable[[Operands], Step]] = {
    **{f"{family}{order}PS": packed for family in COMBINE for order in _ORDERS},
    **{f"{family}{order}SS": scalar for family in COMBINE for order in _ORDERS},
}
