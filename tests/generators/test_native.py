"""Every kernel of the corpus that this machine can execute, on buffers that end, then start, at an unmapped page.

What a call may not write is a read-only page, what it may only prefetch is an unmapped one.
"""

import numpy as np
import pytest

from asmdnn.corpus.families import kernel_specs
from asmdnn.generators.contract import KernelSpec
from tests.generators.cases import case_of
from tests.generators.codes import by_family, by_name, code_of, exhaustive
from tests.support.emulation import emulate
from tests.support.native import Kernel, call_guarded, first_failure


def check_guarded(spec: KernelSpec, at_end: bool) -> None:
    kernel = Kernel(code_of(spec).data)
    for case in {case_of(spec, integers) for integers in (True, False)}:
        case.check(call_guarded(kernel, spec.frame, case.buffers, at_end))


@pytest.mark.parametrize("at_end", [True, False], ids=["epilogue", "starting"])
@by_family()
def test_guard_pages(specs: tuple[KernelSpec, ...], at_end: bool) -> None:
    failure = first_failure(len(specs), lambda i: check_guarded(specs[i], at_end))
    assert failure is None, f"{specs[failure[0]]}: {failure[1]}"


@by_name(tuple(spec for spec in kernel_specs() if spec not in exhaustive())[::7], "isa")
def test_emulation_agrees(spec: KernelSpec) -> None:
    """Bit by bit on real numbers: what an emulated level shows is what a CPU would show."""
    case = case_of(spec, integers=False)
    emulated = emulate(code_of(spec).data, spec.frame, case.buffers).after
    native = call_guarded(Kernel(code_of(spec).data), spec.frame, case.buffers, at_end=True)
    for name, data in emulated.items():
        assert np.array_equal(data, native[name])
