"""`as` makes the same bytes of a kernel's assembly, and of every instruction that there is."""

import re
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from asmdnn.corpus.families import corpus
from asmdnn.dump.gas import assembly
from asmdnn.dump.kernel import DumpedKernel, listed
from asmdnn.dump.spelling import jump, spelling
from asmdnn.isa.assembler import Assembler, mem, register
from asmdnn.isa.encoder import encoder_of, text_of
from tests.dump.tools import need, output, reassembled, sections
from tests.isa.forms import documented_forms, random_operands

SAMPLE = 40  # every such kernel of the corpus, in the fast set


@pytest.fixture(autouse=True)
def _gas() -> None:
    need("as")


def differing(kernels: list[DumpedKernel], folder: Path) -> list[str]:
    return [kernel.name for kernel in kernels if reassembled(assembly(kernel), folder) != kernel.data]


def test_a_sample_of_the_corpus(tmp_path: Path) -> None:
    kernels = [listed(spec) for spec in islice(corpus(), 0, None, SAMPLE)]
    assert {kernel.isa for kernel in kernels} >= {"avx2", "avx512_core"}
    assert differing(kernels, tmp_path) == []


@pytest.mark.slow
def test_the_corpus(tmp_path: Path) -> None:
    assert differing([listed(spec) for spec in corpus()], tmp_path) == []


def test_labels_that_share_a_place(tmp_path: Path) -> None:
    """Two conditions that lead to the same plain copy of a loop: dst that is not aligned, and data in place."""
    streaming = [listed(spec) for spec in corpus() if re.match(r"map_f32_3x\d+_linear_streaming", spec.name)]
    assert len(streaming) == 4
    assert differing(streaming, tmp_path) == []


def test_no_instruction_of_the_corpus_is_bytes() -> None:
    for spec in islice(corpus(), 0, None, SAMPLE):
        code = assembly(listed(spec)).partition(".Lconstants:")[0]
        assert ".byte" not in code, spec.name


def encodings(seed: int, of_a_form: int) -> list[tuple[str, bytes]]:
    """Random operands of every documented form of every instruction: listing text and bytes."""
    random, found = Random(seed), []
    for form in documented_forms():
        encoder = encoder_of(form.mnemonic)
        assert encoder is not None
        for _ in range(of_a_form):
            operands = random_operands(form, random)
            found.append((text_of(form.mnemonic, operands), bytes(encoder.choose(operands).encode(operands))))
    return found


def check_spellings(instructions: list[tuple[str, bytes]], folder: Path) -> int:
    """Assemble them all; how many have no spelling."""
    spelled = [(text, data, words) for text, data in instructions if (words := spelling(text, data))]
    labels = [f".globl i{i}\ni{i}: {words}" for i, (_, _, words) in enumerate(spelled)]
    (folder / "all.s").write_text("\n".join([".intel_syntax noprefix", *labels, ""]))
    output("as", "all.s", "-o", "all.o", cwd=folder)
    code = sections((folder / "all.o").read_bytes())[".text"].data
    at = 0
    for text, data, words in spelled:
        made = code[at : at + len(data)]
        assert made == data, f"{text} is {data.hex()}, gas makes {made.hex()} of {words}"
        at += len(data)
    assert at == len(code)
    return len(instructions) - len(spelled)


def test_instructions(tmp_path: Path) -> None:
    instructions = encodings(seed=5, of_a_form=1)
    without = check_spellings(instructions, tmp_path)
    assert 0 < without < len(instructions) / 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_instructions(seed: int, tmp_path: Path) -> None:
    check_spellings(encodings(seed, of_a_form=10), tmp_path)


XMM, YMM, ZMM, TMM, RAX, RSI = (register(kind, 1) for kind in ("xmm", "ymm", "zmm", "tmm", "r64", "r64"))
HIGH, AL, DX = register("xmm", 20), register("r8", 0), register("r16", 2)
BEYOND_PEACHPY = (
    ("VPDPBUSD", (ZMM, ZMM, mem(RAX, 4, size=4, broadcast=16))), ("VPDPBUSD", (YMM, YMM, YMM)),
    ("VPDPBUSD_VEX", (YMM, YMM, mem(RAX, 8))), ("VPDPWSSDS_VEX", (XMM, XMM, XMM)), ("VPDPWSSD", (HIGH, XMM, XMM)),
    ("VDPBF16PS", (ZMM, ZMM, ZMM)), ("VCVTNE2PS2BF16", (YMM, YMM, YMM)), ("VCVTNEPS2BF16", (XMM, mem(RAX, size=32))),
    ("LDTILECFG", (mem(RAX, size=64),)), ("STTILECFG", (mem(RAX, 64),)), ("TILELOADD", (TMM, mem(RAX, index=RSI))),
    ("TILESTORED", (mem(RAX, index=RSI, scale=4), TMM)), ("TILEZERO", (TMM,)), ("TILERELEASE", ()),
    ("TDPBF16PS", (TMM, register("tmm", 2), register("tmm", 3))), ("ENDBR64", ()),
    ("MOV", (RSI, mem(None, 40, segment="fs"))), ("LOCK_ADD", (mem(RAX, index=RSI, scale=2, size=4, segment="gs"), 3)),
    ("VADDPS", (ZMM, ZMM, mem(RAX, 64, size=64, segment="fs"))), ("MOVABS", (register("r64", 0), -1)),
    ("AESENC256KL", (XMM, mem(RAX, 64, size=64))), ("IRET", ()), ("IN", (AL, DX)),
    ("MOV", (register("seg", 4), register("r32", 6))),
    ("LOCK_ADD", (mem(RAX, size=8), RSI)), ("VSQRTPD", (YMM, mem(RAX, size=8, broadcast=4))),
)  # fmt: skip


def test_instructions_that_peachpy_lacks(tmp_path: Path) -> None:
    instructions = []
    for mnemonic, operands in BEYOND_PEACHPY:
        encoder = encoder_of(mnemonic)
        assert encoder is not None
        instructions.append((text_of(mnemonic, operands), bytes(encoder.choose(operands).encode(operands))))
    assert check_spellings(instructions, tmp_path) == 0


class Everything:
    """A kernel with what the corpus has not: every NOP, long and short jumps both ways, an instruction that gas has no
    words for, names that are no identifiers, and an early return."""

    name = "every.thing-1__avx2"

    def generate(self, asm: Assembler) -> None:
        back, far, near = (asm.new_label(name) for name in ("go back", "far", "jmp"))
        asm.gp.claim(register("r64", 3), "saved")
        asm.role("a role, # with a comment")
        asm.bind(back)
        for alignment in (2, 4, 8, 16, 32, 64):
            asm.align(alignment)
            asm.INC(RAX)
        asm.JZ(near)
        asm.JNZ(far)
        asm.VADDSS(HIGH, XMM, XMM)
        asm.VMOVUPS(YMM, asm.const(bytes(range(40)), 32, size=32))
        asm.VMOVUPS(register("ymm", 2), asm.const(bytes(7), 4, size=32))
        asm.ret()
        asm.bind(near)
        for _ in range(40):
            asm.VADDPS(YMM, YMM, mem(RAX, 256))
        asm.JMP(back)
        asm.bind(far)
        asm.ret()


def test_a_kernel_of_everything(tmp_path: Path) -> None:
    kernel = listed(Everything())
    text = assembly(kernel)
    assert reassembled(text, tmp_path) == kernel.data
    assert "every_thing_1__avx2:" in text
    assert len(re.findall(r"\.byte 0x62.*# vaddss xmm20, xmm1, xmm1;", text)) == 1
    assert kernel.data[kernel.constants_offset :][:40] == bytes(range(40))


def test_a_near_jump_that_could_be_short(tmp_path: Path) -> None:
    """The assembler never makes one; should it, gas is told."""
    text = f".intel_syntax noprefix\n{jump('jz', 'x', bytes.fromhex('0f8402000000'))}\nnop\nnop\nx: nop\n"
    assert reassembled(text, tmp_path)[:6].hex() == "0f8402000000"


def test_comments_are_the_listing() -> None:
    spec = next(iter(corpus()))
    kernel = listed(spec)
    commented = [line.partition("# ")[2] for line in assembly(kernel).splitlines() if line.startswith("    v")]
    wanted = [f"{line.role}  ({line.source})" for line in kernel.listing if line.text[0] == "v" and line.source]
    assert [comment for comment in commented if "(" in comment] == wanted
