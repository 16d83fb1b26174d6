"""The page of instructions: its list is the assembler's, and what LLVM says is read as it is printed."""

import pytest

from asmdnn import asm
from asmdnn.analyze import mca
from tools import instructions


def test_the_page_lists_what_the_assembler_knows() -> None:
    """If not: python -m tools.instructions."""
    assert instructions.listed(instructions.PAGE.read_text()) == asm.instructions()


def test_forms_in_words_and_their_features() -> None:
    assert instructions.in_words("VADDPS", "VADDPS(zmm{k}{z}, zmm, m512/m32bcst)    [AVX512F]") == (
        "vaddps zmm1, zmm2, zmmword ptr [rsi]"
    )
    assert instructions.in_words("JZ", "JZ(rel32)") == ""
    found = {each.name: each for each in instructions.instructions()}
    assert found["VPDPBUSD_VEX"].text == "vpdpbusd ymm1, ymm2, ymm3"
    assert found["VPDPBUSD_VEX"].features == "avx_vnni"
    assert found["VFMADD231PS"].features == "avx512f"
    assert instructions.on("znver3", found["VFMADD231PS"]) == "vfmadd231ps ymm1, ymm2, ymm3"
    assert instructions.on("znver3", found["VPDPBUSD"]) == ""
    assert instructions.on("icelake-server", found["VADDPH"]) == ""


def test_costs_are_those_of_llvm() -> None:
    if not mca.is_installed():
        pytest.skip(mca.MISSING)
    texts = ["add rax, rbx", "no such thing", "vaddps ymm1, ymm2, ymm3"]
    found = instructions.costs(texts, "icelake-server")
    assert list(found) == [texts[0], texts[2]]
    assert found["add rax, rbx"].latency == 1
    assert found["vaddps ymm1, ymm2, ymm3"].latency == 4
    assert found["vaddps ymm1, ymm2, ymm3"].ports.split() == ["p0", "p1"]
