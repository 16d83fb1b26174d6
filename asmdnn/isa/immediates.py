"""Whether an encoder says what was asked: the immediate that the processor will read, compared with the operand.

PeachPy tests whether an immediate fits a field, but not always with the processor's eyes: IMUL r64, r64, 200 passes as
"8 bits", which the processor extends to -56.  So every encoder is asked, when it is chosen, for its bytes at both ends
of the range of immediates that it is chosen for, and the field is read back as the manual says (volume 2, chapter 2:
an immediate narrower than the operation is sign-extended).  A field is a slice of the number's bits, so what holds at
both ends holds between them, and nothing has to be compared for each instruction.
"""

from collections.abc import Sequence
from typing import Any, Final

from asmdnn.isa.memory_operand import Encode, Pointer
from asmdnn.isa.operands import Register

# Integer instructions: the immediate is a number of the operation's size.  Those of all others are bits of their own.
_OPERATION_SIZED: Final = frozenset((
    "ADC", "ADD", "AND", "CMP", "IMUL", "MOV", "OR", "PUSH", "SBB", "SUB", "TEST", "XOR",
))  # fmt: skip
_PUSHED_BYTES: Final = 8


def says(name: str, encode: Encode, operands: Sequence[Any], position: int, values: range) -> bool:
    """Whether `encode` makes every immediate of `values` at `position` what the processor reads.

    name: the mnemonic without LOCK.  values: a contiguous range, for all of which PeachPy chose this encoder.
    """
    mask = _bits_at(encode, operands, position, 0) ^ _bits_at(encode, operands, position, -1)
    if not mask:  # part of the opcode, as in a shift by 1
        return values[0] == values[-1]
    first, width = (mask & -mask).bit_length() - 1, mask.bit_count()
    meant = max(width, 8 * _operation_bytes(name, operands))

    def is_read(value: int) -> bool:
        field = (_bits_at(encode, operands, position, value) & mask) >> first
        extended = field - (field >> width - 1 << width)
        return -1 << meant - 1 <= value < 1 << meant and (extended - value) % (1 << meant) == 0

    return is_read(values[0]) and is_read(values[-1])


def _operation_bytes(name: str, operands: Sequence[Any]) -> int:
    """The size of the number that the immediate stands for; 0 where it is only bits."""
    if name not in _OPERATION_SIZED:
        return 0
    target = operands[0]
    if isinstance(target, Register):
        return target.size_bytes
    return target.size if isinstance(target, Pointer) else _PUSHED_BYTES


def _bits_at(encode: Encode, operands: Sequence[Any], position: int, value: int) -> int:
    """The instruction as a number, with another immediate."""
    return int.from_bytes(encode([*operands[:position], value, *operands[position + 1 :]]), "little")
