"""Instructions that PeachPy lacks or encodes wrongly, against an independent decoder: all forms, random operands."""

import re
from collections.abc import Iterator
from random import Random

import iced_x86
import pytest
from iced_x86 import CpuidFeature, EncodingKind

from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import Assembler, mem, register, rz_sae
from asmdnn.isa.encoder import encoder_of, text_of
from asmdnn.isa.extensions import extension_forms, extension_names
from tests.isa.decoding import decode, disagreement, intel_text
from tests.isa.extension_calls import NAMES, STRING, encode, random_calls

CPUID = {value: name for name, value in vars(CpuidFeature).items() if name[0].isupper()}
# Sets of which every instruction is here, and what of them is not: other ways to write the same, or to say more.
COMPLETE = {
    "AVX512_FP16", "AVX512_VBMI2", "AVX512_BITALG", "AVX512_VP2INTERSECT", "AVX512_VNNI", "AVX512_BF16", "GFNI",
    "AVX_VNNI", "AVX_VNNI_INT8", "AVX_VNNI_INT16", "AVX_NE_CONVERT", "SHA512", "SM3", "SM4", "CMPCCXADD", "RAO_INT",
    "AMX_TILE", "AMX_BF16", "AMX_INT8", "AMX_FP16", "AMX_COMPLEX", "MOVDIRI", "MOVDIR64B", "WAITPKG", "RDPID", "RTM",
    "FSGSBASE", "CLDEMOTE", "SERIALIZE", "TSXLDTRK", "UINTR", "PTWRITE", "PREFETCHITI", "AESKLE", "WIDE_KL", "FXSR",
    "XSAVEOPT", "XSAVEC", "MONITORX", "RDPRU", "MCOMMIT", "VPCLMULQDQ", "VAES",
    "AVX512_VPOPCNTDQ",
}  # fmt: skip
OTHER_WAYS = re.compile(
    "(TPAUSE|UMWAIT)_R64|UMONITOR_R32|MOVDIR64B_R(16|32)_M512|MONITORXD|RDPID_R32|XBEGIN_REL(16|32)|VMOVW_(XMM_RMM16|RMM16_XMM)_.*"
    "|EVEX_VMOVSH_XMM_K1Z_XMM_XMM_MAP5_11|EVEX_VMOVW_(XMM_R64M16|R64M16_XMM)"
)


def failures(name: str) -> list[str]:
    random, found = Random(name), []
    for form in extension_forms(name):
        for operands in random_calls(form, random):
            code = encode(name, *operands)
            reason = disagreement(name, operands, code)
            found += [f"{text_of(name, operands)} -> {code.hex()}: {reason}"] if reason else []
    return found


def test_every_form_is_what_the_decoder_reads() -> None:
    assert len(NAMES) > 270
    assert [text for name in NAMES for text in failures(name)] == []


def test_forms_of_one_name_are_as_many_as_the_manual_has() -> None:
    assert [form.patterns for form in extension_forms("VCVTPH2PD")] == [
        ("xmm{k}{z}", "xmm/m32/m16{1to2}"),
        ("ymm{k}{z}", "xmm/m64/m16{1to4}"),
        ("zmm{k}{z}", "xmm/m128/m16{1to8}"),
        ("zmm{k}{z}", "xmm", "{sae}"),
    ]
    assert [form.patterns for form in extension_forms("VPCOMPRESSB")][:1] == [("xmm{k}{z}/m128{k}", "xmm")]
    assert sum(len(extension_forms(name)) for name in NAMES) > 620


def user_mode_codes() -> Iterator[tuple[str, int]]:
    """(name, code) of the sets that are complete, as the decoder knows them."""
    for name, value in vars(iced_x86.Code).items():
        info = iced_x86.OpCodeInfo(value) if isinstance(value, int) else None
        if info is None or not info.is_instruction or not info.mode64 or info.must_be_cpl0:
            continue
        instruction = iced_x86.Instruction()
        instruction.code = value
        if {CPUID[feature] for feature in instruction.cpuid_features()} & COMPLETE:
            yield name, value


def test_sets_are_complete() -> None:
    random = Random(1)
    calls = [(n, operands) for n in NAMES for form in extension_forms(n) for operands in random_calls(form, random)]
    reached = {decode(encode(name, *operands)).code for name, operands in calls}
    missing = [name for name, value in user_mode_codes() if value not in reached and not OTHER_WAYS.fullmatch(name)]
    assert missing == []


@pytest.mark.parametrize("name", [name for name in extension_names() if STRING.fullmatch(name)])
def test_string_instructions_are_written_without_operands(name: str) -> None:
    assert intel_text(decode(encode(name))) == text_of(name, ())


@pytest.mark.parametrize("kind", ["xmm", "ymm"])
@pytest.mark.parametrize("mnemonic", ["VPDPBUSD", "VPDPBUSDS", "VPDPWSSD", "VPDPWSSDS"])
def test_the_vex_form_is_chosen_by_name(mnemonic: str, kind: str) -> None:
    low = [register(kind, n) for n in (1, 2, 15)]
    assert decode(encode(f"{mnemonic}_VEX", *low)).cpuid_features() == [CpuidFeature.AVX_VNNI]
    assert CpuidFeature.AVX512_VNNI in decode(encode(mnemonic, *low)).cpuid_features()
    for impossible in register(kind, 16), register(kind, 1).masked(register("k", 1)):
        with pytest.raises(InvalidArguments, match="does not exist"):
            encode(f"{mnemonic}_VEX", impossible, register(kind, 1), register(kind, 2))


def test_galois_fields_take_the_short_form_where_it_exists() -> None:
    for number, kind in (1, EncodingKind.VEX), (17, EncodingKind.EVEX):
        operands = [register("ymm", number), register("ymm", 2), register("ymm", 3)]
        assert decode(encode("VGF2P8MULB", *operands)).encoding == kind


def test_operands_that_the_processor_refuses_are_refused() -> None:
    tile, vector = register("tmm", 1), register("zmm", 1)
    for name in ("TDPBF16PS", "TCMMRLFP16PS"):
        with pytest.raises(InvalidArguments, match="needs registers that all differ"):
            encode(name, tile, tile, register("tmm", 2))
    for name in ("VFMULCPH", "VFCMADDCPH", "VFMULCPH_EVEX"):
        assert encode(name, vector, register("zmm", 2), register("zmm", 2))
        with pytest.raises(InvalidArguments, match="needs a target that is none of its factors"):
            encode(name, vector, register("zmm", 2), vector)
    with pytest.raises(InvalidArguments, match=r"does not exist: the forms are VP2INTERSECTD\(k\+1"):
        encode("VP2INTERSECTD", register("k", 3), vector, vector)
    with pytest.raises(InvalidArguments, match="has no form that holds the immediate"):
        encode("XABORT", 256)
    for wrong in (register("seg", 1), register("r32", 1)), (register("r8", 0), register("r16", 3)):  # to cs; port in bx
        with pytest.raises(InvalidArguments, match="does not exist"):
            encode("MOV" if wrong[0].kind == "seg" else "IN", *wrong)
    with pytest.raises(InvalidArguments, match="does not exist"):
        encode("VADDPH", register("ymm", 1), register("ymm", 2), register("ymm", 3), rz_sae)


def test_jumps_that_reach_only_so_far() -> None:
    asm = Assembler("loops")
    start = asm.new_label("start")
    asm.bind(start)
    asm.LOOPNE(start)
    asm.LOOP(start)
    asm.XBEGIN(start)
    asm.JECXZ(start)
    asm.JRCXZ(start)
    assert asm.finish().data.hex() == "e0fe" + "e2fc" + "c7f8f6ffffff" + "67e3f3" + "e3f1"
    far = Assembler("far")
    end = far.new_label("end")
    far.LOOP(end)
    for _ in range(200):
        far.NOP()
    far.bind(end)
    with pytest.raises(InvalidArguments, match="out of reach: it has only a short form"):
        far.finish()


def test_lock_prefix() -> None:
    rax, pointer = register("r64", 0), mem(register("r64", 13), 8, size=8)
    for mnemonic in ["ADD", "ADC", "AND", "OR", "SBB", "SUB", "XOR", "XADD", "CMPXCHG", "XCHG", "BTS", "BTR", "BTC"]:
        assert disagreement(f"LOCK_{mnemonic}", (pointer, rax), encode(f"LOCK_{mnemonic}", pointer, rax)) is None
    for mnemonic in ["INC", "DEC", "NEG", "NOT"]:
        assert disagreement(f"LOCK_{mnemonic}", (pointer,), encode(f"LOCK_{mnemonic}", pointer)) is None
    assert encode("LOCK_XADD", mem(rax), register("r32", 1)).hex() == "f00fc108"
    with pytest.raises(InvalidArguments, match="LOCK needs memory"):
        encode("LOCK_ADD", rax, pointer)
    assert encoder_of("LOCK_MOV") is None


def test_corrected_forms_replace_the_wrong_ones() -> None:
    for kind, filled in ("xmm", 16), ("ymm", 32):
        with pytest.raises(InvalidArguments, match="does not exist"):
            encode("VSQRTPD", register(kind, 1), mem(register("r64", 0), size=4, broadcast=filled // 4))
        with pytest.raises(InvalidArguments, match="does not exist"):
            encode("VMOVNTPS", mem(register("r64", 0)).masked(register("k", 1)), register(kind, 20))
