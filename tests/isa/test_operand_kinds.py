"""Operands beside registers and plain addresses: segments, high bytes, labels, and the choice of VEX or EVEX.

The decoder (iced-x86) and the GNU assembler judge the bytes.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from iced_x86 import Decoder
from iced_x86 import Register as IcedRegister

from asmdnn import asm
from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import Assembler, high8, mem, register
from asmdnn.isa.encoder import encoder_of, text_of
from asmdnn.isa.memory_operand import Operand
from tests.dump.tools import sections
from tests.isa.decoding import decode, disagreement
from tests.isa.extension_calls import encode
from tests.isa.forms import documented_forms, random_operands

RAX, RCX, RBX, R9 = (register("r64", n) for n in (0, 1, 3, 9))
AL, SIL = register("r8", 0), register("r8", 6)
XMM, YMM, ZMM = (register(kind, 5) for kind in ("xmm", "ymm", "zmm"))
K = register("k", 3)


def assembled(lines: Sequence[str], folder: Path) -> bytes:
    """What the GNU assembler makes of them."""
    if shutil.which("as") is None:
        pytest.skip("GNU as is not installed")
    (folder / "a.s").write_text("\n".join([".intel_syntax noprefix", *lines, ""]))
    subprocess.run(["as", "a.s", "-o", "a.o"], cwd=folder, check=True)
    return sections((folder / "a.o").read_bytes())[".text"].data


@pytest.mark.parametrize("segment", ["fs", "gs"])
def test_segments_add_a_prefix_and_nothing_else(segment: str) -> None:
    """Of every form with memory: the decoder sees the segment, and the same instruction besides."""
    random, seen = Random(segment), 0
    for form in documented_forms():
        operands = random_operands(form, random)
        at = next((i for i, op in enumerate(operands) if hasattr(op, "displacement") and not op.form.in_pool), -1)
        if at < 0 or "MASKMOV" in form.mnemonic:
            continue
        plain = encode(form.mnemonic, *operands)
        f = operands[at].form
        there = mem(f.base, operands[at].displacement, index=f.index, scale=f.scale, size=f.size, broadcast=f.broadcast,
                    segment=segment)  # fmt: skip
        there = there.masked(register("k", f.mask)) if f.mask else there
        code = encode(form.mnemonic, *operands[:at], there, *operands[at + 1 :])
        assert code[1:] == plain, form
        assert decode(code).segment_prefix == getattr(IcedRegister, segment.upper()), form
        seen += 1
    assert seen > 2000


def test_segments_as_the_assembler_writes_them(tmp_path: Path) -> None:
    code = b"".join((
        encode("MOV", RAX, mem(None, 0x28, segment="fs")),
        encode("MOV", mem(R9, 8, index=RCX, scale=4, size=4, segment="gs"), 7),
        encode("VADDPS", YMM, YMM, mem(RBX, 64, segment="fs")),
        encode("LOCK_ADD", mem(RAX, size=8, segment="gs"), RCX),
    ))  # fmt: skip
    lines = (
        "mov rax, fs:[0x28]", "mov dword ptr gs:[r9 + rcx*4 + 8], 7", "vaddps ymm5, ymm5, fs:[rbx + 64]",
        "lock add qword ptr gs:[rax], rcx",
    )  # fmt: skip
    theirs = assembled(lines, tmp_path)
    assert [str(i) for i in Decoder(64, code)] == [str(i) for i in Decoder(64, theirs)]


@pytest.mark.parametrize(("number", "name"), list(enumerate(("ah", "ch", "dh", "bh"))))
def test_high_bytes(number: int, name: str, tmp_path: Path) -> None:
    high, low = high8(register("r64", number)), register("r8", (number + 1) % 4)
    code = b"".join((
        encode("MOV", high, low), encode("ADD", high, mem(RBX, 4)), encode("MOV", mem(RCX, -9), high),
        encode("MOVZX", register("r32", 2), high), encode("SETZ", high), encode("CMP", high, 200),
        encode("SHR", high, 3), encode("XCHG", high, low),
    ))  # fmt: skip
    lines = (
        f"mov {name}, {low}", f"add {name}, [rbx + 4]", f"mov [rcx - 9], {name}", f"movzx edx, {name}", f"setz {name}",
        f"cmp {name}, 200", f"shr {name}, 3", f"xchg {name}, {low}",
    )  # fmt: skip
    theirs = assembled(lines, tmp_path)
    assert [str(i) for i in Decoder(64, code)] == [str(i) for i in Decoder(64, theirs)]
    assert str(high) == name


@pytest.mark.parametrize("other", [SIL, register("r8", 9)])
def test_high_bytes_are_refused_beside_a_rex_prefix(other: Operand) -> None:
    with pytest.raises(InvalidArguments, match=r"mov ah, .*: ah, ch, dh and bh are not beside"):
        encode("MOV", high8(RAX), other)
    with pytest.raises(InvalidArguments, match="not beside"):
        encode("MOVZX", RAX, high8(RAX))
    with pytest.raises(InvalidArguments, match="not beside"):
        encode("MOV", mem(R9), high8(RAX))
    with pytest.raises(InvalidArguments, match="only rax, rcx, rdx and rbx"):
        high8(register("r64", 4))


def test_vex_and_evex_by_choice() -> None:
    """Of each form with a VEX and an EVEX encoding, both; all else is refused."""
    random, both = Random(1), 0
    for form in documented_forms():
        if not form.mnemonic.startswith("V") or "GATHER" in form.mnemonic:
            continue
        operands = random_operands(form, random)
        if encode(form.mnemonic, *operands)[0] == 0x8F:  # XOP has no other
            continue
        made = {}
        for suffix, first in (("_VEX", (0xC4, 0xC5)), ("_EVEX", (0x62,))):
            if encoder_of(f"{form.mnemonic}{suffix}") is None:
                continue
            try:
                code = encode(f"{form.mnemonic}{suffix}", *operands)
            except InvalidArguments:
                continue
            assert code[0] in first
            assert disagreement(form.mnemonic, operands, code) is None
            made[suffix] = code
        assert made, form
        both += len(made) == 2
    assert both > 300


def test_the_choice_says_what_it_lacks() -> None:
    assert encoder_of("ADD_EVEX") is None
    assert encoder_of("VFOO_EVEX") is None
    with pytest.raises(InvalidArguments, match="does not exist: the forms are"):
        encode("VADDPS_VEX", ZMM, ZMM, ZMM)
    with pytest.raises(InvalidArguments, match="does not exist"):
        encode("VADDPS_VEX", XMM.masked(K), XMM, XMM)
    assert text_of("VADDPS_EVEX", (XMM, XMM, XMM)) == "vaddps xmm5, xmm5, xmm5"


def test_an_address_of_code() -> None:
    """LEA of a label before and after, and a load of the bytes there, whatever follows the displacement."""
    a = Assembler("addresses", listing=True)
    before, after = a.new_label("before"), a.new_label("after")
    a.bind(before)
    a.LEA(RAX, mem(after))
    a.LEA(RCX, mem(before, 3))
    a.CMP(mem(after, size=4), 1000)
    a.VMOVUPS(YMM, mem(before))
    a.bind(after)
    a.ret()
    code = a.finish()
    found = list(Decoder(64, code.data[: code.code_bytes]))
    end = found[3].next_ip
    assert [i.ip_rel_memory_address for i in found[:4]] == [end, 3, end, 0]
    assert code.listing is not None
    assert code.listing[0].text.endswith("<after>")


def test_a_label_of_another_function_or_unbound() -> None:
    a, b = Assembler("a"), Assembler("b")
    with pytest.raises(InvalidArguments, match="belongs to another assembler"):
        a.LEA(RAX, mem(b.new_label("elsewhere")))
    a.LEA(RAX, mem(a.new_label("nowhere")))
    a.ret()
    with pytest.raises(InvalidArguments, match="'nowhere' is jumped to but never bound"):
        a.finish()


@asm.function("uint64_t operand_kinds(uint64_t a)")
def operand_kinds(f, a):  # type: ignore[no-untyped-def]
    """Swaps the two low bytes by their names, and adds 1 to the upper one at an address of code: 0xB5, CMP's next."""
    rbx = f.gp.claim(register("r64", 3), "value")
    f.MOV(rbx, a)
    f.XCHG(high8(rbx), register("r8", 3))
    here = f.label("here")
    with f.gp.taken("address") as at:
        f.LEA(at, mem(here))
        f.bind(here)
        f.XOR(low := register("r32", at.id), low)
    f.ret(rbx)


def test_operands_run_are_proved_and_emulated() -> None:
    if operand_kinds.runs_here:
        assert operand_kinds(0x12345678) == 0x12347856
    assert operand_kinds.emulate(0x12345678).result == 0x12347856
    assert operand_kinds.prove(a=range(2)).cases == 2


def test_segments_are_refused_by_proof_and_emulator() -> None:
    @asm.function("uint64_t canary(const uint64_t *x)", reads={"x": "8"})
    def canary(f, x):  # type: ignore[no-untyped-def]
        f.MOV(x, mem(x, segment="fs"))
        f.ret(x)

    with pytest.raises(Exception, match="is relative to fs"):
        canary.prove()
    with pytest.raises(Exception, match="a segment prefix"):
        canary.emulate(np.zeros(1, np.uint64))


def test_files_hold_the_same_bytes(tmp_path: Path) -> None:
    operand_kinds.save(tmp_path / "a.s", tmp_path / "a.o")
    subprocess.run(["as", "a.s", "-o", "b.o"], cwd=tmp_path, check=True)
    texts = [sections((tmp_path / name).read_bytes())[".text"].data for name in ("a.o", "b.o")]
    assert texts[0][: len(operand_kinds.code)] == texts[1][: len(operand_kinds.code)]
