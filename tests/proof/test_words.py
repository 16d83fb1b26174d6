"""Kernels of one code, which read other numbers: rules that do not depend on these are proved once."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from asmdnn.generators.contract import KernelWords
from asmdnn.jit.digests import code_text
from asmdnn.proof.contracts import kernel_of
from asmdnn.proof.kernel import BrokenRule, Kernel
from asmdnn.proof.prove import prove, prove_words
from tests.proof.test_mutants import DISTANCE, HEIGHT, ROWS

FURTHER = [replace(ROWS, dst_row_bytes=ROWS.dst_row_bytes + more, src_row_bytes=ROWS.src_row_bytes + more)
           for more in (64, 4096, 1 << 30)]  # fmt: skip


def proved() -> Kernel:
    kernel = kernel_of(ROWS)
    prove(kernel)
    return kernel


def test_one_code_is_held_to_the_footprints_of_all_numbers_that_it_reads() -> None:
    assert {code_text(spec) for spec in FURTHER} == {code_text(ROWS)}
    assert len({spec.footprint() for spec in FURTHER}) == len(FURTHER)
    assert prove_words(proved(), FURTHER) == 0


@pytest.mark.parametrize(("place", "more"), [(DISTANCE, 32), (DISTANCE, -32), (HEIGHT, 1)])
def test_a_footprint_of_other_numbers_is_refused(place: int, more: int) -> None:
    """Also where it is the last of many."""
    with pytest.raises(BrokenRule) as broken:
        prove_words(proved(), [*FURTHER, lying(FURTHER[-1], place, more)])
    assert broken.value.violation.rule == "footprint"


def lying(spec: Any, place: int, more: int) -> Any:
    """One whose kernel reads another number than its footprint is of."""
    footprint = spec.footprint()
    values = [*footprint.words.values]
    values[place] += more
    other = replace(footprint, words=KernelWords(footprint.words.argument, tuple(values)))
    return SimpleNamespace(isa=spec.isa, name=spec.name, frame=spec.frame, footprint=lambda: other)
