"""The exercise of the page on kernels: the signatures, instructions and level that it names exist."""

import inspect
import re
from typing import Any

import pytest

from asmdnn.generators.dot.epilogue import TileEpilogue
from asmdnn.generators.dot.prologue import start_tile
from asmdnn.isa.assembler import Assembler
from asmdnn.isa.dot import blocks_of, dot_level
from asmdnn.isa.dot_base import Dot
from asmdnn.isa.levels import isa_of
from tests.docs.following import ROOT

EXERCISE = (ROOT / "docs" / "add-a-kernel.md").read_text().partition("## 6.")[2]
KNOWN: dict[str, Any] = {
    **{x.__name__: x for x in (start_tile, blocks_of, dot_level)},
    **{f"{owner.__name__}.{name}": x for owner in (Dot, TileEpilogue) for name, x in vars(owner).items()},
}
SIGNATURES = re.findall(r"^[|] `([\w.]+)[(](.*?)[)]` [|]", EXERCISE, re.MULTILINE)


@pytest.mark.parametrize(("name", "parameters"), SIGNATURES, ids=[name for name, _ in SIGNATURES])
def test_signatures_exist(name: str, parameters: str) -> None:
    found = [parameter for parameter in inspect.signature(KNOWN[name]).parameters if parameter != "self"]
    assert found == [word for word in parameters.split(", ") if word]


def test_the_exercise_has_start_product_and_end() -> None:
    assert {"start_tile", "Dot.outer_product", "TileEpilogue.finish"} <= {name for name, _ in SIGNATURES}


def test_instructions_and_level_exist() -> None:
    asm = Assembler("exercise")
    instructions = set(re.findall(r"`(T[A-Z0-9]{5,}|LDTILECFG)`", EXERCISE))
    assert len(instructions) == 7
    assert all(callable(getattr(asm, name)) for name in instructions)
    assert {"amx_tile", "amx_bf16", "amx_int8"} <= isa_of("avx512_core_amx").features
