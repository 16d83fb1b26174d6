"""What is said about kernels: roles, lines, loops, registers, classes."""

import re
from pathlib import Path

import pytest

from asmdnn.corpus.families import corpus
from asmdnn.explain.classes import CLASSES, bytes_of, class_of, flops_of
from asmdnn.explain.kernels import kernel_of, listing_of
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.assembler import Assembler, Line, mem
from asmdnn.isa.vectors import lanes_of
from asmdnn.runtime.kernels import generate
from tests.explain.problems import ISAS, explained


def tile(isa: str, pixels: int = 6, vectors: int = 2, channels: int = 3) -> ConvTileSpec:
    width = vectors * lanes_of(isa)
    group = TapGroup(tuple(range(pixels)), channels)
    return ConvTileSpec(
        isa=isa, vectors=vectors, channels=width, src_pixel_bytes=tuple(32 * p for p in range(pixels)),
        src_channel_bytes=4, weights_row_bytes=4 * width, dst_pixel_bytes=4 * width,
        dst_vector_bytes=4 * width // vectors, whole_vectors=True, groups=(group,),
    )  # fmt: skip


@pytest.mark.parametrize("isa", ISAS)
def test_every_multiply_of_a_tile(isa: str) -> None:
    """acc[p][j] += weights[c, j] * src[p, c], each once, in this order."""
    kernel = kernel_of(tile(isa))
    roles = [i.role for i in kernel.instructions if i.kind == "fma"]
    assert roles == [
        f"acc[{p}][{j}] += weights[{c}, {j}] * src[{p}, {c}]" for c in range(3) for p in range(6) for j in range(2)
    ]
    assert {i.section for i in kernel.instructions if i.kind == "fma"} == {f"channel {c}" for c in range(3)}


def test_one_vector_of_avx512_multiplies_from_memory() -> None:
    kernel = kernel_of(tile("avx512_core", pixels=4, vectors=1, channels=1))
    roles = [i.role for i in kernel.instructions if i.kind == "fma"]
    assert roles == [f"acc[{p}][0] += weights[0, 0] * src[{p}, 0]" for p in range(4)]


@pytest.mark.parametrize("isa", ISAS)
def test_stores_say_where(isa: str) -> None:
    stored = [i.role for i in kernel_of(tile(isa)).instructions if i.kind == "store"]
    assert stored == [f"dst[{p}, {j}] = acc[{p}][{j}]" for j in range(2) for p in range(6)]


def test_instructions_cover_the_code() -> None:
    """Each instruction once, one after the other, up to the end of the code, which is the kernel's."""
    for kernel in explained().kernels:
        here = 0
        for instruction in kernel.instructions:
            assert instruction.offset == here
            here = instruction.end
        assert here == kernel.code_bytes <= kernel.size_bytes


def test_the_bytes_are_the_kernels() -> None:
    spec = tile("avx512_core")
    kernel = kernel_of(spec)
    assert b"".join(i.data for i in kernel.instructions) == generate(spec)[: kernel.code_bytes]


def test_every_kernel_of_the_corpus_is_explained() -> None:
    """An example of every family: each instruction has a class, a role, and a line that exists and holds a call."""
    seen = {}
    for spec in corpus():
        seen.setdefault((type(spec), spec.isa), spec)
    assert len(seen) >= 7
    for spec in seen.values():
        for instruction in kernel_of(spec).instructions:
            assert instruction.kind in CLASSES
            assert instruction.role
            assert instruction.text
            if instruction.section != "save":
                line = Path(instruction.path).read_text().splitlines()[instruction.line - 1]
                assert "(" in line, (instruction.source, line)


def test_lines_hold_what_emitted_them() -> None:
    """The mnemonic itself, or the vector operation that stands for it."""
    words = {"fma": "outer_product", "prefetch": "PREFETCHT1", "broadcast": "outer_product", "store": "store_last("}
    kernel = explained("mb1ic64ih14oc64oh14kh1").kernels[0]
    for instruction in kernel.instructions:
        line = Path(instruction.path).read_text().splitlines()[instruction.line - 1]
        mnemonic = instruction.text.split()[0].upper()
        wanted = words.get(instruction.kind)
        if wanted:
            assert wanted in line
        elif instruction.kind == "integer" and mnemonic in ("ADD", "TEST"):
            assert f"asm.{mnemonic}(" in line


def test_loops_are_those_of_the_generator() -> None:
    group0, group1 = TapGroup((0,), 2), TapGroup((0, 1), 2)
    spec = ConvTileSpec(
        isa="avx2", vectors=1, channels=8, src_pixel_bytes=(0, 32), src_channel_bytes=4, weights_row_bytes=32,
        dst_pixel_bytes=32, dst_vector_bytes=32, whole_vectors=True, groups=(group0, group1),
    )  # fmt: skip
    kernel = kernel_of(spec)
    assert [(loop.name, loop.depth) for loop in kernel.loops] == [("group0", 0), ("group1", 0)]
    by_offset = {i.offset: i for i in kernel.instructions}
    for loop in kernel.loops:
        assert by_offset[loop.begin].labels == (loop.name,)
        jump = by_offset[loop.jump]
        assert (jump.target, jump.end, jump.kind) == (loop.begin, loop.end, "branch")
        fmas = [i for i in kernel.instructions if i.kind == "fma" and loop.begin <= i.offset < loop.end]
        assert len(fmas) == 2 * (1 if loop.name == "group0" else 2)


def test_nested_loops() -> None:
    class Nested:
        isa, name = "avx2", "nested"

        def generate(self, asm: Assembler) -> None:
            rows, columns = asm.gp.take("rows"), asm.gp.take("columns")
            asm.MOV(rows, 3)
            with asm.loop(rows, "rows"):
                asm.MOV(columns, 4)
                with asm.loop(columns, "columns"):
                    asm.align(16)
            asm.ret()

    outer, inner = kernel_of(Nested()).loops  # type: ignore[arg-type]
    assert (outer.name, outer.depth, inner.name, inner.depth) == ("rows", 0, "columns", 1)
    assert outer.begin < inner.begin < inner.end < outer.end


def test_the_register_map() -> None:
    """Purposes of a register do not overlap, lie in the code, and hold wherever an instruction names the register."""
    for spec in (
        tile("avx2"),
        tile("avx512_core"),
        RowsSpec(isa="avx2", rows=3, row_bytes=80, src_step=80, dst_step=80),
    ):
        kernel = kernel_of(spec)
        taken: dict[str, list[tuple[int, int]]] = {}
        for held in kernel.registers:
            assert 0 <= held.begin < held.end <= kernel.code_bytes
            for begin, end in taken.setdefault(held.register, []):
                assert held.end <= begin or end <= held.begin
            taken[held.register].append((held.begin, held.end))
        for instruction in kernel.instructions:
            for reg in instruction.registers:
                assert any(begin <= instruction.offset < end for begin, end in taken[reg]), (instruction.text, reg)


def test_accumulators_are_held_to_the_end() -> None:
    kernel = kernel_of(tile("avx2"))
    held = {h.register: h for h in kernel.registers}
    stores = {i.registers[0]: i for i in kernel.instructions if i.kind == "store" for _ in [0]}
    assert len(stores) == 1  # all are addressed by the same register
    for n in range(12):
        assert held[f"ymm{n}"].purpose == f"acc[{n // 2}][{n % 2}]"
        last = [i for i in kernel.instructions if f"ymm{n}" in i.registers][-1]
        assert held[f"ymm{n}"].end == last.end


def line_of(emit: str, *operands: object) -> Line:
    asm = Assembler("one", listing=True)
    getattr(asm, emit)(*operands)
    listing = asm.finish().listing
    assert listing is not None
    return listing[0]


def test_flops_bytes_and_classes() -> None:
    asm = Assembler("registers")
    a, ymm, zmm = asm.gp.take("a"), asm.vectors(32, 16).take("y"), asm.vectors(32, 16).take("x").zmm
    cases = {
        ("VFMADD231PS", ymm, ymm, mem(a, size=32)): ("fma", 16, 32, 0),
        ("VFMADD231PS", zmm, zmm, mem(a, size=4, broadcast=16)): ("fma", 32, 4, 0),
        ("VFMADD231PD", ymm, ymm, ymm): ("fma", 8, 0, 0),
        ("VADDPS", zmm, zmm, zmm): ("vector", 16, 0, 0),
        ("VADDSS", ymm.xmm, ymm.xmm, mem(a, size=4)): ("vector", 1, 4, 0),
        ("VMOVUPS", ymm, mem(a)): ("load", 0, 32, 0),
        ("VMOVUPS", mem(a), ymm.xmm): ("store", 0, 0, 16),
        ("VMOVAPS", ymm, ymm): ("move", 0, 0, 0),
        ("VBROADCASTSS", ymm, mem(a, size=4)): ("broadcast", 0, 4, 0),
        ("MOV", a, mem(a)): ("load", 0, 8, 0),
        ("MOV", a, a): ("integer", 0, 0, 0),
        ("ADD", mem(a, size=8), a): ("integer", 0, 8, 8),
        ("CMP", mem(a, size=4), 1): ("integer", 0, 4, 0),
        ("LEA", a, mem(a, 8)): ("integer", 0, 0, 0),
        ("PREFETCHT0", mem(a)): ("prefetch", 0, 0, 0),
        ("VPSHUFB", ymm, ymm, mem(a, size=32)): ("shuffle", 0, 32, 0),
        ("VEXTRACTI128", mem(a, size=16), ymm, 1): ("store", 0, 0, 16),
        ("VXORPS", ymm, ymm, ymm): ("vector", 0, 0, 0),
        ("RET",): ("branch", 0, 0, 0),
    }  # fmt: skip
    for (emit, *operands), (kind, flops, loaded, stored) in cases.items():
        detail = line_of(emit, *operands).detail
        assert class_of(*detail[:2]) == kind, emit
        assert flops_of(*detail[:2]) == flops, emit
        assert bytes_of(*detail[:2]) == (loaded, stored), emit


def test_flops_of_a_tap() -> None:
    """2 * pixels * channels out * channels in: as the formula of the tile has it."""
    for isa in ISAS:
        listing, _ = listing_of(tile(isa))
        assert sum(flops_of(*line.detail[:2]) for line in listing) == 2 * 6 * 2 * lanes_of(isa) * 3


def test_roles_have_no_bare_vector_registers() -> None:
    """Every vector register that a kernel names was taken for something."""
    for kernel in explained().kernels:
        for instruction in kernel.instructions:
            assert not re.search(r"[yz]mm\d", instruction.role), instruction
