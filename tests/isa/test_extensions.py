"""Instructions that PeachPy lacks or encodes wrongly, against an independent decoder."""

from random import Random

import pytest
from iced_x86 import CpuidFeature, EncodingKind

from asmdnn.errors import InvalidArguments
from asmdnn.isa.assembler import mem, register
from asmdnn.isa.encoder import encoder_of
from asmdnn.isa.extensions import extension_forms
from asmdnn.isa.memory_operand import Operand
from tests.isa.decoding import decode, disagreement
from tests.isa.forms import DocumentedForm, pointer_near_edges, random_operands

VNNI = ("VPDPBUSD", "VPDPBUSDS", "VPDPWSSD", "VPDPWSSDS")
TILE_PRODUCTS = ("TDPBF16PS", "TDPFP16PS", "TDPBSSD", "TDPBSUD", "TDPBUSD", "TDPBUUD")
K1 = register("k", 1)


def encode(mnemonic: str, *operands: Operand) -> bytes:
    encoder = encoder_of(mnemonic)
    assert encoder is not None
    return bytes(encoder.choose(operands).encode(operands))


def assert_agrees(mnemonic: str, *operands: Operand) -> None:
    code = encode(mnemonic, *operands)
    assert disagreement(mnemonic, operands, code) is None, (mnemonic, operands, code.hex())


def evex_forms(mnemonic: str, kind: str) -> list[DocumentedForm]:
    number = {"xmm": 16, "ymm": 32, "zmm": 64}[kind]
    return [
        DocumentedForm(mnemonic, (f"{kind}{{k}}{{z}}", kind, last), True, number)
        for last in (kind, f"m{number * 8}", "m32bcst")
    ]


@pytest.mark.parametrize("kind", ["xmm", "ymm", "zmm"])
@pytest.mark.parametrize("mnemonic", [*VNNI, "VDPBF16PS", "VCVTNE2PS2BF16"])
def test_evex_products(mnemonic: str, kind: str) -> None:
    random = Random(f"{mnemonic} {kind}")
    for form in evex_forms(mnemonic, kind):
        for _ in range(40):
            operands = random_operands(form, random)
            assert_agrees(mnemonic, *operands)
            assert decode(encode(mnemonic, *operands)).encoding == EncodingKind.EVEX


@pytest.mark.parametrize(("half", "kind", "filled"), [("xmm", "xmm", 16), ("xmm", "ymm", 32), ("ymm", "zmm", 64)])
def test_conversion_to_bf16(half: str, kind: str, filled: int) -> None:
    random = Random(f"bf16 {kind}")
    for last in kind, f"m{filled * 8}", "m32bcst":
        for _ in range(40):
            form = DocumentedForm("VCVTNEPS2BF16", (f"{half}{{k}}{{z}}", last), True, filled)
            assert_agrees("VCVTNEPS2BF16", *random_operands(form, random))


@pytest.mark.parametrize("kind", ["xmm", "ymm"])
@pytest.mark.parametrize("mnemonic", VNNI)
def test_the_vex_form_is_chosen_by_name(mnemonic: str, kind: str) -> None:
    random = Random(f"vex {mnemonic} {kind}")
    for last in kind, f"m{128 if kind == 'xmm' else 256}":
        form = DocumentedForm(f"{mnemonic}_VEX", (kind, kind, last), False, 0)
        for _ in range(40):
            operands = random_operands(form, random)
            assert_agrees(f"{mnemonic}_VEX", *operands)
            assert decode(encode(f"{mnemonic}_VEX", *operands)).cpuid_features() == [CpuidFeature.AVX_VNNI]
            assert CpuidFeature.AVX512_VNNI in decode(encode(mnemonic, *operands)).cpuid_features()
    for impossible in register(kind, 16), register(kind, 1).masked(K1):
        with pytest.raises(InvalidArguments, match="does not exist"):
            encode(f"{mnemonic}_VEX", impossible, register(kind, 1), register(kind, 2))


@pytest.mark.parametrize("mnemonic", TILE_PRODUCTS)
def test_tile_products_need_three_tiles(mnemonic: str) -> None:
    for a, b, c in (0, 1, 2), (7, 3, 5), (4, 6, 0):
        assert_agrees(mnemonic, *(register("tmm", n) for n in (a, b, c)))
    with pytest.raises(InvalidArguments, match="needs registers that all differ"):
        encode(mnemonic, register("tmm", 1), register("tmm", 1), register("tmm", 2))


def test_tiles_are_loaded_and_stored_with_a_stride() -> None:
    random = Random("tiles")
    for _ in range(60):
        tile = register("tmm", random.randrange(8))
        pointer = mem(
            register("r64", random.randrange(16)),
            random.choice((0, 64, -128, 128, 1 << 20)),
            index=register("r64", random.choice([n for n in range(16) if n != 4])),
            scale=random.choice((1, 2, 4, 8)),
        )
        pointer = random.choice((pointer, mem(pointer.form.base, 64)))  # without an index the stride is 0
        assert_agrees("TILELOADD", tile, pointer)
        assert_agrees("TILELOADDT1", tile, pointer)
        assert_agrees("TILESTORED", pointer, tile)


def test_tile_configuration() -> None:
    random = Random("configuration")
    for _ in range(40):
        pointer = pointer_near_edges(random, 1, size=64)
        assert_agrees("LDTILECFG", pointer)
        assert_agrees("STTILECFG", pointer)
    for number in range(8):
        assert_agrees("TILEZERO", register("tmm", number))
    assert_agrees("TILERELEASE")


def test_endbr64() -> None:
    assert_agrees("ENDBR64")


def test_lock_prefix() -> None:
    rax, pointer = register("r64", 0), mem(register("r64", 13), 8, size=8)
    for mnemonic in ["ADD", "ADC", "AND", "OR", "SBB", "SUB", "XOR", "XADD", "CMPXCHG", "XCHG", "BTS", "BTR", "BTC"]:
        assert_agrees(f"LOCK_{mnemonic}", pointer, rax)
    for mnemonic in ["INC", "DEC", "NEG", "NOT"]:
        assert_agrees(f"LOCK_{mnemonic}", pointer)
    assert encode("LOCK_XADD", mem(rax), register("r32", 1)).hex() == "f00fc108"
    with pytest.raises(InvalidArguments, match="LOCK needs memory"):
        encode("LOCK_ADD", rax, pointer)
    assert encoder_of("LOCK_MOV") is None


def test_corrected_forms() -> None:
    random = Random("corrections")
    for kind, filled in ("xmm", 16), ("ymm", 32):
        for _ in range(40):
            store = (pointer_near_edges(random, filled, size=filled), register(kind, random.randrange(16, 32)))
            assert_agrees("VMOVNTPS", *store)
            broadcast = pointer_near_edges(random, 8, size=8, broadcast=filled // 8)
            assert_agrees("VSQRTPD", register(kind, random.randrange(32)).zeroed(K1), broadcast)
        with pytest.raises(InvalidArguments, match="does not exist"):
            encode("VSQRTPD", register(kind, 1), mem(register("r64", 0), size=4, broadcast=filled // 4))
        with pytest.raises(InvalidArguments, match="does not exist"):
            encode("VMOVNTPS", mem(register("r64", 0)).masked(K1), register(kind, 20))


def test_every_added_form_belongs_to_a_mnemonic_tested_here() -> None:
    tested = {*VNNI, *(f"{name}_VEX" for name in VNNI), *TILE_PRODUCTS, "VDPBF16PS", "VCVTNE2PS2BF16", "VCVTNEPS2BF16"}
    tested |= {"LDTILECFG", "STTILECFG", "TILELOADD", "TILELOADDT1", "TILESTORED", "TILEZERO", "TILERELEASE", "ENDBR64"}
    tested |= {"VMOVNTPS", "VSQRTPD"}
    assert all(extension_forms(mnemonic) for mnemonic in tested)
