"""What the page on kernels says about tiles: the signatures, instructions and level that it names exist."""

import inspect
import re
from typing import Any

import pytest

from asmdnn.generators.dot.amx_rows import Finish
from asmdnn.generators.dot.tile_products import TileProducts
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.dot import OFFERED
from asmdnn.isa.levels import isa_of
from asmdnn.isa.tiles import configured, multiply_tiles, tile_level, tile_product
from tests.docs.following import ROOT

SECTION = (ROOT / "docs" / "add-a-kernel.md").read_text().partition("## 6.")[2]
KNOWN: dict[str, Any] = {
    **{x.__name__: x for x in (configured, multiply_tiles, tile_level)},
    **{f"{kind.__name__}.{name}": x for kind in (Finish, TileProducts) for name, x in vars(kind).items()},
}
SIGNATURES = re.findall(r"^[|] `([\w.]+)[(](.*?)[)]` [|]", SECTION, re.MULTILINE)


@pytest.mark.parametrize(("name", "parameters"), SIGNATURES, ids=[name for name, _ in SIGNATURES])
def test_signatures_exist(name: str, parameters: str) -> None:
    found = [parameter for parameter in inspect.signature(KNOWN[name]).parameters if parameter != "self"]
    assert found == [word for word in parameters.split(", ") if word]


def test_all_of_them_are_named() -> None:
    assert {name for name, _ in SIGNATURES} == {
        "configured", "multiply_tiles", "tile_level", "Finish.start", "Finish.row", "TileProducts.added",
    }  # fmt: skip


def test_instructions_and_level_exist() -> None:
    asm = Assembler("tiles")
    instructions = set(re.findall(r"`(T[A-Z0-9]{5,}|LDTILECFG)`", SECTION))
    products = {tile_product(types) for types in OFFERED} - {""}
    assert len(products) == 3 and products <= instructions
    assert all(callable(getattr(asm, name)) for name in instructions)
    assert {"amx_tile", "amx_bf16", "amx_int8"} <= isa_of("avx512_core_amx").features
