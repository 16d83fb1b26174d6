"""Instructions for the tests, encoded by iced-x86: independent of PeachPy and of the project's assembler."""

from dataclasses import dataclass
from typing import Any

from iced_x86 import BlockEncoder, Code, Instruction, MemoryOperand, Register


@dataclass(frozen=True, slots=True)
class Mem:
    """[base + index * scale + displacement], {1toN} when `broadcast`; registers by name."""

    base: str = ""
    displacement: int = 0
    index: str = ""
    scale: int = 1
    broadcast: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """A jump's target: the instruction with this index in the program."""

    index: int


def _register(name: str) -> Any:
    return getattr(Register, name.upper()) if name else Register.NONE


def ins(code: str, *operands: "str | int | Mem | Label", mask: str = "", zeroing: bool = False,
        rounding: int = 0) -> Instruction:  # fmt: skip
    """An instruction of iced's form `code`, e.g. ins("VEX_VADDPS_YMM_YMM_YMMM256", "ymm1", "ymm2", Mem("rax", 64))."""
    form = getattr(Code, code)
    kinds: list[str] = []
    values: list[Any] = []
    for operand in operands:
        if isinstance(operand, Mem):
            base, index = _register(operand.base), _register(operand.index)
            size = 8 if operand.displacement or not operand.base else 0
            values.append(MemoryOperand(base, index, operand.scale, operand.displacement, size, operand.broadcast))
            kinds.append("mem")
        elif isinstance(operand, str):
            values.append(_register(operand))
            kinds.append("reg")
        elif isinstance(operand, int):
            values.append(operand)
            kinds.append("i64" if "IMM64" in code else "i32")
    if operands and isinstance(operands[0], Label):
        return Instruction.create_branch(form, operands[0].index + 1)
    instruction = getattr(Instruction, "_".join(("create", *kinds)))(form, *values)
    instruction.op_mask = _register(mask)
    instruction.zeroing_masking = zeroing
    instruction.rounding_control = rounding
    return instruction


def assemble(*program: Instruction) -> bytes:
    """The program's bytes, for any address; a RET is the caller's to add."""
    encoder = BlockEncoder(64)
    for index, instruction in enumerate(program):
        instruction.ip = index + 1  # what a Label refers to
        encoder.add(instruction)
    return bytes(encoder.encode(0))


def argument(register: str, index: int) -> Instruction:
    """register = frame[index]."""
    return ins("MOV_R64_RM64", register, Mem("rdi", 8 * index))


VZEROUPPER, RET = "VEX_VZEROUPPER", "RETNQ"
