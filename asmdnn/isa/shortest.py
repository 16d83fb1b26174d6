"""Of several encoders of the same operands, the one whose result is the shortest."""

from collections.abc import Sequence
from typing import Any, Final

from asmdnn.isa.memory_operand import Encode, Operand, Pointer

VEX: Final = (0xC4, 0xC5)  # the first byte of instructions that have it


def shortest(encoders: Sequence[Encode], operands: Sequence[Operand]) -> Encode:
    """The shortest result of all.

    Operands of equal signature give encoders without VEX lengths that differ by a constant, whatever the registers.
    VEX has two or three bytes, EVEX four: it can win only where its unit makes a displacement short.
    """
    with_vex = [encode for encode in encoders if encode(operands)[0] in VEX]
    if not with_vex:
        return min(encoders, key=lambda encode: len(encode(operands)))
    vex = with_vex[0] if len(with_vex) == 1 else _least(with_vex)
    position = next((i for i, operand in enumerate(operands) if isinstance(operand, Pointer)), -1)
    if position < 0:
        return vex
    everything = _least(encoders)

    def least(operands: Sequence[Any]) -> bytes:
        return vex(operands) if -128 <= operands[position].displacement <= 127 else everything(operands)

    return least


def _least(encoders: Sequence[Encode]) -> Encode:
    return lambda operands: min([encode(operands) for encode in encoders], key=len)
