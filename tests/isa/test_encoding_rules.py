"""One test for every rule by which an instruction's bytes are chosen.

The bytes are written out, and an independent decoder must read them as the instruction in the first column.
"""

import pytest

from asmdnn.isa.assembler import mem, register, rsp, rz_sae, sae
from asmdnn.isa.encoder import encoder_of
from asmdnn.isa.memory_operand import Operand
from tests.isa.decoding import decode, intel_text

RAX, RCX, RBP, R12, R13 = (register("r64", n) for n in (0, 1, 5, 12, 13))
ECX, CL, SIL = register("r32", 1), register("r8", 1), register("r8", 6)
XMM = [register("xmm", n) for n in range(32)]
YMM = [register("ymm", n) for n in range(32)]
ZMM = [register("zmm", n) for n in range(32)]
K = [register("k", n) for n in range(8)]

RULES: dict[str, tuple[str, str, tuple[Operand, ...], str]] = {
    "two-byte VEX": ("vaddps ymm9, ymm10, ymm2", "VADDPS", (YMM[9], YMM[10], YMM[2]), "c52c58ca"),
    "three-byte VEX for a high r/m": ("vaddps ymm0, ymm1, ymm10", "VADDPS", (YMM[0], YMM[1], YMM[10]), "c4c17458c2"),
    "store form when it is shorter": ("vmovaps ymm0, ymm8", "VMOVAPS", (YMM[0], YMM[8]), "c57c29c0"),
    "no displacement": ("mov rax, [rcx]", "MOV", (RAX, mem(RCX)), "488b01"),
    "disp8, highest": ("mov rax, [rcx+127]", "MOV", (RAX, mem(RCX, 127)), "488b417f"),
    "disp32, first above": ("mov rax, [rcx+128]", "MOV", (RAX, mem(RCX, 128)), "488b8180000000"),
    "disp8, lowest": ("mov rax, [rcx-128]", "MOV", (RAX, mem(RCX, -128)), "488b4180"),
    "disp32, first below": ("mov rax, [rcx-129]", "MOV", (RAX, mem(RCX, -129)), "488b817fffffff"),
    "rbp needs a displacement": ("mov rax, [rbp]", "MOV", (RAX, mem(RBP)), "488b4500"),
    "r13 needs a displacement": ("mov rax, [r13]", "MOV", (RAX, mem(R13)), "498b4500"),
    "rsp needs a SIB byte": ("mov rax, [rsp]", "MOV", (RAX, mem(rsp)), "488b0424"),
    "r12 needs a SIB byte": ("mov rax, [r12]", "MOV", (RAX, mem(R12)), "498b0424"),
    "r13 base with index": ("mov rax, [r13+r12*8]", "MOV", (RAX, mem(R13, index=R12, scale=8)), "4b8b44e500"),
    "index without base": ("mov rax, [rcx*4]", "MOV", (RAX, mem(None, index=RCX, scale=4)), "488b048d00000000"),
    "disp8 in vectors": ("vaddps zmm0, zmm1, [rax+8128]", "VADDPS", (ZMM[0], ZMM[1], mem(RAX, 8128)), "62f1744858407f"),
    "disp32 beyond them": (
        "vaddps zmm0, zmm1, [rax+8192]", "VADDPS", (ZMM[0], ZMM[1], mem(RAX, 8192)), "62f17448588000200000"),
    "disp32 between them": (
        "vaddps zmm0, zmm1, [rax+65]", "VADDPS", (ZMM[0], ZMM[1], mem(RAX, 65)), "62f17448588041000000"),
    "disp8 in broadcast elements": (
        "vaddps zmm0, zmm1, [rax+64]{1to16}", "VADDPS",
        (ZMM[0], ZMM[1], mem(RAX, 64).broadcast_to(16)), "62f17458584010"),
    "disp8 in scalars": ("vaddss xmm16, xmm1, [rax+508]", "VADDSS", (XMM[16], XMM[1], mem(RAX, 508)), "62e1760858407f"),
    "R'": ("vaddps zmm16, zmm1, zmm2", "VADDPS", (ZMM[16], ZMM[1], ZMM[2]), "62e1744858c2"),
    "V'": ("vaddps zmm1, zmm16, zmm2", "VADDPS", (ZMM[1], ZMM[16], ZMM[2]), "62f17c4058ca"),
    "X as bit 4 of r/m": ("vaddps zmm1, zmm2, zmm16", "VADDPS", (ZMM[1], ZMM[2], ZMM[16]), "62b16c4858c8"),
    "B as bit 3 of r/m": ("vaddps zmm1, zmm2, zmm8", "VADDPS", (ZMM[1], ZMM[2], ZMM[8]), "62d16c4858c8"),
    "EVEX for ymm16": ("vaddps ymm16, ymm1, ymm2", "VADDPS", (YMM[16], YMM[1], YMM[2]), "62e1742858c2"),
    "V' as bit 4 of an index": (
        "vgatherdps zmm1{k1}, [rax+zmm31*4+4]", "VGATHERDPS",
        (ZMM[1].masked(K[1]), mem(RAX, 4, index=ZMM[31], scale=4)), "62b27d41924cb801"),
    "gather masked by a vector": (
        "vgatherdps ymm1, [rax+ymm10*4+4], ymm3", "VGATHERDPS",
        (YMM[1], mem(RAX, 4, index=YMM[10], scale=4), YMM[3]), "c4a265924c9004"),
    "k destination is not its own mask": (
        "vcmpps k3, zmm1, zmm2, 1", "VCMPPS", (K[3], ZMM[1], ZMM[2], 1), "62f17448c2da01"),
    "masked k destination": (
        "vcmpps k3{k2}, zmm1, zmm2, 1", "VCMPPS", (K[3].masked(K[2]), ZMM[1], ZMM[2], 1), "62f1744ac2da01"),
    "merging": ("vaddps zmm1{k7}, zmm2, zmm3", "VADDPS", (ZMM[1].masked(K[7]), ZMM[2], ZMM[3]), "62f16c4f58cb"),
    "zeroing": ("vaddps zmm1{k7}{z}, zmm2, zmm3", "VADDPS", (ZMM[1].zeroed(K[7]), ZMM[2], ZMM[3]), "62f16ccf58cb"),
    "masked store": ("vmovups [rax+64]{k1}, zmm2", "VMOVUPS", (mem(RAX, 64).masked(K[1]), ZMM[2]), "62f17c49115001"),
    "rounding": (
        "vaddps zmm1, zmm2, zmm3, {rz-sae}", "VADDPS", (ZMM[1], ZMM[2], ZMM[3], rz_sae), "62f16c7858cb"),
    "no exceptions": ("vmaxps zmm1, zmm2, zmm3, {sae}", "VMAXPS", (ZMM[1], ZMM[2], ZMM[3], sae), "62f16c185fcb"),
    "REX selects sil": ("mov sil, cl", "MOV", (SIL, CL), "4088ce"),
    "sign-extended imm8": ("add rax, 1", "ADD", (RAX, 1), "4883c001"),
    "short form of the accumulator": ("add rax, 128", "ADD", (RAX, 128), "480580000000"),
    "imm32": ("add rcx, 128", "ADD", (RCX, 128), "4881c180000000"),
    "sign-extended imm32": ("mov rcx, 2147483647", "MOV", (RCX, 2**31 - 1), "48c7c1ffffff7f"),
    "imm64": ("mov rcx, 2147483648", "MOV", (RCX, 2**31), "48b90000008000000000"),
    "imm32 of a 32-bit register": ("mov ecx, 2147483648", "MOV", (ECX, 2**31), "b900000080"),
    "sign-extended imm8 of a product": ("imul rcx, rax, 127", "IMUL", (RCX, RAX, 127), "486bc87f"),
    "imm32 of a product, first above": ("imul rcx, rax, 128", "IMUL", (RCX, RAX, 128), "4869c880000000"),
    "imm32 of a product, no byte": ("imul rcx, [rax], 255", "IMUL", (RCX, mem(RAX, size=8), 255), "486908ff000000"),
    "sign-extended imm8 of a narrow product": (
        "imul ecx, ecx, 4294967168", "IMUL", (ECX, ECX, 2**32 - 128), "69c980ffffff"),
    "shift by one": ("shl rcx, 1", "SHL", (RCX, 1), "48d1e1"),
    "shift by more": ("shl rcx, 2", "SHL", (RCX, 2), "48c1e102"),
    "shift by cl": ("shl rcx, cl", "SHL", (RCX, CL), "48d3e1"),
    "byte in memory": ("mov [rax], 5", "MOV", (mem(RAX, size=1), 5), "c60005"),
    "a segment register": ("mov r8d, fs", "MOV", (register("r32", 8), register("seg", 4)), "418ce0"),
    "to a segment register": ("mov gs, [rax]", "MOV", (register("seg", 5), mem(RAX, size=2)), "8e28"),
    "a port in dx": ("in al, dx", "IN", (register("r8", 0), register("r16", 2)), "ec"),
    "a port of its own": ("out 128, ax", "OUT", (128, register("r16", 0)), "66e780"),
    "two immediates": ("enter 4660, 1", "ENTER", (0x1234, 1), "c8341201"),
    "a broadcast to a low xmm": ("vbroadcastss xmm1, xmm2", "VBROADCASTSS", (XMM[1], XMM[2]), "c4e27918ca"),
    "the same with a mask": (
        "vbroadcastss xmm1{k1}, xmm2", "VBROADCASTSS", (XMM[1].masked(K[1]), XMM[2]), "62f27d0918ca"),
    "quadword in memory": ("mov [rax], 5", "MOV", (mem(RAX, size=8), 5), "48c70005000000"),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule: str) -> None:
    text, mnemonic, operands, expected = RULES[rule]
    encoder = encoder_of(mnemonic)
    assert encoder is not None
    code = bytes(encoder.choose(operands).encode(operands))
    assert code.hex() == expected
    assert intel_text(decode(code)) == text
