"""Instructions that PeachPy 0.2.0 lacks or encodes wrongly, as tables of (operand patterns, encoder).

Added: AVX512_VNNI and AVX_VNNI, AVX512_BF16, AMX, ENDBR64.  Corrected: VMOVNTPS of xmm/ymm16-31, VSQRTPD of a broadcast
to xmm/ymm.  Encodings are those of the Intel manual, volume 2, and of the instruction set extensions reference.

VPDPBUSD and its family exist twice: plain names are the EVEX form, for every register; names ending in _VEX are the
AVX_VNNI form of xmm/ymm0-15.  The two need different CPUs, so the choice is the caller's, not that of the registers.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from asmdnn.isa.encoding import evex, modrm_sib_disp, vex3
from asmdnn.isa.memory_operand import Encode, Operand, Pointer
from asmdnn.isa.operands import VECTOR_KINDS, Register, register

_NP, _66, _F3, _F2 = 0, 1, 2, 3  # the pp field of VEX and EVEX
_MAP_0F, _MAP_0F38 = 1, 2
_W1: Final = 0x80


class Form(NamedTuple):
    """One form of an instruction: the mnemonic, a pattern for each operand, and what encodes them.

    Patterns: "zmm", "zmm{k}{z}" (may be masked), "ymm<16", "ymm>15" (by number), "tmm", "m512",
    "m32{1to16}", "sib" (memory with a base), and alternatives of these joined by "/".
    """

    mnemonic: str
    patterns: tuple[str, ...]
    encode: Encode

    def matches(self, operands: Sequence[Operand]) -> bool:
        return len(operands) == len(self.patterns) and all(map(_matches, self.patterns, operands))


def extension_forms(mnemonic: str) -> tuple[Form, ...]:
    """The forms of this file for a mnemonic; they take precedence over PeachPy's."""
    return _table().get(mnemonic, ())


def extension_names() -> tuple[str, ...]:
    """The mnemonics of this file."""
    return tuple(_table())


def is_miscoded(mnemonic: str, operands: Sequence[Operand]) -> bool:
    """Whether PeachPy accepts these operands and encodes something else."""
    if mnemonic == "XCHG":  # 90 is a NOP, while exchanging eax with itself clears the upper half of rax
        return all(operand is register("r32", 0) for operand in operands)
    return mnemonic == "VSQRTPD" and _matches("m32{1to4}/m32{1to8}", operands[-1])


def _matches(pattern: str, operand: Operand) -> bool:
    match = {Register: _matches_register, Pointer: _matches_memory}.get(type(operand))
    return match is not None and any(match(alternative, operand) for alternative in pattern.split("/"))


def _matches_register(pattern: str, reg: Any) -> bool:
    number_fits = reg.id < 16 if "<16" in pattern else reg.id > 15 if ">15" in pattern else True
    mask_fits = not reg.mask or "{k}" in pattern
    return pattern.startswith(reg.kind) and number_fits and mask_fits


def _matches_memory(pattern: str, pointer: Any) -> bool:
    form = pointer.form
    if form.mask or (form.index is not None and form.index.kind in VECTOR_KINDS):
        return False
    if form.broadcast:
        return pattern == f"m{form.size * 8}{{1to{form.broadcast}}}"
    if pattern == "sib":
        return form.base is not None
    return pattern[0] == "m" and "{" not in pattern and form.size in (0, int(pattern[1:]) // 8)


@cache
def _table() -> dict[str, tuple[Form, ...]]:
    table: dict[str, tuple[Form, ...]] = {}
    for form in (*_dot_products(), *_conversions(), *_tiles(), *_corrections(), *_control()):
        table[form.mnemonic] = (*table.get(form.mnemonic, ()), form)
    return table


def _dot_products() -> Iterator[Form]:
    for ll, kind in enumerate(VECTOR_KINDS):
        source, size = _source(ll)
        evex_patterns = (f"{kind}{{k}}{{z}}", kind, source)
        for mnemonic, opcode in ("VPDPBUSD", 0x50), ("VPDPBUSDS", 0x51), ("VPDPWSSD", 0x52), ("VPDPWSSDS", 0x53):
            yield Form(mnemonic, evex_patterns, _evex_encoder(_MAP_0F38, _66, ll, opcode))
            if kind != "zmm":
                vex_patterns = (f"{kind}<16", f"{kind}<16", f"{kind}<16/m{size}")
                yield Form(f"{mnemonic}_VEX", vex_patterns, _vex_encoder(_66 | ll << 2, opcode))
        yield Form("VDPBF16PS", evex_patterns, _evex_encoder(_MAP_0F38, _F3, ll, 0x52))


def _conversions() -> Iterator[Form]:
    for ll, kind in enumerate(VECTOR_KINDS):
        source, _ = _source(ll)
        patterns = (f"{kind}{{k}}{{z}}", kind, source)
        yield Form("VCVTNE2PS2BF16", patterns, _evex_encoder(_MAP_0F38, _F2, ll, 0x72))
        half = "ymm" if kind == "zmm" else "xmm"
        yield Form("VCVTNEPS2BF16", (f"{half}{{k}}{{z}}", source), _evex_encoder(_MAP_0F38, _F3, ll, 0x72))


def _tiles() -> Iterator[Form]:
    yield Form("LDTILECFG", ("m512",), lambda op: _vex_memory(_NP, 0x49, 0, op[0]))
    yield Form("STTILECFG", ("m512",), lambda op: _vex_memory(_66, 0x49, 0, op[0]))
    yield Form("TILELOADD", ("tmm", "sib"), lambda op: _vex_memory(_F2, 0x4B, op[0].lcode, op[1], force_sib=True))
    yield Form("TILELOADDT1", ("tmm", "sib"), lambda op: _vex_memory(_66, 0x4B, op[0].lcode, op[1], force_sib=True))
    yield Form("TILESTORED", ("sib", "tmm"), lambda op: _vex_memory(_F3, 0x4B, op[1].lcode, op[0], force_sib=True))
    yield Form("TILEZERO", ("tmm",), lambda op: bytes((0xC4, 0xE2, 0x7B, 0x49, 0xC0 | op[0].lcode << 3)))
    yield Form("TILERELEASE", (), lambda op: b"\xc4\xe2\x78\x49\xc0")
    products = {
        "TDPBF16PS": (_F3, 0x5C), "TDPFP16PS": (_F2, 0x5C),
        "TDPBSSD": (_F2, 0x5E), "TDPBSUD": (_F3, 0x5E), "TDPBUSD": (_66, 0x5E), "TDPBUUD": (_NP, 0x5E),
    }  # fmt: skip
    for mnemonic, (pp, opcode) in products.items():
        # unlike in vector instructions, ModRM.rm is the second operand and vvvv the third
        yield Form(mnemonic, ("tmm", "tmm", "tmm"), _reordered(_vex_encoder(pp, opcode), 0, 2, 1))


def _corrections() -> Iterator[Form]:
    for ll, kind in enumerate(("xmm", "ymm")):
        store = _evex_encoder(_MAP_0F, _NP, ll, 0x2B)
        yield Form("VMOVNTPS", (f"m{128 << ll}", f"{kind}>15"), _reordered(store, 1, 0))
        patterns = (f"{kind}{{k}}{{z}}", f"m64{{1to{2 << ll}}}")
        yield Form("VSQRTPD", patterns, _evex_encoder(_MAP_0F, _66 | _W1, ll, 0x51))


def _control() -> Iterator[Form]:
    yield Form("ENDBR64", (), lambda op: b"\xf3\x0f\x1e\xfa")


def _source(ll: int) -> tuple[str, int]:
    """Patterns of a last operand of f32 or int32 elements, and its bits."""
    bits = 128 << ll
    return f"{VECTOR_KINDS[ll]}/m{bits}/m32{{1to{bits // 32}}}", bits


def _reordered(encode: Encode, *order: int) -> Encode:
    return lambda op: encode([op[position] for position in order])


def _evex_encoder(opcode_map: int, w_pp: int, ll: int, opcode: int) -> Encode:
    """Operands (reg, [vvvv,] rm); mask and zeroing are those of reg."""

    def encode(op: Sequence[Any]) -> bytes:
        reg, rm = op[0], op[-1]
        vvvv = op[1].code if len(op) == 3 else 0
        broadcast = rm.bcode if isinstance(rm, Pointer) else 0
        prefix = evex(
            mm=opcode_map,
            w____1pp=4 | w_pp,
            ll=ll,
            rr=reg.ehcode,
            rm=rm,
            Vvvvv=vvvv,
            aaa=reg.kcode,
            z=reg.zcode,
            b=broadcast,
        )
        return prefix + bytes((opcode,)) + _modrm(reg.lcode, rm, 16 << ll)

    return encode


def _vex_encoder(l_pp: int, opcode: int) -> Encode:
    """Operands (reg, vvvv, rm), map 0F38."""

    def encode(op: Sequence[Any]) -> bytes:
        reg, vvvv, rm = op
        prefix = vex3(0xC4, _MAP_0F38, l_pp, reg.hcode, rm, vvvv.hlcode)
        return prefix + bytes((opcode,)) + _modrm(reg.lcode, rm, 1)

    return encode


def _vex_memory(pp: int, opcode: int, reg: int, rm: Pointer, *, force_sib: bool = False) -> bytes:
    return vex3(0xC4, _MAP_0F38, pp, 0, rm) + bytes((opcode,)) + modrm_sib_disp(reg, rm, force_sib)


def _modrm(reg: int, rm: Register | Pointer, unit_bytes: int) -> bytes:
    if isinstance(rm, Pointer):
        return modrm_sib_disp(reg, rm, disp8xN=unit_bytes)
    return bytes((0xC0 | reg << 3 | rm.lcode,))
