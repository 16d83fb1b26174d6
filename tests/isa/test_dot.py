"""Which dot product a level has, and that all of them are what the table says."""

import pytest

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.dot import (
    BF16,
    DOTS,
    F32,
    GROUP_BYTES,
    U8S8,
    AvxVnniDot,
    Bf16Dot,
    F32Dot,
    Types,
    VnniDot,
    dot_level,
    dot_of,
)
from asmdnn.isa.levels import LEVELS
from asmdnn.isa.vectors import f32_level, lanes_of, vector_of
from asmdnn.types import f32, s8, s32, u8

# Types, and for each level that of the code which it runs; "" for none.
BEST = {
    F32: ("avx2", "avx2", "avx512_core", "avx512_core", "avx512_core", "avx512_core", "avx512_core"),
    U8S8: ("", "avx2_vnni", "", "avx512_core_vnni", "avx512_core_vnni", "avx512_core_vnni", "avx512_core_vnni"),
    BF16: ("", "", "", "", "avx512_core_bf16", "avx512_core_bf16", "avx512_core_bf16"),
}


@pytest.mark.parametrize("types", BEST, ids=str)
def test_the_level_of_a_level(types: Types) -> None:
    for level, best in zip(LEVELS, BEST[types], strict=True):
        if best:
            assert dot_level(types, level.name) == best
        else:
            with pytest.raises(Unimplemented):
                dot_level(types, level.name)


def test_f32_products_take_the_level_of_all_f32_code() -> None:
    assert all(dot_level(F32, level.name) == f32_level(level.name) for level in LEVELS)


def test_reasons() -> None:
    with pytest.raises(Unimplemented, match=r"^isa avx512_core has no dot product of u8s8s32: take avx2_vnni or avx51"):
        dot_level(U8S8, "avx512_core")
    with pytest.raises(
        Unimplemented, match=r"^no isa has a dot product of s8s8s32 here: take f32 or u8s8s32 or bf16bf16f32$"
    ):
        dot_level(Types(s8, s8, s32), "avx512_core_amx")
    with pytest.raises(InvalidArguments, match="isa 'sse' is not one of"):
        dot_level(F32, "sse")


def test_groups() -> None:
    """They fill one lane, which is as large as a sum."""
    assert [(str(types), types.group) for types in BEST] == [("f32", 1), ("u8s8s32", 4), ("bf16bf16f32", 2)]
    for types, _ in DOTS:
        assert types.group * types.src.size_bytes == GROUP_BYTES == types.sums.size_bytes
        assert types.weights.size_bytes == types.src.size_bytes


@pytest.mark.parametrize(("types", "level"), DOTS, ids=str)
def test_multiply_is_one_instruction_of_the_level(types: Types, level: object) -> None:
    isa = str(level)
    asm = Assembler("dot", listing=True)
    v = vector_of(isa, asm)
    acc, copy, row = v.registers.take("x", 3)
    dot = dot_of(types, isa, v)
    dot.multiply(acc, copy, row)
    code = asm.finish()
    assert code.listing is not None
    (line,) = code.listing
    wanted = {F32Dot: "vfmadd231ps", VnniDot: "vpdpbusd", AvxVnniDot: "vpdpbusd", Bf16Dot: "vdpbf16ps"}[type(dot)]
    assert line.text == f"{wanted} {acc}, {copy}, {row}"
    assert (line.data[0] == 0x62) == (lanes_of(isa) == 16)  # EVEX


def test_types_of_a_name() -> None:
    assert str(Types(u8, s8, f32)) == "u8s8f32"
