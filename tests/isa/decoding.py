"""What an independent decoder (iced-x86) makes of encoded bytes, compared with the operands that were asked for."""

import re
from collections.abc import Sequence

import iced_x86
from iced_x86 import Decoder, Formatter, FormatterSyntax, Instruction, MemorySizeExt, MemorySizeOptions, OpKind

from asmdnn.isa.memory_operand import Operand, Pointer, mem
from asmdnn.isa.operands import EmbeddedRounding, Register, register

REGISTERS = {name: value for name, value in vars(iced_x86.Register).items() if name[0].isupper()}
MNEMONICS = {value: name for name, value in vars(iced_x86.Mnemonic).items() if name[0].isupper()}
ROUNDING = {"rn-sae": 1, "rd-sae": 2, "ru-sae": 3, "rz-sae": 4}
IMMEDIATE_BITS = {
    OpKind.IMMEDIATE8: 8, OpKind.IMMEDIATE16: 16, OpKind.IMMEDIATE32: 32, OpKind.IMMEDIATE64: 64,
    OpKind.IMMEDIATE8_2ND: 8, OpKind.IMMEDIATE8TO16: 16, OpKind.IMMEDIATE8TO32: 32, OpKind.IMMEDIATE8TO64: 64,
    OpKind.IMMEDIATE32TO64: 64,
}  # fmt: skip
ENCODINGS = {"VEX": iced_x86.EncodingKind.VEX, "EVEX": iced_x86.EncodingKind.EVEX}
CONDITIONS = {
    "NAE": "B", "C": "B", "NB": "AE", "NC": "AE", "Z": "E", "NZ": "NE", "NA": "BE", "NBE": "A",
    "NGE": "L", "NL": "GE", "NG": "LE", "NLE": "G", "PE": "P", "PO": "NP",
}  # fmt: skip


def decode(code: bytes) -> Instruction:
    """The single instruction that `code` must be."""
    return Decoder(64, bytes(code)).decode()


def canonical(mnemonic: str) -> str:
    """One name for each group of synonyms (JZ and JE, SAL and SHL)."""
    match = re.fullmatch(r"(J|CMOV|SET)(\w+)", mnemonic)
    if match:
        return match[1] + CONDITIONS.get(match[2], match[2])
    return {"SAL": "SHL", "RETFQ": "RETF", "MOVABS": "MOV"}.get(mnemonic, mnemonic)


def intel_text(instruction: Instruction) -> str:
    """The decoder's text in the notation of the assembler's listing, without the size of memory operands."""
    formatter = Formatter(FormatterSyntax.NASM)
    formatter.number_base = 10
    formatter.space_after_operand_separator = True
    formatter.rip_relative_addresses = True
    formatter.show_branch_size = False
    formatter.use_pseudo_ops = False
    formatter.memory_size_options = MemorySizeOptions.NEVER
    return str(formatter.format(instruction))


def disagreement(mnemonic: str, operands: Sequence[Operand], code: bytes) -> str | None:
    """What the decoder sees that was not asked for; None when it sees exactly this instruction."""
    instruction = decode(code)
    if instruction.is_invalid or instruction.len != len(code):
        return "invalid" if instruction.is_invalid else "length"
    decoded = MNEMONICS[instruction.mnemonic].upper()
    name = mnemonic.removeprefix("LOCK_").removesuffix("_EVEX").removesuffix("_VEX")
    if decoded == "INT3" and name == "INT":
        return None if operands == [3] else "interrupt number"
    if decoded == "NOP" and name == "XCHG" and operands[0] is operands[1]:
        return "upper half" if operands[0] is register("r32", 0) else None
    if mnemonic.endswith(("_VEX", "_EVEX")) and instruction.encoding != ENCODINGS[mnemonic.rpartition("_")[2]]:
        return "encoding"
    if canonical(decoded) != canonical(name):
        return f"mnemonic {decoded}"
    if instruction.has_lock_prefix != mnemonic.startswith("LOCK_"):
        return "lock prefix"
    explicit = _listed_by_decoder(mnemonic, operands, instruction.op_count)
    if mnemonic == "XCHG" and _operands_disagree(instruction, explicit):
        explicit.reverse()  # exchanging is symmetric
    return _operands_disagree(instruction, explicit) or _modifiers_disagree(instruction, operands)


def _listed_by_decoder(mnemonic: str, operands: Sequence[Operand], count: int) -> list[Operand]:
    explicit = [operand for operand in operands if not isinstance(operand, EmbeddedRounding)]
    if explicit and explicit[-1] is register("xmm", 0) and count < len(explicit):
        return explicit[:-1]  # a fixed operand
    if "MASKMOV" in mnemonic and count > len(explicit):
        return [mem(register("r64", 7), size=8), *explicit]
    return explicit


def _operands_disagree(instruction: Instruction, explicit: Sequence[Operand]) -> str | None:
    if instruction.op_count != len(explicit):
        return "operand count"
    for position, operand in enumerate(explicit):
        if isinstance(operand, Register):
            if instruction.op_register(position) != register_value(operand):
                return f"register {position}"
        elif isinstance(operand, Pointer):
            if instruction.op_kind(position) == OpKind.MEMORY_SEG_RDI:
                continue
            if instruction.op_kind(position) != OpKind.MEMORY:
                return f"operand {position} is not memory"
            if reason := _memory_disagrees(instruction, operand):
                return reason
        elif _has_far_address(instruction):
            if instruction.memory_displacement != operand % (1 << 64):
                return "address"
        elif _immediate_disagrees(instruction, position, operand):
            return "immediate"
    return None


def _has_far_address(instruction: Instruction) -> bool:
    """Whether an address of 64 bits follows the opcode, as in MOVABS."""
    return bool(instruction.memory_displ_size == 8 and instruction.memory_base == 0 and instruction.memory_index == 0)


def _memory_disagrees(instruction: Instruction, pointer: Pointer) -> str | None:
    form = pointer.form
    displacement = instruction.memory_displacement
    displacement -= (displacement >> 63) << 64
    expected = (register_value(form.base), register_value(form.index), form.scale, pointer.displacement)
    found = (instruction.memory_base, instruction.memory_index, instruction.memory_index_scale, displacement)
    if found != expected:
        return f"memory {found} instead of {expected}"
    if instruction.segment_prefix != (REGISTERS[form.segment.upper()] if form.segment else 0):
        return "segment"
    size = MemorySizeExt.size(instruction.memory_size)
    if form.size and size and size != form.size:
        return f"memory of {size} bytes instead of {form.size}"
    return "broadcast" if instruction.is_broadcast != bool(form.broadcast) else None


def _immediate_disagrees(instruction: Instruction, position: int, wanted: int) -> bool:
    kind = instruction.op_kind(position)
    if kind not in IMMEDIATE_BITS:
        return True
    return (instruction.immediate(position) - wanted) % (1 << IMMEDIATE_BITS[kind]) != 0


def _modifiers_disagree(instruction: Instruction, operands: Sequence[Operand]) -> str | None:
    masks = [(op.kcode, bool(op.zcode)) for op in operands if isinstance(op, Register | Pointer) and op.kcode]
    number, zeroing = masks[0] if masks else (0, False)
    if instruction.op_mask != (REGISTERS[f"K{number}"] if number else 0) or instruction.zeroing_masking != zeroing:
        return "mask"
    rounding = next((op.name for op in operands if isinstance(op, EmbeddedRounding)), None)
    if instruction.rounding_control != ROUNDING.get(rounding or "", 0):
        return "rounding"
    if instruction.suppress_all_exceptions != (rounding == "sae") and rounding not in ROUNDING:
        return "sae"
    return None


def register_value(reg: Register | None) -> int:
    """iced-x86's number of a register."""
    if reg is None:
        return 0
    name = str(register(reg.kind, reg.id))
    name = re.sub(r"^(r\d+)b$", r"\1L", name)  # iced calls r8b R8L
    return int(REGISTERS[name.upper()])
