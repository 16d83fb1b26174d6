"""Instructions of SSE: the VEX form of that name, whose first source is the destination, and whose upper bytes stay.

Memory of 16 bytes must be aligned, but for loads and stores that say otherwise.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from iced_x86 import Instruction, OpKind
from iced_x86 import Register as Reg

from asmdnn.emulator.memory import EmulationFault
from asmdnn.emulator.operands import Operands, Step

UNALIGNED: Final = ("MOVUPS", "MOVUPD", "MOVDQU", "LDDQU")
COPIES: Final = {  # these have as many operands as their VEX form
    "MOVUPS", "MOVUPD", "MOVDQU", "MOVAPS", "MOVAPD", "MOVDQA", "MOVD", "MOVQ", "LDDQU", "PSHUFD", "PMOVMSKB",
    "MOVMSKPS", "MOVMSKPD", "PTEST", "PABSB", "PABSW", "PABSD", "SQRTPS", "SQRTPD", "PSHUFLW", "PSHUFHW",
    "CVTDQ2PS", "CVTPS2DQ", "CVTTPS2DQ",
    "PEXTRB", "PEXTRW", "PEXTRD", "PEXTRQ", "MOVSHDUP", "MOVSLDUP", "MOVDDUP", "MOVNTPS", "MOVNTDQ", "MOVNTDQA",
    "AESIMC", "AESKEYGENASSIST",
}  # fmt: skip
TWICE: Final = {  # these read their destination
    *(f"P{name}" for name in (
        "ADDB", "ADDW", "ADDD", "ADDQ", "SUBB", "SUBW", "SUBD", "SUBQ", "ADDSB", "ADDSW", "ADDUSB", "ADDUSW", "SUBSB",
        "SUBSW", "SUBUSB", "SUBUSW", "AND", "ANDN", "OR", "XOR", "SHUFB", "ALIGNR", "BLENDW", "CMPEQB", "CMPEQW",
        "CMPEQD", "CMPEQQ", "CMPGTB", "CMPGTW", "CMPGTD", "CMPGTQ", "MINUB", "MINUW", "MINUD", "MINSB", "MINSW",
        "MINSD", "MAXUB", "MAXUW", "MAXUD", "MAXSB", "MAXSW", "MAXSD", "MULLW", "MULLD", "MULHW", "MULHUW", "MULHRSW",
        "MULUDQ", "MULDQ", "MADDWD", "MADDUBSW", "SADBW", "AVGB", "AVGW", "CLMULQDQ", "UNPCKLBW", "UNPCKLWD",
        "UNPCKLDQ", "UNPCKLQDQ", "UNPCKHBW", "UNPCKHWD", "UNPCKHDQ", "UNPCKHQDQ", "ACKSSWB", "ACKSSDW",
        "ACKUSWB", "ACKUSDW", "SIGNB", "SIGNW", "SIGND", "HADDD", "SLLW", "SLLD", "SLLQ", "SRLW", "SRLD",
        "SRLQ", "SRAW", "SRAD", "SLLDQ", "SRLDQ", "INSRB", "INSRW", "INSRD", "INSRQ")),
    *(f"{name}{kind}" for name in ("ADD", "SUB", "MUL", "DIV", "MIN", "MAX") for kind in ("PS", "PD", "SS", "SD")),
    *(f"{name}{kind}" for name in ("AND", "ANDN", "OR", "XOR") for kind in ("PS", "PD")),
    "UNPCKLPS", "UNPCKHPS", "UNPCKLPD", "UNPCKHPD", "SHUFPS", "SHUFPD", "MOVLHPS", "MOVHLPS", "BLENDPS", "BLENDPD",
    "AESENC", "AESENCLAST", "AESDEC", "AESDECLAST", "GF2P8MULB", "GF2P8AFFINEQB", "GF2P8AFFINEINVQB",
}  # fmt: skip
OWN: Final = ("SHA256RNDS2", "SHA256MSG1", "SHA256MSG2")  # without a VEX form


class _AsVex:
    """An instruction whose operand 0 is operand 1, too."""

    def __init__(self, ins: Instruction) -> None:
        self._ins = ins
        self.op_count = ins.op_count + 1

    def op_kind(self, i: int) -> int:
        return int(self._ins.op_kind(max(i - 1, 0)))

    def op_register(self, i: int) -> int:
        return int(self._ins.op_register(max(i - 1, 0)))

    def immediate(self, i: int) -> int:
        return int(self._ins.immediate(max(i - 1, 0)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ins, name)


def legacy_table(semantics: Mapping[str, Callable[[Operands], Step]]) -> dict[str, Callable[[Operands], Step]]:
    """What is added to the semantics of VEX forms, and for the instructions without any in their place."""
    found = {name: _legacy(semantics[f"V{name}"], f"V{name}", name in TWICE) for name in COPIES | TWICE}
    return found | {name: _legacy(semantics[name], name, twice=False) for name in OWN}


def _legacy(build: Callable[[Operands], Step], name: str, twice: bool) -> Callable[[Operands], Step]:
    def built(ops: Operands) -> Step:
        registers = [ops.ins.op_register(i) for i in range(ops.ins.op_count) if ops.is_register(i)]
        if any(Reg.MM0 <= register <= Reg.MM7 for register in registers):
            ops.unsupported("registers of MMX")
        ins: Any = _AsVex(ops.ins) if twice else ops.ins
        step = _keeping_upper(ops, build(Operands(ops.cpu, ins, name, ops.code_size)))
        whole = ops.ins.op_kind(1) == OpKind.MEMORY or ops.ins.op_kind(0) == OpKind.MEMORY
        if not whole or ops.memory_size != 16 or ops.name in UNALIGNED:
            return step
        return _aligned(ops, step)

    return built


def _keeping_upper(ops: Operands, step: Step) -> Step:
    """Bytes 16 and up of the destination stay."""
    cpu = ops.cpu
    if not ops.is_register(0) or not Reg.XMM0 <= ops.ins.op_register(0) <= Reg.XMM31:
        return step
    number = ops.number(0)

    def keeping() -> None:
        upper, width = cpu.vectors[number, 16:].copy(), cpu.width[number]
        step()
        cpu.vectors[number, 16:] = upper
        cpu.width[number] = max(width, 16)

    return keeping


def _aligned(ops: Operands, step: Step) -> Step:
    address = ops.address()

    def checked() -> None:
        if address() % 16:
            raise EmulationFault(f"needs an address aligned to 16 bytes, not {address():#x}")
        step()

    return checked
