"""Instructions by class, and what one computes and moves: flops and bytes."""

import re
from collections.abc import Sequence
from typing import Any, Final

from asmdnn.isa.effects import is_copy
from asmdnn.isa.memory_operand import Pointer
from asmdnn.isa.multiply_adds import OPS_OF_LANE, OPS_OF_TILE
from asmdnn.isa.operands import VECTOR_KINDS, Register

CLASSES: Final = (
    "fma", "vector", "broadcast", "load", "store", "move", "shuffle", "mask", "integer", "branch", "prefetch", "other",
)  # fmt: skip

_FMA: Final = re.compile(r"VFN?M(ADD|SUB)\w+|VPDP\w+|VPMADD\w+|VDPBF16PS|TDP\w+")
_SHUFFLE: Final = re.compile(r"V\w*(PERM|SHUF|UNPCK|INSERT|EXTRACT|ALIGN|BLEND|PACK|PINSR|PEXTR|SLLDQ|SRLDQ)\w*")
_ELEMENT_BYTES: Final = {"S": 4, "D": 8, "H": 2}
_ACCESSES_NOTHING: Final = ("LEA", "NOP")
_READS_FIRST: Final = ("CMP", "TEST", "PUSH", "CALL", "JMP")


def class_of(mnemonic: str, operands: Sequence[Any]) -> str:
    """One of CLASSES.  A move is a load or a store where it touches memory; arithmetic on memory stays arithmetic."""
    if mnemonic.startswith("J") or mnemonic in ("CALL", "RET"):
        return "branch"
    if mnemonic.startswith("PREFETCH"):
        return "prefetch"
    if _FMA.fullmatch(mnemonic):
        return "fma"
    if mnemonic.startswith(("VBROADCAST", "VPBROADCAST")):
        return "broadcast"
    if is_copy(mnemonic) or mnemonic.startswith(("VMASKMOV", "VPMASKMOV")):
        return _move(operands)
    if _SHUFFLE.fullmatch(mnemonic):
        return "store" if operands and isinstance(operands[0], Pointer) else "shuffle"
    if mnemonic in ("VZEROUPPER", "NOP", "SFENCE", "TILERELEASE"):
        return "other"
    if mnemonic.startswith("V"):
        return "vector"
    return "mask" if mnemonic.startswith("K") else "integer"


def _move(operands: Sequence[Any]) -> str:
    if isinstance(operands[0], Pointer):
        return "store"
    if any(isinstance(op, Pointer) for op in operands):
        return "load"
    if any(isinstance(op, Register) and op.kind == "k" for op in operands):
        return "mask"
    return "move" if isinstance(operands[0], Register) and operands[0].kind in VECTOR_KINDS else "integer"


def flops_of(mnemonic: str, operands: Sequence[Any]) -> int:
    """Operations of all lanes: two for a multiply-add, one for other arithmetic of floats.

    Masks and the sizes of tiles are not looked at.
    """
    if mnemonic in OPS_OF_TILE:
        return OPS_OF_TILE[mnemonic]
    dst = operands[0] if operands else None
    if not isinstance(dst, Register) or dst.kind not in VECTOR_KINDS:
        return 0
    if mnemonic in OPS_OF_LANE:
        return OPS_OF_LANE[mnemonic] * dst.size_bytes // 4
    found = re.fullmatch(r"(VFN?M(?:ADD|SUB)\d+|V(?:ADD|SUB|MUL|DIV|MIN|MAX|SQRT))([PS])([SDH])", mnemonic)
    if not found:
        return 0
    lanes = dst.size_bytes // _ELEMENT_BYTES[found[3]] if found[2] == "P" else 1
    return lanes * (2 if found[1].startswith("VF") else 1)


def bytes_of(mnemonic: str, operands: Sequence[Any]) -> tuple[int, int]:
    """(loaded, stored); a masked access counts in full, a prefetch and an address not at all."""
    if mnemonic in _ACCESSES_NOTHING or mnemonic.startswith("PREFETCH"):
        return 0, 0
    loaded = stored = 0
    for i, operand in enumerate(operands):
        if isinstance(operand, Pointer):
            size = _accessed(operand, operands)
            if i == 0 and mnemonic not in _READS_FIRST:
                stored += size
                loaded += size if class_of(mnemonic, operands) == "integer" else 0
            else:
                loaded += size
    return loaded, stored


def _accessed(pointer: Pointer, operands: Sequence[Any]) -> int:
    """The operand's own size, or that of the registers beside it."""
    return pointer.size or max((op.size_bytes for op in operands if isinstance(op, Register)), default=8)
