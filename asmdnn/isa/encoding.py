"""Prefix, ModRM and SIB bytes of x86-64 instructions.

These functions have the names and parameters that PeachPy's encoder lambdas call (`peachpy_forms.py` puts them in
the place of PeachPy's own), but work on this package's operands, and scale the 8-bit displacement of a broadcast
operand by its element, where PeachPy scales by the vector and so encodes another address.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2.
"""

from struct import Struct
from typing import Final

from asmdnn.isa.memory_operand import Pointer, heads
from asmdnn.isa.operands import Register

_BYTES: Final = tuple(bytes((value,)) for value in range(256))
_VEX2: Final = tuple(bytes((0xC5, value)) for value in range(256))
_SIB: Final = 4  # in ModRM.rm: a SIB byte follows
_int32: Final = Struct("<i").pack


def optional_rex(r: int, rm: Register | Pointer, force_rex: bool = False) -> bytes:
    """REX prefix with W = 0, left out when it would say nothing."""
    bits = r << 2 | rm.form.rex_xb
    return _BYTES[0x40 | bits] if bits or force_rex else b""


def rex(w: int, r: int, rm: Register | Pointer) -> bytes:
    """REX prefix."""
    return _BYTES[0x40 | w << 3 | r << 2 | rm.form.rex_xb]


def vex2(lpp: int, r: int, rm: Register | Pointer | None, vvvv: int = 0, force_vex3: bool = False) -> bytes:
    """VEX prefix of opcode map 0F with W = 0: two bytes unless X or B is needed."""
    xb = 0 if rm is None else rm.form.rex_xb
    if xb or force_vex3:
        return bytes((0xC4, 0xE1 ^ r << 7 ^ xb << 5, 0x78 ^ vvvv << 3 ^ lpp))
    return _VEX2[0xF8 ^ r << 7 ^ vvvv << 3 ^ lpp]


def vex3(escape: int, mmmmm: int, w____lpp: int, r: int, rm: Register | Pointer, vvvv: int = 0) -> bytes:
    """Three-byte VEX (escape C4) or XOP (8F) prefix."""
    return bytes((escape, 0xE0 ^ r << 7 ^ rm.form.rex_xb << 5 ^ mmmmm, 0x78 ^ vvvv << 3 ^ w____lpp))


def evex(
    mm: int,
    w____1pp: int,
    ll: int,
    rr: int,
    rm: Register | Pointer,
    Vvvvv: int = 0,
    aaa: int = 0,
    z: int = 0,
    b: int = 0,
) -> bytes:
    """EVEX prefix.  `rr` is R'R, `Vvvvv` the second source, `aaa` the write mask, `b` broadcast or rounding."""
    form = rm.form
    xb, v = form.evex_xb, Vvvvv >> 4 | form.evex_v
    p0 = 0xF0 ^ (rr & 1) << 7 ^ xb << 5 ^ rr >> 1 << 4 ^ mm
    return bytes((0x62, p0, 0x78 ^ (Vvvvv & 15) << 3 ^ w____1pp, 0x08 ^ z << 7 ^ ll << 5 ^ b << 4 ^ v << 3 ^ aaa))


def modrm_sib_disp(
    reg: int, rm: Pointer, force_sib: bool = False, min_disp: int = 0, disp8xN: int | None = None
) -> bytes:
    """ModRM, SIB and the shortest displacement.

    reg: 3-bit register or opcode extension.  disp8xN: the unit of an EVEX 8-bit displacement, in bytes.  A pool
    operand gets its offset in the pool as displacement; the layout makes it relative to rip.
    """
    form, disp, _ = rm
    bare, near, far = form.heads if form.sib >= 0 or not force_sib else heads(_SIB, 0x20 | form.rm)
    if form.base is None:  # an index alone, or rip
        return bare[reg] + _int32(disp)
    if disp == 0 and form.base.lcode != 5:  # without displacement, base 5 (rbp, r13) means "no base"
        return bare[reg]
    unit = form.size if form.broadcast else disp8xN or 1
    if disp % unit == 0 and -128 <= (scaled := disp // unit) <= 127:
        return near[reg] + _BYTES[scaled & 0xFF]
    return far[reg] + _int32(disp)


def is_r8rex(operand: object) -> bool:
    """spl, bpl, sil and dil exist only under a REX prefix (without one they are ah, ch, dh, bh)."""
    return isinstance(operand, Register) and operand.kind == "r8" and operand.id >= 4
