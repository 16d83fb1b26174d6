"""Forms of instructions that are not PeachPy's: which operands they take, and what encodes them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from asmdnn.isa.memory_operand import Encode, Operand, Pointer
from asmdnn.isa.operands import VECTOR_KINDS, EmbeddedRounding, Register, register

FIXED: Final = {
    "al": ("r8", 0), "ax": ("r16", 0), "eax": ("r32", 0), "rax": ("r64", 0), "dx": ("r16", 2), "fs": ("seg", 4),
    "gs": ("seg", 5),
}  # fmt: skip
_CS: Final = 1


class Form(NamedTuple):
    """One form of an instruction: the mnemonic, a pattern for each operand, and what encodes them.

    Patterns: "zmm", "zmm{k}{z}" (may be masked), "ymm<16", "ymm>15" (by number), "k+1" (an even mask), "tmm", "m512",
    "m" (of any size), "m32{1to16}", "sib" (memory with a base), "al", "dx", "fs" (that register), "seg" (any segment
    register), "seg-cs" (one that can be written), "imm8", "imm16", "imm64", "{er}", "{sae}", and alternatives of these
    joined by "/".
    """

    mnemonic: str
    patterns: tuple[str, ...]
    encode: Encode

    def matches(self, operands: Sequence[Operand]) -> bool:
        return len(operands) == len(self.patterns) and all(map(matches, self.patterns, operands))


def matches(pattern: str, operand: Operand) -> bool:
    """Whether an operand is one of a pattern's alternatives."""
    if isinstance(operand, EmbeddedRounding):
        return pattern == ("{sae}" if operand.name == "sae" else "{er}")
    if isinstance(operand, int):
        return pattern in ("imm8", "imm16", "imm64")
    if isinstance(operand, Register):
        return any(_matches_register(alternative, operand) for alternative in pattern.split("/"))
    return any(_matches_memory(alternative, operand) for alternative in pattern.split("/"))


def _matches_register(pattern: str, reg: Register) -> bool:
    if pattern in FIXED:
        return reg is register(*FIXED[pattern])
    number_fits = reg.id < 16 if "<16" in pattern else reg.id > 15 if ">15" in pattern else True
    number_fits &= "-cs" not in pattern or reg.id != _CS
    pair_fits = "+1" not in pattern or reg.id % 2 == 0
    mask_fits = (not reg.mask or "{k}" in pattern) and (not reg.zeroing or "{z}" in pattern)
    return pattern.startswith(reg.kind) and number_fits and pair_fits and mask_fits


def _matches_memory(pattern: str, pointer: Pointer) -> bool:
    form = pointer.form
    if (form.mask and "{k}" not in pattern) or (form.index is not None and form.index.kind in VECTOR_KINDS):
        return False
    if form.broadcast:
        return pattern == f"m{form.size * 8}{{1to{form.broadcast}}}"
    if pattern == "sib":
        return form.base is not None
    size = pattern.removesuffix("{k}")
    return size == "m" or (size[0] == "m" and size[1:].isdecimal() and form.size in (0, int(size[1:]) // 8))
