"""Conversions between lane types, rounding to an integral value, and packing to narrower integers."""

from collections.abc import Callable

import numpy as np
from iced_x86 import RoundingControl

from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

_INDEFINITE = -(1 << 31)  # the int32 for NaN and whatever does not fit
_ROUNDINGS = (np.rint, np.floor, np.ceil, np.trunc)
_BY_CONTROL = {RoundingControl.NONE: np.rint, RoundingControl.ROUND_TO_NEAREST: np.rint,
               RoundingControl.ROUND_DOWN: np.floor, RoundingControl.ROUND_UP: np.ceil,
               RoundingControl.ROUND_TOWARD_ZERO: np.trunc}  # fmt: skip


def to_int32(ops: Operands) -> Step:
    """VCVTPS2DQ, VCVTTPS2DQ."""
    a = ops.source(1, np.float32, ops.vector_size)
    rounding = np.trunc if ops.name == "VCVTTPS2DQ" else _BY_CONTROL[ops.ins.rounding_control]

    def fill(out: Array) -> None:
        value = rounding(a().astype(np.float64))
        fits = (value >= -(2.0**31)) & (value < 2.0**31)
        out[:] = np.where(fits, value, _INDEFINITE).astype(np.int64)

    return ops.define(np.int32, fill)


def lane_by_lane(source: type, target: type) -> Callable[[Operands], Step]:
    """A conversion that numpy's assignment does, as many lanes as fit the wider of the two."""
    from_size, to_size = np.dtype(source).itemsize, np.dtype(target).itemsize

    def build(ops: Operands) -> Step:
        ops.only_default_rounding()
        # A wide source may be memory, broadcast even, beside a small register: then only the encoding has the length.
        lanes = (16 << ops.ins.op_code().l) // from_size if from_size > to_size else ops.size(0) // to_size
        a = ops.source(1, source, lanes * from_size)

        def fill(out: Array) -> None:
            out[:] = a().astype(target)  # through a copy: numpy gets overlapping operands of two sizes wrong

        return ops.define(target, fill, lanes * to_size)

    return build


def half_to_single(ops: Operands) -> Step:
    """VCVTPH2PS: exact; a signalling NaN becomes quiet."""
    size = ops.vector_size
    a = ops.source(1, np.uint16, size // 2)

    def fill(out: Array) -> None:
        half = a().copy()
        out[:] = half.view(np.float16).astype(np.float32)
        nan = (half & 0x7FFF) > 0x7C00
        bits = half.astype(np.uint32)
        out.view(np.uint32)[nan] = ((bits & 0x8000) << 16 | 0x7FC0_0000 | (bits & 0x3FF) << 13)[nan]

    return ops.define(np.float32, fill, ops.size(0))


def single_to_half(ops: Operands) -> Step:
    """VCVTPS2PH, to nearest: the immediate must be 0, or 4 for MXCSR's mode, which is that."""
    if ops.immediate() & 7 not in (0, 4):
        ops.unsupported("rounding other than to nearest")
    a = ops.vector(1, np.uint32)

    def fill(out: Array) -> None:
        nan = (a & 0x7FFF_FFFF) > 0x7F80_0000
        half = a.view(np.float32).astype(np.float16).view(np.uint16)
        out[:] = np.where(nan, a >> 16 & 0x8000 | 0x7E00 | a >> 13 & 0x3FF, half)

    return ops.define(np.uint16, fill, len(a) * 2)


def single_to_bf16(ops: Operands) -> Step:
    """VCVTNEPS2BF16: to nearest even whatever MXCSR says, denormals as zeros; a signalling NaN becomes quiet."""
    size = 16 << ops.ins.op_code().l
    a = ops.source(1, np.uint32, size)

    def fill(out: Array) -> None:
        out[:] = bf16_of(a())

    return ops.define(np.uint16, fill, size // 2)


def two_to_bf16(ops: Operands) -> Step:
    """VCVTNE2PS2BF16: as VCVTNEPS2BF16, the lower half from the last operand, the upper one from the other."""
    size = ops.vector_size
    high, low = ops.vector(1, np.uint32), ops.source(2, np.uint32, size)

    def fill(out: Array) -> None:
        out[:] = np.concatenate((bf16_of(low()), bf16_of(high)))

    return ops.define(np.uint16, fill)


def bf16_of(bits: Array) -> Array:
    nearest = np.where(bits & 0x7F80_0000, bits + 0x7FFF + (bits >> 16 & 1), bits & 0x8000_0000)
    nan = (bits & 0x7FFF_FFFF) > 0x7F80_0000
    return np.asarray(np.where(nan, bits >> 16 | 0x40, nearest >> 16))


def round_to_integral(ops: Operands) -> Step:
    """VROUNDPS, VRNDSCALEPS without a scale."""
    immediate = ops.immediate()
    if immediate >> 4:
        ops.unsupported("a scale")
    rounding = np.rint if immediate & 4 else _ROUNDINGS[immediate & 3]
    a = ops.source(1, np.float32, ops.vector_size)
    return ops.define(np.float32, lambda out: rounding(a(), out))


def reduce(ops: Operands) -> Step:
    """VREDUCEPS without a scale: what is left of a number without the next integer below, or the nearest one."""
    immediate = ops.immediate()
    if immediate & ~8 > 1:
        ops.unsupported("a scale, or another rounding")
    down, source = immediate & 1 > 0, ops.source(1, np.float32, ops.vector_size)

    def fill(out: Array) -> None:
        a = source().astype(np.float64)
        finite = np.where(np.isinf(a), 0, a)
        left = finite - (np.floor if down else np.rint)(finite)
        out[:] = np.where(left == 0, -0.0 if down else 0.0, left)
        out[np.isinf(a)] = 0
        if down:  # the difference is rounded as the number was; f64 makes 1 of 1 - 2^-149
            above = (out > left) | (left == 1)
            out[above] = np.nextafter(out[above], np.float32(-1))

    return ops.define(np.float32, fill)


_INTEGERS: dict[str, tuple[type, type]] = {"B": (np.int8, np.uint8), "W": (np.int16, np.uint16),
                                           "D": (np.int32, np.uint32), "Q": (np.int64, np.uint64)}  # fmt: skip


def extend(ops: Operands) -> Step:
    """VPMOVZX*, VPMOVSX*: the low lanes of the source, each widened."""
    unsigned = ops.name.startswith("VPMOVZX")
    return lane_by_lane(_INTEGERS[ops.name[-2]][unsigned], _INTEGERS[ops.name[-1]][unsigned])(ops)


def narrow(ops: Operands) -> Step:
    """VPMOV*: truncate, or saturate as signed (S) or unsigned (US) integers."""
    unsigned = ops.name.startswith("VPMOVUS")
    saturate = unsigned or ops.name.startswith("VPMOVS")
    a, target = ops.vector(1, _INTEGERS[ops.name[-2]][unsigned]), _INTEGERS[ops.name[-1]][unsigned]
    limits = np.iinfo(target)

    def fill(out: Array) -> None:
        out[:] = (np.clip(a, limits.min, limits.max) if saturate else a).astype(target)

    return ops.define(target, fill, len(a) * np.dtype(target).itemsize)


PACKS: dict[str, tuple[type, type]] = {"VPACKSSDW": (np.int32, np.int16), "VPACKUSDW": (np.int32, np.uint16),
                                       "VPACKSSWB": (np.int16, np.int8), "VPACKUSWB": (np.int16, np.uint8)}  # fmt: skip


def pack(ops: Operands) -> Step:
    """In each 128 bits: the saturated lanes of operand 1, then those of operand 2."""
    source, target = PACKS[ops.name]
    a, b = ops.vector(1, source), ops.source(2, source, ops.vector_size, masked=False)
    limits, group = np.iinfo(target), 16 // np.dtype(source).itemsize

    def fill(out: Array) -> None:
        pairs = np.stack((a.reshape(-1, group), b().reshape(-1, group)), axis=1)
        out[:] = np.clip(pairs, limits.min, limits.max).astype(target).ravel()

    return ops.define(target, fill)


_NARROWINGS = [f"VPMOV{kind}{pair}" for kind in ("", "S", "US") for pair in ("DB", "DW", "WB", "QD", "QW", "QB")]
_EXTENSIONS = [f"VPMOV{kind}{pair}" for kind in ("ZX", "SX") for pair in ("BW", "BD", "BQ", "WD", "WQ", "DQ")]
TABLE: dict[str, Callable[[Operands], Step]] = {
    "VCVTPS2DQ": to_int32, "VCVTTPS2DQ": to_int32, "VCVTDQ2PS": lane_by_lane(np.int32, np.float32),
    "VCVTPS2PD": lane_by_lane(np.float32, np.float64), "VCVTPD2PS": lane_by_lane(np.float64, np.float32),
    "VCVTPH2PS": half_to_single, "VCVTPS2PH": single_to_half, "VCVTNEPS2BF16": single_to_bf16,
    "VCVTNE2PS2BF16": two_to_bf16,
    **dict.fromkeys(("VROUNDPS", "VRNDSCALEPS"), round_to_integral),
    "VREDUCEPS": reduce,
    **dict.fromkeys(_NARROWINGS, narrow), **dict.fromkeys(_EXTENSIONS, extend), **dict.fromkeys(PACKS, pack),
}  # fmt: skip
