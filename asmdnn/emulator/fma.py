"""Fused multiply-add of float32, and of float64, rounded once.

The product of two float32 is exact in float64, the sum is not: rounding it to float64 and then to float32 goes wrong
when the first rounding lands on a tie of the second.  Such sums are rare and easy to spot, and are computed again with
rounding to odd, which makes the double rounding harmless (Boldo and Melquiond, "Emulation of a FMA and correctly
rounded sums: proved algorithms using rounding to odd", 2008); the rounding error comes from Knuth's TwoSum.

Where two or three operands are NaN, which of them the result shows is up to the host's arithmetic.
"""

from collections.abc import Callable
from fractions import Fraction
from math import inf, isfinite

import numpy as np

from asmdnn.emulator.cpu import Cpu
from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

BELOW_F32 = np.uint64((1 << 29) - 1)  # the bits of a float64 significand that float32 lacks
TIE = (1 << 28).to_bytes(8, "little")  # their value halfway between two float32
_TYPES: dict[str, type] = {"S": np.float32, "D": np.float64}
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


def fused_double(family: str) -> Callable[[Array, Array, Array, Array], None]:
    """As `fused`, of float64: by fractions where all is finite."""
    negated, subtracted = family == "VFNMADD", family == "VFMSUB"

    def compute(x: Array, y: Array, z: Array, out: Array) -> None:
        left, addend = -x if negated else x, -z if subtracted else z
        out[:] = [_exactly(*lane) for lane in zip(left.tolist(), y.tolist(), addend.tolist(), strict=True)]

    return compute


def _exactly(x: float, y: float, z: float) -> float:
    if not (isfinite(x) and isfinite(y) and isfinite(z)) or not (x and y):
        return float(np.float64(x) * np.float64(y) + np.float64(z))
    total = Fraction(x) * Fraction(y) + Fraction(z)
    try:
        return float(total)
    except OverflowError:
        return inf if total > 0 else -inf


def _roles(name: str) -> tuple[int, int, int]:
    """The operands that are x, y and z, from the digits in the mnemonic: first times second plus third."""
    digits = next(part for part in ("132", "213", "231") if part in name)
    return tuple(int(digit) - 1 for digit in digits)  # type: ignore[return-value]


def _family(name: str) -> str:
    return next(family for family in COMBINE if name.startswith(family))


def _compute(ops: Operands, size: int) -> Callable[[Array, Array, Array, Array], None]:
    family = _family(ops.name)
    return fused_double(family) if ops.name[-1] == "D" else fused(ops.cpu, size // 4, family)


def packed(ops: Operands) -> Step:
    ops.only_default_rounding()
    size, order, dtype = ops.vector_size, _roles(ops.name), _TYPES[ops.name[-1]]
    compute = _compute(ops, size)
    first, second, last = ops.vector(0, dtype), ops.vector(1, dtype), ops.source(2, dtype, size)
    if order == (1, 2, 0):  # nearly all of them: no tuple to build
        return ops.define(dtype, lambda out: compute(second, last(), first, out))
    if order == (1, 0, 2):
        return ops.define(dtype, lambda out: compute(second, first, last(), out))
    return ops.define(dtype, lambda out: compute(first, last(), second, out))


def scalar(ops: Operands) -> Step:
    """Lane 0 only; the destination keeps lanes 1 to 3."""
    ops.only_default_rounding()
    dtype = _TYPES[ops.name[-1]]
    size = np.dtype(dtype).itemsize
    compute = _compute(ops, size)
    x, y, z = (ops.source(i, dtype, size) for i in _roles(ops.name))
    lane, cpu, number = ops.vector(0, dtype, size), ops.cpu, ops.number(0)
    active, zeroing = ops.active(1), ops.ins.zeroing_masking
    result: Array = np.empty(1, dtype)

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
    **{f"{family}{order}P{kind}": packed for family in COMBINE for order in _ORDERS for kind in "SD"},
    **{f"{family}{order}S{kind}": scalar for family in COMBINE for order in _ORDERS for kind in "SD"},
}
