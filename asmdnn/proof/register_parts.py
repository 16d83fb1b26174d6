"""The parts of registers that an instruction reads and writes, as bits of an integer; decoder.py asks.

A general-purpose register has its low byte, the byte above it, and the rest; a vector register its low 128 bits and
what is above them, which an instruction without VEX leaves as it was.  Mask and tile registers and flags are whole.
"""

import re
from functools import cache
from typing import Any, Final, NamedTuple

_GP_PARTS, _VECTOR_PARTS = 3, 2
_VECTORS: Final = _GP_PARTS * 16
_MASKS: Final = _VECTORS + _VECTOR_PARTS * 32
_TILES: Final = _MASKS + 8
_FLAGS: Final = _TILES + 8
_GP_NAMES: Final = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)))
# By iced-x86's bits, of which the higher ones are no results of arithmetic.
_FLAG_NAMES: Final = ("the overflow flag", "the sign flag", "the zero flag", "the auxiliary flag", "the carry flag",
                      "the parity flag")  # fmt: skip
ALL_FLAGS: Final = (1 << len(_FLAG_NAMES)) - 1 << _FLAGS
ALL_TILES: Final = 0xFF << _TILES
ALL_MASKS: Final = 0xFF << _MASKS
ALL_VECTORS: Final = (1 << _VECTOR_PARTS * 32) - 1 << _VECTORS
_UPPER_HALVES: Final = sum(2 << _VECTORS + _VECTOR_PARTS * n for n in range(16))  # of the registers that AVX has

# What these keep of the first operand is beside the one element that they make.
_OF_ONE_ELEMENT: Final = re.compile(r"v?(cvt\w+2|sqrt|r(cp|sqrt)(14|28)?|round|rndscale|getexp)s[dhs]")


class RegisterUse(NamedTuple):
    """reads: what must have been written.  writes: what is, whatever the data.  loses: what is undefined afterwards."""

    reads: int
    writes: int
    loses: int


def gp(number: int, size_bytes: int = 8) -> int:
    return (1 if size_bytes == 1 else 3 if size_bytes == 2 else 7) << _GP_PARTS * number


def vector(number: int, size_bytes: int = 16) -> int:
    return (1 if size_bytes <= 16 else 3) << _VECTORS + _VECTOR_PARTS * number


def name_of(parts: int) -> str:
    """The first register of which there is a part, and how much of it if that is not all."""
    first = (parts & -parts).bit_length() - 1
    if first >= _FLAGS:
        return _FLAG_NAMES[first - _FLAGS]
    if first >= _MASKS:
        return f"tmm{first - _TILES}" if first >= _TILES else f"k{first - _MASKS}"
    if first >= _VECTORS:
        number, part = divmod(first - _VECTORS, _VECTOR_PARTS)
        return f"the upper part of ymm{number}" if part else f"vector register {number}"
    number, part = divmod(first, _GP_PARTS)
    return ("", "the second byte of ", "the upper part of ")[part] + _GP_NAMES[number]


def use_of(iced: Any, ins: Any, info: Any, mnemonic: str) -> RegisterUse:
    """By iced-x86's own tables, but for what these say of a whole class of instructions."""
    access = iced.OpAccess
    reading = (access.READ, access.COND_READ, access.READ_WRITE, access.READ_COND_WRITE)
    writing = (access.WRITE, access.READ_WRITE)  # what may also stay is not written
    reads = writes = 0
    if mnemonic == "vzeroupper":
        return RegisterUse(0, _UPPER_HALVES, 0)
    for used in info.used_registers():
        parts = _parts(iced, used.register)
        reads |= parts if used.access in reading else 0
        writes |= parts if used.access in writing else 0
    reads &= ~_not_looked_at(iced, ins, mnemonic)
    reads |= (ins.rflags_read & 0x3F) << _FLAGS
    loses = (ins.rflags_undefined & 0x3F) << _FLAGS
    if not _counted_by_register(iced, ins, mnemonic):
        writes |= ((ins.rflags_written | ins.rflags_cleared | ins.rflags_set) & 0x3F) << _FLAGS
    if mnemonic in ("ldtilecfg", "tilerelease"):  # zeros, which code that wants them asks for by TILEZERO
        return RegisterUse(reads, writes & ~ALL_TILES, loses | ALL_TILES)
    return RegisterUse(reads, writes, loses)


@cache
def _parts(iced: Any, register: int) -> int:
    """Of one of iced-x86's registers."""
    ext = iced.RegisterExt
    size = ext.size(register)
    if ext.is_gpr(register):
        whole = ext.number(ext.full_register(register))
        high = size == 1 and register in (iced.Register.AH, iced.Register.BH, iced.Register.CH, iced.Register.DH)
        return 2 << _GP_PARTS * whole if high else gp(whole, size)
    if ext.is_vector_register(register):
        return vector(ext.number(register), size)
    if ext.is_k(register):
        return 1 << _MASKS + int(ext.number(register))
    return 1 << _TILES + int(ext.number(register)) if ext.is_tmm(register) else 0


def _not_looked_at(iced: Any, ins: Any, mnemonic: str) -> int:
    """Operands on which the result does not depend: both of a comparison of a register with itself, say."""
    operands = [ins.op_register(i) if ins.op_kind(i) == iced.OpKind.REGISTER else None for i in range(ins.op_count)]
    if mnemonic == "cpuid":
        return gp(1)  # only some leaves have a further number
    if mnemonic.startswith("vpternlog") and ins.op_mask == iced.Register.NONE:
        return _outside_the_table(iced, operands, ins.immediate8)
    if mnemonic.startswith(("vblendm", "vpblendm")) and ins.zeroing_masking:
        return _parts(iced, operands[1]) if operands[1] != operands[-1] else 0  # zero in its place
    if _OF_ONE_ELEMENT.fullmatch(mnemonic) and ins.op_mask == iced.Register.NONE:
        kept_from = 1 if mnemonic.startswith("v") else 0
        merges = operands[kept_from] == operands[0] and operands[0] not in operands[kept_from + 1 :]
        return _parts(iced, operands[0]) if merges and operands[0] is not None else 0
    if mnemonic == "sbb" and operands[0] == operands[1]:
        return 0 if operands[0] is None else _parts(iced, operands[0])
    alike = len(operands) >= 2 and operands[-1] is not None and operands[-1] == operands[-2]
    masked = ins.op_mask != iced.Register.NONE and not ins.zeroing_masking
    if alike and not masked and mnemonic.startswith(("vpcmpeq", "pcmpeq", "vpcmpgt", "pcmpgt", "kxor", "kxnor")):
        return _parts(iced, operands[-1])
    return 0


def _outside_the_table(iced: Any, operands: "list[int | None]", table: int) -> int:
    """VPTERNLOG: bit 4a + 2b + c of the table is the result for the bits a, b, c of the operands."""
    found = 0
    places = [4, 2, 1]
    for register in {*operands} - {None}:
        together = sum(place for place, other in zip(places, operands, strict=False) if other == register)
        others = 7 & ~together
        if all(
            (table >> rest & 1) == (table >> (rest | together) & 1) for rest in range(8) if rest & others == rest
        ):
            found |= _parts(iced, register)
    return found


def _counted_by_register(iced: Any, ins: Any, mnemonic: str) -> bool:
    """A shift by CL, which leaves the flags as they are when the count is 0."""
    is_shift = mnemonic in ("shl", "sal", "shr", "sar", "rol", "ror", "rcl", "rcr", "shld", "shrd")
    last = ins.op_count - 1
    return is_shift and ins.op_kind(last) == iced.OpKind.REGISTER and ins.op_register(last) == iced.Register.CL
