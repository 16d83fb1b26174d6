"""Which dot product a level has, and that all of them are what the table says."""

import pytest

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.assembler import Assembler, mem
from asmdnn.isa.dot import (
    BF16,
    DOTS,
    F16,
    F32,
    GROUP_BYTES,
    OFFERED,
    S8S8,
    S16,
    S16S8,
    S32,
    U8S8,
    Types,
    blocks_of,
    dot_class,
    dot_level,
    dot_of,
    half_products,
    multiplied,
    run_products,
    types_of_words,
)
from asmdnn.isa.dot_base import F32_BF16, F32_F16, F32_S8, F32_U8
from asmdnn.isa.dot_native import AvxVnniDot, Bf16Dot, F16Dot, F32Dot, ShiftedAvxVnniDot, ShiftedVnniDot, VnniDot
from asmdnn.isa.dot_widened import PairsDot, S32Dot, WidenedDot, WordsDot
from asmdnn.isa.levels import LEVELS
from asmdnn.isa.vectors import f32_level, lanes_of, vector_class, vector_of
from asmdnn.types import DataType, bf16, f16, f32, s8, s32, u8

# Types, and for each level that of the code which it runs; "" for none.
OF_F32 = ("avx2", "avx2", "avx512_core", "avx512_core", "avx512_core", "avx512_core", "avx512_core")
OF_BYTES = ("avx2", "avx2_vnni", "avx512_core", *["avx512_core_vnni"] * 4)
BEST = {
    F32: OF_F32,
    U8S8: OF_BYTES,
    S8S8: OF_BYTES,
    BF16: ("", "", "", "", "avx512_core_bf16", "avx512_core_bf16", "avx512_core_bf16"),
    F16: ("", "", "", "", "", "avx512_core_fp16", "avx512_core_fp16"),
    S16: OF_BYTES,
    S16S8: ["avx2"] * len(OF_F32),
    **dict.fromkeys((F32_BF16, F32_F16, F32_S8, F32_U8, S32), OF_F32),
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
    with pytest.raises(Unimplemented, match=r"^isa avx512_core has no dot product of bf16bf16f32: take avx512_core_bf"):
        dot_level(BF16, "avx512_core")
    with pytest.raises(
        Unimplemented, match=r"^no isa has a dot product of s8u8s32 here: take f32 or u8s8s32 or s8s8s32"
    ):
        dot_level(Types(s8, u8, s32), "avx512_core_amx")
    with pytest.raises(InvalidArguments, match="isa 'sse' is not one of"):
        dot_level(F32, "sse")


@pytest.mark.parametrize(
    ("src", "weights", "isa", "types"),
    [
        (f32, f32, "avx2", F32),
        (bf16, bf16, "avx2", F32_BF16),
        (bf16, bf16, "avx512_core_vnni", F32_BF16),
        (bf16, bf16, "avx512_core_bf16", BF16),
        (f16, f16, "avx512_core_fp16", F32_F16),
        (bf16, s8, "avx2", F32_S8),
        (u8, s8, "avx2", U8S8),
        (s8, s8, "avx512_core_amx", S8S8),
    ],
    ids=str,
)
def test_what_is_multiplied(src: DataType, weights: DataType, isa: str, types: Types) -> None:
    """What a level does not multiply it widens."""
    assert multiplied(src, weights, isa) == types


def test_sums_of_fewer_bits_are_for_who_asks() -> None:
    """Of f16, on the levels that multiply them."""
    assert F16 not in OFFERED and str(F16) == "f16f16f16f32"
    assert [run_products(f16, f16, level.name) for level in LEVELS] == [None] * 5 + [F16] * 2
    assert run_products(bf16, bf16, "avx512_core_amx") is None and run_products(f32, f16, "avx512_core_fp16") is None
    assert half_products("avx512_core_fp16") == BF16


def test_what_is_not_multiplied() -> None:
    with pytest.raises(Unimplemented, match="does not multiply s32 by s32"):
        multiplied(s32, s32, "avx2")
    with pytest.raises(
        Unimplemented, match=r"^isa avx2 does not multiply s8 by u8: it has f32 x f32/bf16/f16/s8/u8, u8 x s8, s8 x s8"
    ):
        multiplied(s8, u8, "avx2")


def test_groups() -> None:
    """Those of src fill one lane, which is as large as a sum; those of weights, too, unless they are widened."""
    assert [types.group for types in (F32, BF16, U8S8, F32_F16)] == [1, 2, 4, 1]
    for types, level in DOTS:
        assert types.group * types.src.size_bytes == GROUP_BYTES == types.sums.size_bytes
        widened = issubclass(DOTS[types, level], WidenedDot | PairsDot)
        assert (types.weights_bytes == GROUP_BYTES) == (not widened)


INSTRUCTIONS = {
    F32Dot: "vfmadd231ps",
    WidenedDot: "vfmadd231ps",
    VnniDot: "vpdpbusd",
    ShiftedVnniDot: "vpdpbusd",
    AvxVnniDot: "vpdpbusd",
    ShiftedAvxVnniDot: "vpdpbusd",
    Bf16Dot: "vdpbf16ps",
    F16Dot: "vfmadd231ph",
}


@pytest.mark.parametrize(("types", "level"), [(t, x) for (t, x), dot in DOTS.items() if dot in INSTRUCTIONS], ids=str)
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
    assert line.text == f"{INSTRUCTIONS[type(dot)]} {acc}, {copy}, {row}"
    assert (line.data[0] == 0x62) == (lanes_of(isa) == 16)  # EVEX


def test_bytes_are_words_in_front_where_nothing_multiplies_them() -> None:
    """By AVX2 alone: with AVX-512 nobody has timed that, and other levels multiply bytes."""
    found = [types_of_words(types, level.name) for level in LEVELS for types in (U8S8, S8S8)]
    assert found == [S16S8] * 2 + [None] * (len(found) - 2)
    assert types_of_words(F32, "avx2") is None and types_of_words(S16S8, "avx2") is None


def test_products_of_words_are_expected_to_take_less_time_than_those_of_bytes() -> None:
    """In cycles for a product of each lane, in blocks that fill the registers; those of f32 take twice as long each."""
    words, of_bytes, f32s = (
        dot_class(types, "avx2").busy_cycles(rows, 2) / (2 * rows * types.group)
        for types, rows in ((S16S8, 6), (U8S8, 4), (F32, 6))
    )
    assert words < of_bytes < f32s


def test_pairs_of_bytes_become_words_as_they_are_loaded() -> None:
    asm = Assembler("dot", listing=True)
    v = vector_of("avx2", asm)
    acc, row, spare = v.registers.take("sums", 1, 1), v.registers.take("row", 1), v.registers.take("spare", 2)
    dot = dot_of(S16S8, "avx2", v)
    dot.load(row, v, mem(asm.frame, 0, size=dot.row_bytes))
    dot.outer_product(acc, row, [mem(asm.frame, 0, size=4)], spare)
    code = asm.finish()
    assert code.listing is not None
    words = [line.text.split()[0] for line in code.listing]
    assert words == ["vpmovsxbw", "vbroadcastss", "vpmaddwd", "vpaddd"]


def test_words_are_never_saturated() -> None:
    """Pairs of bytes are multiplied as words, whose products fit 32 bits."""
    asm = Assembler("dot", listing=True)
    v = vector_of("avx2", asm)
    acc, row, spare = v.registers.take("sums", 1, 1), v.registers.take("row", 2), v.registers.take("spare", 3)
    dot_of(U8S8, "avx2", v).outer_product(acc, row, [mem(asm.frame, 0, size=4)], spare)
    code = asm.finish()
    assert code.listing is not None
    words = [line.text.split()[0] for line in code.listing]
    assert words == ["vbroadcastss", "vandps", "vpsrlw", "vpmaddwd", "vpaddd", "vpmaddwd", "vpaddd"]


@pytest.mark.parametrize(("types", "level"), DOTS, ids=str)
def test_blocks_fit_the_registers(types: Types, level: object) -> None:
    """Sums, a row of weights, a group of src, and the mask of a tail where that is a register."""
    isa = str(level)
    dot, count = dot_class(types, isa), vector_class(isa).count
    mask, held = count == 16, bool(dot.shift)
    for vectors, rows in blocks_of(types, isa).items():
        of_row = dot.row_registers * (1 if rows == 1 else vectors)
        spare = {WordsDot: 3, S32Dot: 2}.get(dot, 1)
        assert rows * vectors + of_row + spare + held + (mask and dot.row_registers == 1) <= count, (vectors, rows)
