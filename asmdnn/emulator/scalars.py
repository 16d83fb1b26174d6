"""One number: conversions between integers and floats, and between float and double; comparisons and roots."""

from collections.abc import Callable

import numpy as np

from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

_FLOATS: dict[str, type] = {"S": np.float32, "D": np.float64}
_BITS: dict[str, type] = {"S": np.uint32, "D": np.uint64}


def from_integer(ops: Operands) -> Step:
    """VCVTSI2SS, VCVTSI2SD: a signed integer of 32 or 64 bits into lane 0, the others from operand 1."""
    ops.only_default_rounding()
    dtype, read, sign = _FLOATS[ops.name[-1]], ops.read_int(2), 1 << 8 * ops.size(2) - 1
    whole = ops.vector(1, dtype)

    def fill(out: Array) -> None:
        out[:] = whole
        out[0] = np.int64((read() ^ sign) - sign).astype(dtype)

    return ops.define(dtype, fill, 16)


def to_integer(ops: Operands) -> Step:
    """VCVTTS?2SI truncate, VCVTS?2SI round to even; what does not fit is the least integer."""
    ops.only_default_rounding()
    dtype, bits = _FLOATS[ops.name[-4]], 8 * ops.size(0)
    a, write = ops.source(1, dtype, np.dtype(dtype).itemsize), ops.write_int(0)
    rounding = np.trunc if ops.name.startswith("VCVTT") else np.rint
    limit = 2.0 ** (bits - 1)

    def step() -> None:
        value = float(rounding(a()[:1].astype(np.float64))[0])
        write(int(value) if -limit <= value < limit else -(1 << bits - 1))

    return step


def other_width(ops: Operands) -> Step:
    """VCVTSS2SD, VCVTSD2SS: lane 0 from operand 2, the others of 128 bits from operand 1."""
    ops.only_default_rounding()
    source, target = _FLOATS[ops.name[5]], _FLOATS[ops.name[-1]]
    a = ops.source(2, source, np.dtype(source).itemsize)
    return ops.define_low(_BITS[ops.name[-1]], lambda: a()[:1].astype(target))


def square_root(ops: Operands) -> Step:
    """VSQRTSS, VSQRTSD of operand 2."""
    ops.only_default_rounding()
    dtype = _FLOATS[ops.name[-1]]
    a = ops.source(2, dtype, np.dtype(dtype).itemsize)
    return ops.define_low(_BITS[ops.name[-1]], lambda: np.sqrt(a()[:1]))


def compare(ops: Operands) -> Step:
    """VUCOMISS, VCOMISD, ...: as an unsigned comparison's flags; ZF, PF and CF where one is NaN."""
    cpu, dtype = ops.cpu, _FLOATS[ops.name[-1]]
    a, b = ops.vector(0, dtype), ops.source(1, dtype, np.dtype(dtype).itemsize)

    def step() -> None:
        x, y = a[0], b()[0]
        unordered = bool(x != x or y != y)
        cpu.zf, cpu.pf, cpu.cf = unordered or bool(x == y), unordered, unordered or bool(x < y)
        cpu.of = cpu.sf = False

    return step


TABLE: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(("VCVTSI2SS", "VCVTSI2SD"), from_integer),
    **{f"VCVT{kind}S{of}2SI": to_integer for kind in ("", "T") for of in _FLOATS},
    **{f"V{kind}COMIS{of}": compare for kind in ("", "U") for of in _FLOATS},
    "VSQRTSS": square_root, "VSQRTSD": square_root, **dict.fromkeys(("VCVTSS2SD", "VCVTSD2SS"), other_width),
}  # fmt: skip
