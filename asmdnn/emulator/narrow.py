"""Lane-wise integers that saturate, average or keep upper halves; tests of whole vectors; blends and shifts by vectors.

Each is a function of two lanes as their manual pages have it, computed in 64 bits, where nothing overflows.
"""

from collections.abc import Callable

import numpy as np

from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

Wide = Callable[[Array, Array], Array]
_SIGNED: dict[str, type] = {"B": np.int8, "W": np.int16, "D": np.int32, "Q": np.int64}
_UNSIGNED: dict[str, type] = {"B": np.uint8, "W": np.uint16, "D": np.uint32, "Q": np.uint64}


def _saturated(function: Wide, dtype: type) -> Wide:
    limits = np.iinfo(dtype)
    return lambda a, b: np.clip(function(a, b), limits.min, limits.max)


def _extremum(smaller: bool) -> Wide:
    return np.minimum if smaller else np.maximum


LANEWISE: dict[str, tuple[type, Wide]] = {
    **{f"VP{name}S{lane}": (_SIGNED[lane], _saturated(function, _SIGNED[lane]))
       for name, function in (("ADD", np.add), ("SUB", np.subtract)) for lane in "BW"},
    **{f"VP{name}US{lane}": (_UNSIGNED[lane], _saturated(function, _UNSIGNED[lane]))
       for name, function in (("ADD", np.add), ("SUB", np.subtract)) for lane in "BW"},
    **{f"VPAVG{lane}": (_UNSIGNED[lane], lambda a, b: (a + b + 1) >> 1) for lane in "BW"},
    **{f"VP{name}S{lane}": (_SIGNED[lane], _extremum(name == "MIN")) for name, lanes in (("MIN", "BWQ"), ("MAX", "WQ"))
       for lane in lanes},
    "VPMINUB": (np.uint8, np.minimum), "VPMINUW": (np.uint16, np.minimum), "VPMAXUW": (np.uint16, np.maximum),
    "VPMULHW": (np.int16, lambda a, b: a * b >> 16), "VPMULHUW": (np.uint16, lambda a, b: a * b >> 16),
    "VPMULHRSW": (np.int16, lambda a, b: ((a * b >> 14) + 1) >> 1),
    **{f"VPSIGN{lane}": (_SIGNED[lane], lambda a, b: a * np.sign(b)) for lane in "BWD"},
}  # fmt: skip


def lanewise(ops: Operands) -> Step:
    """Operand 0 = function(operand 1, operand 2), wrapped to the lane."""
    dtype, function = LANEWISE[ops.name]
    a, b = ops.vector(1, dtype), ops.source(2, dtype, ops.vector_size)

    def fill(out: Array) -> None:
        out[:] = function(a.astype(np.int64), b().astype(np.int64)).astype(dtype)

    return ops.define(dtype, fill)


def multiply_low_signed(ops: Operands) -> Step:
    """VPMULDQ: the low halves of each 64 bits, as signed numbers."""
    a, b = ops.vector(1, np.int64), ops.source(2, np.int64, ops.vector_size)

    def fill(out: Array) -> None:
        out[:] = a.astype(np.int32).astype(np.int64) * b().astype(np.int32)

    return ops.define(np.int64, fill)


def absolute(ops: Operands) -> Step:
    """VPABSB and the like; the least number stays."""
    dtype = _SIGNED[ops.name[-1]]
    a = ops.source(1, dtype, ops.vector_size)
    return ops.define(dtype, lambda out: np.abs(a(), out))


def shift_by_lanes(ops: Operands) -> Step:
    """VPSLLVD, VPSRLVD, VPSRAVD and their W and Q forms: each lane by the lane of operand 2."""
    lane, signed, left = ops.name[-1], "SRAV" in ops.name, "SLLV" in ops.name
    dtype, bits = (_SIGNED if signed else _UNSIGNED)[lane], 8 * np.dtype(_SIGNED[lane]).itemsize
    a, b = ops.vector(1, dtype), ops.source(2, _UNSIGNED[lane], ops.vector_size)

    def fill(out: Array) -> None:
        counts = b()
        within: Array = np.minimum(counts, bits - 1).astype(dtype)
        found = np.left_shift(a, within) if left else np.right_shift(a, within)
        out[:] = found if signed else np.where(counts < bits, found, 0)

    return ops.define(dtype, fill)


def rotate(ops: Operands) -> Step:
    """VPROLD, VPRORVQ, ...: by an immediate or by the lanes of operand 2."""
    lane = ops.name[-1]
    dtype, bits = _UNSIGNED[lane], 8 * np.dtype(_UNSIGNED[lane]).itemsize
    by_lanes = ops.name[-2] == "V"
    a = ops.vector(1, dtype) if by_lanes else None
    read = ops.source(2 if by_lanes else 1, dtype, ops.vector_size)
    fixed = None if by_lanes else ops.immediate()
    sign = 1 if "ROL" in ops.name else -1

    def fill(out: Array) -> None:
        values = read() if a is None else a
        counts = np.asarray(fixed if a is None else read(), np.int64) * sign % bits
        up: Array = counts.astype(dtype)
        down: Array = ((bits - counts) % bits).astype(dtype)
        out[:] = values << up | values >> down

    return ops.define(dtype, fill)


def align_bytes(ops: Operands) -> Step:
    """VPALIGNR: in each 128 bits, 16 bytes of operand 1 above operand 2, from the byte that the immediate says."""
    a, b, first = ops.vector(1, np.uint8), ops.source(2, np.uint8, ops.vector_size, masked=False), ops.immediate()

    def fill(out: Array) -> None:
        pool = np.zeros((len(a) // 16, 48 + 256), np.uint8)
        pool[:, :16], pool[:, 16:32] = b().reshape(-1, 16), a.reshape(-1, 16)
        out[:] = pool[:, first : first + 16].ravel()

    return ops.define(np.uint8, fill)


def blend_words(ops: Operands) -> Step:
    """VPBLENDW: words of operand 2 where the immediate says, in each 128 bits alike."""
    a, b, imm = ops.vector(1, np.uint16), ops.source(2, np.uint16, ops.vector_size, masked=False), ops.immediate()
    chosen = np.array([imm >> i % 8 & 1 for i in range(len(a))], bool)

    def fill(out: Array) -> None:
        out[:] = np.where(chosen, b(), a)

    return ops.define(np.uint16, fill)


def blend_bytes(ops: Operands) -> Step:
    """VPBLENDVB: operand 2 where the sign bit of operand 3 is set."""
    a, b, sign = ops.vector(1, np.uint8), ops.source(2, np.uint8, ops.vector_size), ops.vector(3, np.int8)

    def fill(out: Array) -> None:
        out[:] = np.where(sign < 0, b(), a)

    return ops.define(np.uint8, fill)


def signs_of_bytes(ops: Operands) -> Step:
    """VPMOVMSKB: the sign of every byte as a bit."""
    write, lanes = ops.write_int(0), ops.vector(1, np.int8)
    return lambda: write(int.from_bytes(np.packbits(lanes < 0, bitorder="little").tobytes(), "little"))


def signs_of_doubles(ops: Operands) -> Step:
    """VMOVMSKPD."""
    write, lanes = ops.write_int(0), ops.vector(1, np.int64)
    return lambda: write(int(np.packbits(lanes < 0, bitorder="little")[0]))


def test_all(ops: Operands) -> Step:
    """VPTEST: ZF, the operands have no bit in common; CF, operand 1 has nothing outside operand 0."""
    cpu, a, b = ops.cpu, ops.vector(0, np.uint64), ops.source(1, np.uint64, ops.vector_size)

    def step() -> None:
        other = b()
        cpu.zf, cpu.cf = not (a & other).any(), not (~a & other).any()
        cpu.of = cpu.sf = cpu.pf = False

    return step


TABLE: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(LANEWISE, lanewise), "VPMULDQ": multiply_low_signed,
    **{f"VPABS{lane}": absolute for lane in "BWDQ"},
    **{f"VPS{kind}V{lane}": shift_by_lanes for kind in ("LL", "RL", "RA") for lane in "WDQ"},
    **{f"VPRO{side}{by}{lane}": rotate for side in "LR" for by in ("", "V") for lane in "DQ"},
    "VPALIGNR": align_bytes, "VPBLENDW": blend_words, "VPBLENDVB": blend_bytes, "VPMOVMSKB": signs_of_bytes,
    "VMOVMSKPD": signs_of_doubles, "VPTEST": test_all,
}  # fmt: skip
