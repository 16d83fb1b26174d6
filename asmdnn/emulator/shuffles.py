"""Shuffles.  Those that an immediate fixes are a table of lane numbers; the others compute the table when they run.

A table counts the lanes of operand 1 and then those of operand 2.  No memory operand of a shuffle is masked.
"""

from collections.abc import Callable

import numpy as np

from asmdnn.emulator.memory import Array
from asmdnn.emulator.operands import Operands, Step

Table = Callable[[int, int], Array]  # (lanes, immediate) -> source lane of each lane


def _in_groups(lane: Callable[[int, int, int, int], int], width: int = 4) -> Table:
    """From lane(position in its group of `width` lanes, lanes in all, immediate, first lane of the group)."""

    def table(lanes: int, imm: int) -> Array:
        return np.array([g + lane(i, lanes, imm, g) for g in range(0, lanes, width) for i in range(width)])

    return table


def _pick(imm: int, i: int) -> int:
    return imm >> 2 * i & 3


def _unpack(size: int, high: bool) -> Table:
    """VPUNPCKL*, VPUNPCKH*: elements of `size` bytes of the low, or the high half of each 16 bytes, in turn."""
    width = 16 // size
    start = width // 2 * high
    return _in_groups(lambda i, n, imm, g: start + i // 2 + n * (i % 2), width)


def _perm2f128(lanes: int, imm: int) -> Array:
    """Two 128-bit halves, each one of four; lane number 2 * lanes stands for zero."""
    half = np.arange(lanes // 2)
    return np.concatenate([half + lanes // 2 * (field & 3) if not field & 8 else np.full(lanes // 2, 2 * lanes)
                           for field in (imm & 15, imm >> 4)])  # fmt: skip


def _shuffle_pieces(lanes: int, imm: int, per_piece: int) -> Array:
    """VSHUFF32X4 and relatives: 128-bit pieces, the lower half from operand 1, the upper from operand 2."""
    pieces = lanes // per_piece
    bits = 2 if pieces == 4 else 1
    first = [(imm >> bits * i & (1 << bits) - 1) + (pieces if i >= pieces // 2 else 0) for i in range(pieces)]
    return np.concatenate([np.arange(per_piece) + per_piece * piece for piece in first])


def _blend(lanes: int, imm: int) -> Array:
    return np.array([i + lanes * (imm >> i & 1) for i in range(lanes)])


_U8, _U16, _U32, _U64 = np.uint8, np.uint16, np.uint32, np.uint64
TWO_SOURCES: dict[str, tuple[type, Table]] = {
    "VUNPCKLPS": (_U32, _in_groups(lambda i, n, imm, g: i // 2 + n * (i % 2))),
    "VUNPCKHPS": (_U32, _in_groups(lambda i, n, imm, g: 2 + i // 2 + n * (i % 2))),
    "VUNPCKLPD": (_U64, _in_groups(lambda i, n, imm, g: n * i, 2)),
    "VUNPCKHPD": (_U64, _in_groups(lambda i, n, imm, g: 1 + n * i, 2)),
    "VSHUFPS": (_U32, _in_groups(lambda i, n, imm, g: _pick(imm, i) + n * (i // 2))),
    "VSHUFPD": (_U64, _in_groups(lambda i, n, imm, g: (imm >> g + i & 1) + n * i, 2)),
    **{
        f"VPUNPCK{half}{letters}": (dtype, _unpack(np.dtype(dtype).itemsize, half == "H"))
        for half in "LH"
        for letters, dtype in (("BW", _U8), ("WD", _U16), ("DQ", _U32), ("QDQ", _U64))
    },
    "VMOVLHPS": (_U64, lambda n, imm: np.array([0, 2])),
    "VMOVHLPS": (_U64, lambda n, imm: np.array([3, 1])),
    "VPERM2F128": (_U64, _perm2f128), "VPERM2I128": (_U64, _perm2f128),
    "VSHUFF32X4": (_U32, lambda n, imm: _shuffle_pieces(n, imm, 4)),
    "VSHUFI32X4": (_U32, lambda n, imm: _shuffle_pieces(n, imm, 4)),
    "VSHUFF64X2": (_U64, lambda n, imm: _shuffle_pieces(n, imm, 2)),
    "VSHUFI64X2": (_U64, lambda n, imm: _shuffle_pieces(n, imm, 2)),
    "VBLENDPS": (_U32, _blend), "VPBLENDD": (_U32, _blend),
    "VBLENDPD": (_U64, _blend),
    "VALIGND": (_U32, lambda n, imm: (np.arange(n) + imm % n + n) % (2 * n)),
    "VALIGNQ": (_U64, lambda n, imm: (np.arange(n) + imm % n + n) % (2 * n)),
}  # fmt: skip
ONE_SOURCE: dict[str, tuple[type, Table]] = {
    "VMOVSHDUP": (_U32, _in_groups(lambda i, n, imm, g: i | 1)),
    "VMOVSLDUP": (_U32, _in_groups(lambda i, n, imm, g: i & 2)),
    "VMOVDDUP": (_U64, _in_groups(lambda i, n, imm, g: 0, 2)),
    "VPERMILPS": (_U32, _in_groups(lambda i, n, imm, g: _pick(imm, i))),
    "VPSHUFLW": (_U16, _in_groups(lambda i, n, imm, g: _pick(imm, i) if i < 4 else i, 8)),
    "VPSHUFHW": (_U16, _in_groups(lambda i, n, imm, g: i if i < 4 else 4 + _pick(imm, i - 4), 8)),
    "VPSHUFD": (_U32, _in_groups(lambda i, n, imm, g: _pick(imm, i))),
    "VPERMQ": (_U64, _in_groups(lambda i, n, imm, g: _pick(imm, i))),
    "VPERMPD": (_U64, _in_groups(lambda i, n, imm, g: _pick(imm, i))),
}


def two_sources(ops: Operands) -> Step:
    dtype, table = TWO_SOURCES[ops.name]
    a = ops.vector(1, dtype)
    lanes, b = len(a), ops.source(2, dtype, ops.vector_size, masked=False)
    last = ops.ins.op_count == 4 and not ops.is_register(3)
    index = table(lanes, ops.immediate() if last else 0)
    pool: Array = np.zeros(2 * lanes + 1, dtype)  # the last stays zero

    def fill(out: Array) -> None:
        pool[:lanes] = a
        pool[lanes:-1] = b()
        pool.take(index, out=out, mode="clip")

    return ops.define(dtype, fill)


def one_source(ops: Operands) -> Step:
    """By a fixed table; a vector as the last operand makes it variable (VPERMILPS, VPERMQ, VPERMPD)."""
    if ops.ins.op_count == 3 and (ops.is_register(2) or ops.is_memory(2)):
        return in_lane_variable(ops) if ops.name == "VPERMILPS" else permute(ops)
    dtype, table = ONE_SOURCE[ops.name]
    size = ops.vector_size
    a = ops.source(1, dtype, size, masked=False)
    index = table(size // np.dtype(dtype).itemsize, ops.immediate() if ops.ins.op_count == 3 else 0)

    def fill(out: Array) -> None:
        out[:] = a()[index]

    if ops.name == "VMOVDDUP" and size == 16 and ops.is_memory(1):  # the one whose memory is half a register
        low = ops.source(1, dtype, 8, masked=False)
        return ops.define(dtype, lambda out: out.fill(low().item()))
    return ops.define(dtype, fill)


def in_lane_variable(ops: Operands) -> Step:
    size = ops.vector_size
    a, control = ops.vector(1, np.uint32), ops.source(2, np.uint32, size, masked=False)
    group = np.arange(size // 4) & ~3

    def fill(out: Array) -> None:
        out[:] = a[group + (control() & 3)]

    return ops.define(np.uint32, fill)


def bytes_in_lane(ops: Operands) -> Step:
    """VPSHUFB: each byte of 16 by the low bits of its control, zero where the control's sign bit is set."""
    size = ops.vector_size
    a, control = ops.vector(1, np.uint8), ops.source(2, np.uint8, size, masked=False)
    group = np.arange(size) & ~15

    def fill(out: Array) -> None:
        chosen = control().copy()
        out[:] = np.where(chosen & 0x80, 0, a[group + (chosen & 15)])

    return ops.define(np.uint8, fill)


def permute(ops: Operands) -> Step:
    """VPERMPS, VPERMD, VPERMQ, VPERMPD, VPERMW, VPERMB: operand 1 selects from operand 2."""
    dtype = _dtype_of(ops.name)
    index, table = ops.vector(1, dtype), ops.source(2, dtype, ops.vector_size, masked=False)
    low = dtype(len(index) - 1)

    def fill(out: Array) -> None:
        out[:] = table()[index & low]

    return ops.define(dtype, fill)


def permute_two(ops: Operands) -> Step:
    """VPERMI2*: operand 0 selects from operands 1 and 2; VPERMT2*: operand 1 selects from operands 0 and 2."""
    dtype = _dtype_of(ops.name)
    selector, first = (0, 1) if ops.name.startswith("VPERMI2") else (1, 0)
    index, a = ops.vector(selector, dtype), ops.vector(first, dtype)
    b, low = ops.source(2, dtype, ops.vector_size, masked=False), dtype(2 * len(a) - 1)

    def fill(out: Array) -> None:
        out[:] = np.concatenate((a, b()))[index & low]

    return ops.define(dtype, fill)


def _dtype_of(name: str) -> type:
    ends: dict[str, type] = {"PS": _U32, "PD": _U64, "Q": _U64, "D": _U32, "W": np.uint16, "B": np.uint8}
    return next(dtype for end, dtype in ends.items() if name.endswith(end))


def _piece(name: str) -> tuple[type, int]:
    """The mask lane and bytes of VINSERTF32X4, VEXTRACTI64X2, ...: mask lane x count, or 128 bits without a mask."""
    kind = name[-4:]
    if kind.endswith("128"):
        return _U32, 16
    lane_bits, count = int(kind[:2]), int(kind[3:])
    return (_U32 if lane_bits == 32 else _U64), lane_bits // 8 * count


def insert(ops: Operands) -> Step:
    dtype, piece = _piece(ops.name)
    a, b = ops.vector(1, dtype), ops.source(2, dtype, piece, masked=False)
    count, pieces = piece // np.dtype(dtype).itemsize, ops.vector_size // piece
    first = (ops.immediate() % pieces) * count

    def fill(out: Array) -> None:
        part = b().copy()
        out[:] = a
        out[first : first + count] = part

    return ops.define(dtype, fill)


def shifted_bytes(ops: Operands) -> Step:
    """VPSLLDQ, VPSRLDQ: the bytes of every 16 move up, or down, and zeros come after them."""
    read, distance = ops.source(1, np.uint8, ops.vector_size), min(ops.immediate(), 16)
    into, of = slice(distance, None), slice(0, 16 - distance)
    if ops.name == "VPSRLDQ":
        into, of = of, into

    def fill(out: Array) -> None:
        pieces = read().reshape(-1, 16).copy()
        found = out.reshape(-1, 16)
        found[:] = 0
        found[:, into] = pieces[:, of]

    return ops.define(np.uint8, fill)


def extract(ops: Operands) -> Step:
    dtype, piece = _piece(ops.name)
    whole, count = ops.vector(1, dtype), piece // np.dtype(dtype).itemsize
    first = (ops.immediate() % (ops.vector_size // piece)) * count
    part = whole[first : first + count]

    def fill(out: Array) -> None:
        out[:] = part

    return ops.define(dtype, fill)


_PIECES = ("F128", "I128", "F32X4", "F64X2", "F32X8", "F64X4", "I32X4", "I64X2", "I32X8", "I64X4")
_PERMUTE_TWO = [f"VPERM{x}2{kind}" for x in "IT" for kind in ("PS", "PD", "D", "Q", "W", "B")]
TABLE: dict[str, Callable[[Operands], Step]] = {
    **dict.fromkeys(TWO_SOURCES, two_sources), **dict.fromkeys(ONE_SOURCE, one_source),
    **dict.fromkeys(("VPERMPS", "VPERMD", "VPERMW", "VPERMB"), permute), **dict.fromkeys(_PERMUTE_TWO, permute_two),
    "VPSHUFB": bytes_in_lane, "VPSLLDQ": shifted_bytes, "VPSRLDQ": shifted_bytes,
    **{f"VINSERT{piece}": insert for piece in _PIECES}, **{f"VEXTRACT{piece}": extract for piece in _PIECES},
}  # fmt: skip
