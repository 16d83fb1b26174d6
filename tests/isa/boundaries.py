"""Immediates and displacements at the edges of every field that an instruction may have for them."""

from collections.abc import Iterator

from asmdnn.isa.memory_operand import Operand, Pointer
from tests.isa.forms import DocumentedForm

WIDTHS = (3, 4, 7, 8, 15, 16, 31, 32, 63, 64)  # bits, without and with the sign
OPERATIONS = (16, 32, 64)
NEAR = (-1, 0, 1)
FEW_IMMEDIATES = sorted(
    {-129, -128, -127, -1, 0, 1, 2, 3, 127, 128, 129, 200, 254, 255, 256}
    | {sign * 2**bits + near for bits in (15, 16, 31, 32) for sign in (1, -1) for near in (-1, 0)}
)
IMMEDIATES = sorted(
    {*FEW_IMMEDIATES}
    | {sign * 2**bits + near for bits in WIDTHS for sign in (1, -1) for near in NEAR}
    | {2**wide - 2**bits + near for wide in OPERATIONS for bits in WIDTHS if bits < wide for near in NEAR}
)  # the last: a negative number of fewer bits, written as an unsigned one of the operation
UNITS = (1, 2, 4, 8, 16, 32, 64)  # of an 8-bit displacement under EVEX


def with_immediate(form: DocumentedForm, operands: list[Operand], value: int) -> Iterator[tuple[int, list[Operand]]]:
    """The operands with `value` in the place of each immediate, and the bits that the form documents for it."""
    for position, operand_type in enumerate(form.operand_types):
        if operand_type.startswith("imm"):
            yield int(operand_type[3:]), [*operands[:position], value, *operands[position + 1 :]]


def displacements(pointer: Pointer, units: tuple[int, ...]) -> list[int]:
    """The last that fit 8 bits in one of the units, the first that do not, and the last of 32 bits."""
    edges = {count * unit for count in (-129, -128, 127, 128) for unit in units}
    near = {edge + step for edge in edges for step in NEAR} if len(units) > 1 else edges
    return sorted({*near, 0, 1, 2**31 - 1, -(2**31)})


def with_displacement(operands: list[Operand], units: tuple[int, ...]) -> Iterator[list[Operand]]:
    """The operands with displacements at the edges; nothing without memory."""
    for position, pointer in enumerate(operands):
        if isinstance(pointer, Pointer):
            for displacement in displacements(pointer, units):
                yield [*operands[:position], pointer.at(displacement), *operands[position + 1 :]]
