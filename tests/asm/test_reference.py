"""Names and operands of instructions, as users look them up."""

import re

import pytest

from asmdnn import asm
from asmdnn.errors import InvalidArguments


def test_names_are_found_by_their_beginning() -> None:
    assert asm.instructions("vpshuf") == ["VPSHUFB", "VPSHUFBITQMB", "VPSHUFD", "VPSHUFHW", "VPSHUFLW"]
    assert len(asm.instructions()) > 1500
    assert asm.instructions("NONE") == asm.instructions("LABEL") == []


def test_every_name_has_forms() -> None:
    for name in asm.instructions():
        assert asm.forms(name)
        assert all(re.match(rf"{name}\b", form) for form in asm.forms(name))
    assert asm.forms("LOOPE") == ["LOOPE(label)"]


@pytest.mark.parametrize("name", ["VPSHUFBB", "", 3])
def test_unknown_ones(name: object) -> None:
    with pytest.raises(InvalidArguments, match="no such instruction"):
        asm.forms(name)  # type: ignore[arg-type]
