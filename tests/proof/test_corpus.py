"""No false alarm: every kernel of the corpus is proved, and its footprint claims nothing more than it has to."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest

from asmdnn.corpus.families import corpus
from asmdnn.generators.contract import Spec
from asmdnn.generators.functions.topk import TopKSpec
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.isa.elements import native_element
from asmdnn.isa.levels import ANY_CPU
from asmdnn.proof.contracts import contract_of, kernel_of
from asmdnn.proof.kernel import Kernel
from asmdnn.proof.prove import prove
from tests.generators.codes import code_of


def check(specs: Sequence[Spec]) -> None:
    """With the bounds of every access: none is left to its argument alone.

    But for the k best along rows: a row with a NaN is gone through twice, and where the two ways meet the proof knows
    the moved pointers by their arguments alone.  So it is where VCVTNE2PS2BF16 converts: vectors with a subnormal
    number are rounded elsewhere, and come back.
    """
    for spec in specs:
        unbounded = prove(Kernel(spec.name, contract_of(spec), code_of(spec)))
        assert unbounded == 0 or has_two_ways(spec), spec.name


def has_two_ways(spec: Spec) -> bool:
    if isinstance(spec, ConvertSpec):
        return native_element(spec.conversion.dst, spec.isa).narrows_pairs
    return isinstance(spec, TopKSpec) and spec.along == "rows"


def test_much_of_the_corpus_is_proved() -> None:
    check(corpus()[::32])


def test_a_kernel_of_each_form_is_proved() -> None:
    """One for each family, level, and combination of what is a word or a switch in its spec."""
    found = dict[tuple[Any, ...], Spec]()
    for spec in corpus():
        values = ((field.name, getattr(spec, field.name)) for field in fields(type(spec)))  # type: ignore[arg-type]
        words = tuple((name, value) for name, value in values if isinstance(value, bool | str | None))
        found.setdefault((type(spec), words), spec)
    assert len(found) > 400
    check([*found.values()])


@pytest.mark.slow
def test_more_of_the_corpus_is_proved(sweep: Any) -> None:
    check(sweep(corpus(), 20))


def test_the_decoder_sees_all_instructions() -> None:
    for spec in corpus()[::50]:
        kernel = kernel_of(spec)
        assert kernel.code.listing is not None
        assert list(kernel.steps) == [line.offset for line in kernel.code.listing]


@pytest.mark.parametrize("spec", [s for s in corpus() if s.isa != ANY_CPU][::97], ids=lambda spec: spec.name)
def test_contracts(spec: Spec) -> None:
    contract = contract_of(spec)
    assert contract.level is not None and contract.level.name == spec.isa
    assert not contract.calls
