"""Instructions that PeachPy 0.2.0 lacks or encodes wrongly, by mnemonic.

Three files list them as the manuals do; they take precedence over PeachPy's.
"""

from collections.abc import Callable, Sequence
from functools import cache

from asmdnn.isa import half_instructions, plain_instructions, vector_instructions
from asmdnn.isa.forms import Form, matches
from asmdnn.isa.memory_operand import Operand
from asmdnn.isa.notation import ManualLine, forms_of, rows_of
from asmdnn.isa.operands import register

Branch = Callable[[int], bytes] | None


@cache
def extension_forms(mnemonic: str) -> tuple[Form, ...]:
    """The forms for a mnemonic, in the order in which they are tried."""
    return tuple(form for row in _rows().get(mnemonic, ()) for form in forms_of(mnemonic, row))


def extension_names() -> tuple[str, ...]:
    """All mnemonics."""
    return (*_rows(), *plain_instructions.SHORT_BRANCHES, *plain_instructions.NEAR_BRANCHES)


def extension_branch(mnemonic: str) -> tuple[Branch, Branch] | None:
    """(short, near) encoders of a jump to a label, each taking the displacement; None when it is none of these."""
    short, near = plain_instructions.SHORT_BRANCHES.get(mnemonic), plain_instructions.NEAR_BRANCHES.get(mnemonic)
    if short:
        return lambda displacement: short + (displacement & 0xFF).to_bytes(1, "little"), None
    return (None, lambda displacement: near + displacement.to_bytes(4, "little", signed=True)) if near else None


def is_miscoded(mnemonic: str, operands: Sequence[Operand]) -> bool:
    """Whether PeachPy accepts these operands and encodes something else."""
    if mnemonic == "XCHG":  # 90 is a NOP, while exchanging eax with itself clears the upper half of rax
        return all(operand is register("r32", 0) for operand in operands)
    return mnemonic == "VSQRTPD" and matches("m32{1to4}/m32{1to8}", operands[-1])


@cache
def _rows() -> dict[str, tuple[ManualLine, ...]]:
    return rows_of(vector_instructions.LINES + half_instructions.LINES + plain_instructions.LINES)
