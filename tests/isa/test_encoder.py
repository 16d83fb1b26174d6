"""What the encoder refuses, and what it says."""

import re

import numpy as np
import pytest

from asmdnn.errors import InvalidArguments
from asmdnn.isa import immediates
from asmdnn.isa.assembler import Assembler, mem, register
from asmdnn.isa.encoder import encoder_of
from asmdnn.isa.memory_operand import Encode, Operand, Pointer
from tests.isa.extension_calls import encode

RAX, EAX, K1 = register("r64", 0), register("r32", 0), register("k", 1)
XMM, YMM, ZMM = register("xmm", 1), register("ymm", 1), register("zmm", 1)


@pytest.mark.parametrize(
    ("mnemonic", "operands", "sizes"),
    [
        ("MOV", (mem(RAX), 5), "1, 2, 4, 8"),
        ("ADD", (mem(RAX, 8), 5), "1, 2, 4, 8"),
        ("CMP", (mem(RAX), 0), "1, 2, 4, 8"),
        ("INC", (mem(RAX),), "1, 2, 4, 8"),
        ("SHL", (mem(RAX), 1), "1, 2, 4, 8"),
        ("MOVZX", (EAX, mem(RAX)), "1, 2"),
        ("PUSH", (mem(RAX),), "2, 8"),
        ("LOCK_INC", (mem(RAX),), "1, 2, 4, 8"),
        ("VCVTPD2PS", (XMM, mem(RAX)), "16, 32"),
        ("VCVTNEPS2BF16", (XMM, mem(RAX)), "16, 32"),
        ("VFPCLASSPS", (K1, mem(RAX), 1), "16, 32, 64"),
    ],
)
def test_memory_of_unknown_size_is_refused(mnemonic: str, operands: tuple[Operand, ...], sizes: str) -> None:
    message = f"leaves the size of memory open: say mem(..., size=...) with one of {sizes}"
    with pytest.raises(InvalidArguments, match=f"{re.escape(message)}$"):
        encode(mnemonic, *operands)


def test_constants_of_unknown_size_are_refused() -> None:
    asm = Assembler("constant")
    with pytest.raises(InvalidArguments, match=r"cmp .* leaves the size"):
        asm.CMP(asm.const(bytes(8), 8), 0)
    asm.CMP(asm.const(bytes(8), 8, size=4), 0)


@pytest.mark.parametrize(
    ("mnemonic", "operands", "size"),
    [
        ("MOV", (RAX, mem(RAX)), 8),
        ("MOV", (mem(RAX), EAX), 4),
        ("VMOVUPS", (YMM, mem(RAX)), 32),
        ("VMOVUPS", (mem(RAX).masked(K1), ZMM), 64),
        ("VBROADCASTSS", (ZMM, mem(RAX)), 4),
        ("VPMOVZXBD", (YMM, mem(RAX)), 8),
        ("VADDSS", (XMM, XMM, mem(RAX)), 4),
        ("PREFETCHT0", (mem(RAX),), 1),
        ("CALL", (mem(RAX),), 8),
    ],
)
def test_memory_whose_size_follows(mnemonic: str, operands: tuple[Operand, ...], size: int) -> None:
    sized = [operand.sized(size) if isinstance(operand, Pointer) else operand for operand in operands]
    assert encode(mnemonic, *operands) == encode(mnemonic, *sized)


def test_an_address_needs_no_size() -> None:
    assert encode("LEA", RAX, mem(RAX, 8)) == encode("LEA", RAX, mem(RAX, 8, size=4)) == bytes.fromhex("488d4008")


@pytest.mark.parametrize(
    ("mnemonic", "operands", "message"),
    [
        ("VADDPS", (ZMM, ZMM, 5), "vaddps zmm1, zmm1, 5 does not exist: the forms are VADDPS(xmm, xmm, xmm/m128)"),
        ("ADD", (RAX, 1 << 40), "add rax, 1099511627776 does not exist"),
        ("IMUL", (RAX, RAX, 1 << 31), "imul rax, rax, 2147483648 has no form that holds the immediate"),
        ("IMUL", (RAX, mem(RAX, size=8), (1 << 32) - 1), "has no form that holds the immediate: give a smaller one"),
        ("VADDPS", (ZMM, ZMM, mem(RAX, size=4, broadcast=8)), "does not exist"),
        ("XCHG", (EAX, EAX), "xchg eax, eax does not exist"),
        ("VADDPS", (register("ymm", 16).masked(K1), YMM, mem(RAX, size=64)), "does not exist"),
        ("VGATHERDPS", (ZMM, mem(RAX, index=register("zmm", 2))), "needs a write mask k1 to k7"),
        ("VSCATTERDPS", (mem(RAX, index=register("zmm", 2)), ZMM), "needs a write mask k1 to k7"),
        ("VGATHERDPS", (ZMM.masked(K1), mem(RAX, index=ZMM)), "needs registers that all differ"),
        ("VGATHERDPS", (YMM, mem(RAX, index=register("ymm", 2)), YMM), "needs registers that all differ"),
    ],
)
def test_what_does_not_exist_is_refused(mnemonic: str, operands: tuple[Operand, ...], message: str) -> None:
    with pytest.raises(InvalidArguments, match=re.escape(message)):
        encode(mnemonic, *operands)


def test_operands_of_other_types() -> None:
    asm = Assembler("types")
    asm.ADD(RAX, np.int64(8))
    asm.VPSHUFD(XMM, XMM, np.uint8(0x1B))
    assert asm.finish().data == bytes.fromhex("4883c008c5f970c91b")
    for wrong, kind in (1.5, "float"), ("rax", "str"), ([RAX], "list"), (asm.new_label("x"), "Label"):
        with pytest.raises(InvalidArguments, match=f"is a {kind}, not a register"):
            asm.ADD(RAX, wrong)


def test_unknown_mnemonics() -> None:
    assert encoder_of("VFOO") is None
    asm = Assembler("unknown")
    for name in "VFOO", "Label", "rax", "LOCK_MOV":
        with pytest.raises(AttributeError, match=f"{name} is neither an instruction"):
            getattr(asm, name)


@pytest.mark.parametrize(
    ("name", "encode", "operands", "says"),
    [
        ("SHL", lambda ops: bytes((0x48, 0xC1, 0xE0, ops[1] & 0xFF)), (RAX, 200), range(128, 256)),
        ("SHL", lambda ops: bytes((0x48, 0xD1, 0xE0)), (RAX, 1), range(1, 2)),
        ("ADD", lambda ops: bytes((0x48, 0x83, 0xC0, ops[1] & 0xFF)), (RAX, 100), range(16, 128)),
        ("ADD", lambda ops: bytes((0x83, 0xC0, ops[1] & 0xFF)), (EAX, 2**32 - 1), range(2**32 - 128, 2**32)),
    ],
)
def test_what_an_encoder_says(name: str, encode: Encode, operands: tuple[Operand, ...], says: range) -> None:
    assert immediates.says(name, encode, operands, 1, says)


@pytest.mark.parametrize(
    ("name", "encode", "operands", "values"),
    [
        ("SHL", lambda ops: bytes((0x48, 0xC1, 0xE0, ops[1] & 31)), (RAX, 40), range(16, 128)),
        ("SHL", lambda ops: bytes((0x48, 0xC1, 0xE0, ops[1] & 0xFF)), (RAX, 256), range(256, 257)),
        ("SHL", lambda ops: bytes((0x48, 0xD1, 0xE0)), (RAX, 1), range(1, 3)),
        ("ADD", lambda ops: bytes((0x48, 0x83, 0xC0, ops[1] & 0xFF)), (RAX, 128), range(128, 256)),
        ("ADD", lambda ops: bytes((0x48, 0x81, 0xC0)) + (ops[1] % 2**32).to_bytes(4, "little"), (RAX, 2**31),
         range(2**31, 2**32)),
        ("PUSH", lambda ops: bytes((0x6A, ops[0] & 0xFF)), (200,), range(128, 256)),
    ],
)  # fmt: skip
def test_what_an_encoder_does_not_say(name: str, encode: Encode, operands: tuple[Operand, ...], values: range) -> None:
    """Fields that are too narrow, or that the processor extends: as PeachPy would encode them, or as a typing slip."""
    position = len(operands) - 1
    assert not immediates.says(name, encode, operands, position, values)
