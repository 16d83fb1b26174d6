"""Machine code of corpus specs, generated once a run."""

from functools import cache

import pytest

from asmdnn.corpus.families import Spec
from asmdnn.isa.assembler import Assembler, Code


@cache
def code_of(spec: Spec) -> Code:
    """With a listing, which does not change the bytes (the determinism test says so)."""
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    return asm.finish()


def by_name(specs: tuple[Spec, ...], mark: str = "") -> pytest.MarkDecorator:
    """A test for each spec, marked `isa` (it needs that CPU) or `emulated`."""
    marks = {spec: [getattr(pytest.mark, mark)(spec.isa)] if mark else [] for spec in specs}  # type: ignore[union-attr]
    return pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name, marks=marks[spec]) for spec in specs])
