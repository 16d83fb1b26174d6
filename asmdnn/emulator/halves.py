"""AVX512_FP16: arithmetic, products with sums, comparisons and conversions of 16-bit floats, rounded once.

A result is computed in float64 and rounded to the 11 bits of a half.  53 bits are more than twice 11 and 2, so for
sums, products, quotients and square roots rounding twice is rounding once (Figueroa, "When is double rounding
innocuous?", 1995).  The sum of a product and a half is exact in float64, or one of them is too small to matter for the
nearest half.  Denormals are numbers like others: this extension knows no other way.  Source: Intel's AVX512-FP16
architecture specification.

No CPU with this extension was at hand; the tests judge by exact fractions.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from iced_x86 import RegisterExt

from asmdnn.emulator.arithmetic import float_predicate
from asmdnn.emulator.cpu import mask_value
from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

HALF_BYTES: Final = 2
Function = Callable[[Array, Array], Array]

_TWO: Final[dict[str, Function]] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide,
    "MAX": lambda a, b: np.where(a > b, a, b), "MIN": lambda a, b: np.where(a < b, a, b),
}  # fmt: skip
_SIGNS: Final = {"VFMADD": (1, 1), "VFMSUB": (1, -1), "VFNMADD": (-1, 1), "VFNMSUB": (-1, -1)}
_ALTERNATING: Final = {"VFMADDSUB": (-1, 1), "VFMSUBADD": (1, -1)}  # the sign of z in even and odd lanes
_ORDERS: Final = ("132", "213", "231")
_INTEGERS: Final[dict[str, type]] = {
    "W": np.int16, "UW": np.uint16, "DQ": np.int32, "UDQ": np.uint32, "QQ": np.int64, "UQQ": np.uint64,
}  # fmt: skip
_FLOATS: Final[dict[str, type]] = {"PSX": np.float32, "PD": np.float64, "SS": np.float32, "SD": np.float64}


def _wide(a: Array) -> Array:
    return a.astype(np.float64)


def packed(ops: Operands) -> Step:
    """Operand 0 = operand 1 o operand 2 in every lane."""
    ops.only_default_rounding()
    function = _TWO[ops.name[1:-2]]
    a, b = ops.vector(1, np.float16), ops.source(2, np.float16, ops.vector_size)
    return ops.define(np.float16, lambda out: np.copyto(out, function(_wide(a), _wide(b())), casting="unsafe"))


def scalar(ops: Operands) -> Step:
    """Lane 0; the others of 128 bits are operand 1's."""
    ops.only_default_rounding()
    function = _TWO[ops.name[1:-2]]
    a, b = ops.vector(1, np.float16), ops.source(2, np.float16, HALF_BYTES)
    return ops.define_low(np.uint16, lambda: function(_wide(a[:1]), _wide(b())).astype(np.float16))


def square_root(ops: Operands) -> Step:
    ops.only_default_rounding()
    if ops.name == "VSQRTSH":
        low = ops.source(2, np.float16, HALF_BYTES)
        return ops.define_low(np.uint16, lambda: np.sqrt(_wide(low())).astype(np.float16))
    a = ops.source(1, np.float16, ops.vector_size)
    return ops.define(np.float16, lambda out: np.copyto(out, np.sqrt(_wide(a())), casting="unsafe"))


def fused(ops: Operands) -> Step:
    """+-(x * y) +- z, where the digits of the name say which operands these are; of SH in lane 0 alone."""
    ops.only_default_rounding()
    family = next(name for name in (*_ALTERNATING, *_SIGNS) if ops.name.startswith(name))
    digits = ops.name[len(family) : len(family) + 3]
    is_scalar = ops.name.endswith("SH")
    size = HALF_BYTES if is_scalar else ops.vector_size
    x, y, z = (ops.source(int(digit) - 1, np.float16, size) for digit in digits)
    lanes = size // HALF_BYTES
    of_product, of_sum = (1, np.resize(_ALTERNATING[family], lanes)) if family in _ALTERNATING else _SIGNS[family]

    def result() -> Array:
        rounded: Array = (of_product * (_wide(x()) * _wide(y())) + of_sum * _wide(z())).astype(np.float16)
        return rounded

    if not is_scalar:
        return ops.define(np.float16, lambda out: np.copyto(out, result()))
    lane, cpu, number, active = ops.vector(0, np.float16, HALF_BYTES), ops.cpu, ops.number(0), ops.active(1)

    def step() -> None:
        if active is None or active()[0]:
            lane[:] = result()
        elif ops.ins.zeroing_masking:
            lane[:] = 0
        cpu.settle(number, 16)

    return step


def compare(ops: Operands) -> Step:
    """VCMPPH, VCMPSH: into a mask register, where the write mask clears lanes."""
    predicate, size = float_predicate(ops.immediate()), ops.vector_size if ops.name == "VCMPPH" else HALF_BYTES
    a, b = ops.vector(1, np.float16, size), ops.source(2, np.float16, size)
    k, number, active = ops.cpu.k, ops.number(0), ops.active(size // HALF_BYTES)

    def step() -> None:
        lanes = predicate(a, b())
        k[number] = mask_value(lanes if active is None else lanes & active())

    return step


def flags(ops: Operands) -> Step:
    """VCOMISH, VUCOMISH: as an unsigned comparison's; ZF, PF and CF where one is NaN."""
    cpu, a, b = ops.cpu, ops.vector(0, np.float16), ops.source(1, np.float16, HALF_BYTES)

    def step() -> None:
        x, y = float(a[0]), float(b()[0])
        unordered = x != x or y != y
        cpu.zf, cpu.pf, cpu.cf = unordered or x == y, unordered, unordered or x < y
        cpu.of = cpu.sf = False

    return step


def converted(x: Array, wanted: type) -> Array:
    """Lanes of another type; of floats NaN becomes quiet and keeps its sign, and its digits as far as there is room."""
    found: Array = x.astype(wanted)
    if x.dtype.kind == "f" and (nan := np.isnan(x)).any():
        (bits, digits), (wide, room) = (
            (8 * dtype.itemsize, int(np.finfo(dtype).nmant)) for dtype in (x.dtype, found.dtype)
        )
        old = x[nan].view(f"u{x.itemsize}").astype(np.uint64)
        kept = old & np.uint64((1 << digits) - 1)
        kept = kept >> np.uint64(digits - room) if digits > room else kept << np.uint64(room - digits)
        exponent = (1 << wide - 1) - (1 << room - 1)  # all ones, and the first digit
        made = old >> np.uint64(bits - 1) << np.uint64(wide - 1) | np.uint64(exponent) | kept
        found.view(f"u{found.itemsize}")[nan] = made.astype(f"u{found.itemsize}")
    return found


def to_half(ops: Operands, given: type) -> Step:
    """Lanes of another type as halves, which fill the low part of the register."""
    ops.only_default_rounding()
    size = 16 << ops.ins.op_code().l  # of the source, which may be memory: then no register has this length
    lanes = size // np.dtype(given).itemsize
    a = ops.source(1, given, size)

    def fill(out: Array) -> None:
        out[:] = converted(a(), np.float16)  # through a copy: numpy gets overlapping operands of two sizes wrong

    return ops.define(np.float16, fill, lanes * HALF_BYTES)


def from_half(ops: Operands, wanted: type) -> Step:
    """Halves as lanes of another float, exactly."""
    lanes = ops.vector_size // np.dtype(wanted).itemsize
    a = ops.source(1, np.float16, lanes * HALF_BYTES)

    def fill(out: Array) -> None:
        out[:] = converted(a(), wanted)  # through a copy, as in to_half

    return ops.define(wanted, fill, ops.vector_size)


def to_integers(ops: Operands, wanted: type) -> Step:
    """To the nearest, of VCVTT towards zero; what does not fit is the integer that stands for it."""
    ops.only_default_rounding()
    lanes = ops.vector_size // max(np.dtype(wanted).itemsize, HALF_BYTES)
    a, rounded = ops.source(1, np.float16, lanes * HALF_BYTES), np.trunc if ops.name.startswith("VCVTT") else np.rint
    limits = np.iinfo(wanted)
    indefinite = limits.max if limits.min == 0 else limits.min  # all ones, or the sign alone

    def fill(out: Array) -> None:
        value = rounded(_wide(a()))
        fits = (value >= limits.min) & (value <= limits.max)  # false for NaN; a half is far from 2^63
        out[:] = np.where(fits, value, 0).astype(wanted)
        out[~fits] = indefinite

    return ops.define(wanted, fill, lanes * np.dtype(wanted).itemsize)


def other_scalar(ops: Operands) -> Step:
    """VCVTSH2SS, VCVTSS2SH and those of SD: lane 0; the rest of 128 bits is operand 1's."""
    ops.only_default_rounding()
    source, _, target = ops.name.removeprefix("VCVT").partition("2")
    given, wanted = _FLOATS.get(source, np.float16), _FLOATS.get(target, np.float16)
    a = ops.source(2, given, np.dtype(given).itemsize)
    bits = np.dtype(f"u{np.dtype(wanted).itemsize}").type
    return ops.define_low(bits, lambda: converted(a(), wanted))


def move_word(ops: Operands) -> Step:
    """VMOVW: 16 bits between the low lane of xmm, with zeros above, and memory or a general register."""
    if ops.is_register(0) and RegisterExt.is_vector_register(ops.ins.op_register(0)):
        read = ops.read_int(1)
        return ops.define(np.uint16, lambda out: out.fill(read() & 0xFFFF), HALF_BYTES)
    write, low = ops.write_int(0), ops.vector(1, np.uint16)
    return lambda: write(int(low[0]))


TABLE: dict[str, Callable[[Operands], Step]] = {
    **{f"V{name}PH": packed for name in _TWO}, **{f"V{name}SH": scalar for name in _TWO},
    **dict.fromkeys(("VSQRTPH", "VSQRTSH"), square_root), **dict.fromkeys(("VCMPPH", "VCMPSH"), compare),
    **{f"{family}{order}{kind}": fused for family in _SIGNS for order in _ORDERS for kind in ("PH", "SH")},
    **{f"{family}{order}PH": fused for family in _ALTERNATING for order in _ORDERS},
    **dict.fromkeys(("VCOMISH", "VUCOMISH"), flags), "VMOVW": move_word,
    **{f"VCVT{name}2PH": partial(to_half, given=dtype) for name, dtype in _INTEGERS.items()},
    "VCVTPS2PHX": partial(to_half, given=np.float32), "VCVTPD2PH": partial(to_half, given=np.float64),
    **{f"VCVTPH2{name}": partial(from_half, wanted=_FLOATS[name]) for name in ("PSX", "PD")},
    **{f"VCVT{kind}PH2{name}": partial(to_integers, wanted=dtype)
       for name, dtype in _INTEGERS.items() for kind in ("", "T")},
    **dict.fromkeys(("VCVTSH2SS", "VCVTSS2SH", "VCVTSH2SD", "VCVTSD2SH"), other_scalar),
}  # fmt: skip
