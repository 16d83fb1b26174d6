"""Machine code of corpus specs, generated once a run."""

from functools import cache

import pytest

from asmdnn.corpus.families import families, kernel_specs
from asmdnn.generators.contract import Spec
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.isa.assembler import Assembler, Code
from asmdnn.isa.dot import F32

EVERY = 17  # blocks of a conversion come in thirteens, and units of no transpose in seventeens: all kinds are met


def kind_of(spec: Spec) -> tuple[str, ...]:
    """What it does, of whatever types, sizes and level: the words of its name without numbers."""
    return type(spec).__name__, *(word for word in spec.name.partition("__")[0].split("_") if word.isalpha())


@cache
def exhaustive() -> frozenset[Spec]:
    """What waits until there is time, all but f32 convolutions: of thousands every seventeenth, and the first of each
    kind that is not among these, show most mistakes."""
    others = [spec for spec in kernel_specs() if not (isinstance(spec, ConvTileSpec) and spec.types == F32)]
    few = others[::EVERY]
    first = {kind_of(spec): spec for spec in reversed(others)}
    return frozenset(others) - {*few, *(first[kind] for kind in first.keys() - set(map(kind_of, few)))}


@cache
def code_of(spec: Spec) -> Code:
    """With a listing, which does not change the bytes (the determinism test says so)."""
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    return asm.finish()


def by_family() -> pytest.MarkDecorator:
    """A test for each family, of its specs but for the exhaustive ones; and a `slow` one of all."""
    found = []
    for name, specs in families().items():
        isa = pytest.mark.isa(specs[0].isa)
        few = tuple(spec for spec in specs if spec not in exhaustive())
        found.append(pytest.param(few, id=name, marks=isa))
        if few != specs:
            found.append(pytest.param(specs, id=f"{name}-all", marks=[isa, pytest.mark.slow]))
    return pytest.mark.parametrize("specs", found)


def by_name(specs: tuple[Spec, ...], mark: str = "") -> pytest.MarkDecorator:
    """A test for each spec, marked `isa` (it needs that CPU) or `emulated`, and `slow` if it is an exhaustive one."""
    marks = {spec: [getattr(pytest.mark, mark)(spec.isa)] if mark else [] for spec in specs}  # type: ignore[union-attr]
    for spec in exhaustive() & marks.keys():
        marks[spec].append(pytest.mark.slow(times=10))
    return pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name, marks=marks[spec]) for spec in specs])
