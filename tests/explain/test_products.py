"""Operations of products: every instruction that multiplies is counted, with all elements of its groups."""

import re
from pathlib import Path

import pytest

import asmdnn
from asmdnn.explain.classes import class_of, flops_of
from asmdnn.isa import nibbles
from asmdnn.isa.assembler import Assembler, Line
from asmdnn.isa.dot import DOTS, Types
from asmdnn.isa.levels import Isa
from asmdnn.isa.rows_in_lanes import ROWS, rows_in_lanes
from asmdnn.isa.tiles import TILE_COLUMNS, TILE_GROUPS, TILE_ROWS, tile_product
from asmdnn.isa.vectors import vector_of

NO_PRODUCTS = {"VPMULUDQ"}  # of random numbers
MULTIPLIES = re.compile(r"\basm\.(V(?:FN?M(?:ADD|SUB)|P?MUL|PMADD|P?DP)[A-Z0-9_]*)\(")


def lines_of(asm: Assembler) -> list[Line]:
    asm.ret()
    listing = asm.finish().listing
    assert listing is not None
    return listing


def flops(asm: Assembler) -> int:
    return sum(flops_of(*line.detail[:2]) for line in lines_of(asm))


@pytest.mark.parametrize(("types", "isa"), DOTS, ids=str)
def test_every_dot_product(types: Types, isa: Isa) -> None:
    """Two operations for each element of the groups of all lanes."""
    asm = Assembler("dot", listing=True)
    v = vector_of(isa.name, asm)
    dot = DOTS[types, isa](types, v)
    acc, spare = v.registers.take("acc"), v.registers.take("spare")
    copy, row = v.registers.take("copy", dot.copy_registers), v.registers.take("row", dot.row_registers)
    dot.accumulate(acc, copy, row, spare)
    assert flops(asm) == 2 * types.group * v.lanes


@pytest.mark.parametrize("isa", nibbles.DOTS, ids=str)
def test_every_product_of_nibbles(isa: Isa) -> None:
    asm = Assembler("nibbles", listing=True)
    v = vector_of(isa.name, asm)
    dot = nibbles.DOTS[isa](v)
    dot.multiply(*v.registers.take("x", 4))
    assert flops(asm) == 2 * 4 * v.lanes


@pytest.mark.parametrize(("types", "isa"), [of for of, dot in DOTS.items() if dot in ROWS], ids=str)
def test_every_product_of_rows_in_lanes(types: Types, isa: Isa) -> None:
    asm = Assembler("rows", listing=True)
    v = vector_of(isa.name, asm)
    found = rows_in_lanes(types, isa.name)
    assert found is not None
    rows = found(types, v)
    acc, source, weights, *spare = v.registers.take("x", 6)
    rows.multiply(acc, source, weights, spare)
    assert flops(asm) == 2 * rows.rows * v.lanes


@pytest.mark.parametrize("types", [of for of in dict.fromkeys(of for of, _ in DOTS) if tile_product(of)], ids=str)
def test_every_product_of_tiles(types: Types) -> None:
    """Of whole tiles."""
    asm = Assembler("tiles", listing=True)
    getattr(asm, tile_product(types))(*asm.tiles.take("x", 3))
    assert flops(asm) == 2 * types.group * TILE_ROWS * TILE_GROUPS * TILE_COLUMNS


def emitted() -> list[str]:
    """The multiplying instructions of vectors that the library's own files name."""
    package = Path(asmdnn.__file__).parent
    files = [path for folder in ("isa", "generators") for path in (package / folder).rglob("*.py")]
    named = {name for path in files for name in MULTIPLIES.findall(path.read_text())}
    return sorted(named - NO_PRODUCTS)


def test_no_multiplying_instruction_is_forgotten() -> None:
    names = emitted()
    assert {"VPMADDWD", "VPMADDUBSW", "VPDPBUSD", "VDPBF16PS", "VFMADD231PS", "VPMULLD"} <= set(names)
    for name in names:
        asm = Assembler("one", listing=True)
        getattr(asm, name)(*vector_of("avx2", asm).registers.take("x", 3))
        (line, *_) = lines_of(asm)
        assert flops_of(*line.detail[:2]), name
        if not name.startswith("VPMUL"):
            assert class_of(*line.detail[:2]) in ("fma", "vector"), name
