"""Every kernel of the corpus, of every level, on an emulated CPU: results, and each byte that is touched.

Buffers begin and end with what the reference touches, so that one byte further is a Violation; so is what breaks the
ABI: a callee-saved register, rsp, the direction flag, upper halves left dirty.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from asmdnn.corpus.conv import CONV_LEVELS, ends, tails
from asmdnn.corpus.families import kernel_specs
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.conv import ConvTileSpec
from tests.generators.cases import case_of
from tests.generators.checks import check_footprint, check_results
from tests.generators.codes import by_name, code_of
from tests.generators.random_tiles import tiles
from tests.generators.references.conv import padding_of_dst
from tests.support.arena import DST_POISON
from tests.support.emulation import emulate

CONVOLUTIONS = tuple(spec for spec in kernel_specs() if isinstance(spec, ConvTileSpec))
PADDED = tuple(spec for isa in CONV_LEVELS for spec in tails(isa) if padding_of_dst(spec))
ENDS = tuple(spec for isa in CONV_LEVELS for spec in ends(isa))


@by_name(kernel_specs(), "emulated")
def test_results_and_footprint(spec: KernelSpec) -> None:
    check_results(spec, integers=True)
    check_footprint(spec)


@by_name(CONVOLUTIONS, "emulated")
@pytest.mark.one_in(5)
def test_results_on_real_numbers(spec: ConvTileSpec) -> None:
    check_results(spec, integers=False)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(spec=tiles())
def test_random_tiles(spec: ConvTileSpec) -> None:
    check_results(spec, integers=True)
    check_footprint(spec)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(spec=tiles())
def test_many_random_tiles(spec: ConvTileSpec) -> None:
    check_results(spec, integers=True)
    check_footprint(spec)


@by_name((*PADDED, *ENDS), "emulated")
def test_nan_stays_and_padding_is_zero_whatever_the_source_holds(spec: ConvTileSpec) -> None:
    """NaN times the zero weights of the padding is NaN, and relu must not hide it elsewhere."""
    buffers = dict(case_of(spec).buffers)
    src, dst = buffers["src"], buffers["dst"]
    assert src is not None and dst is not None
    nothing = np.full(len(src.before) // 4, np.nan, np.float32).view(np.uint8)
    after = emulate(code_of(spec).data, spec.frame, {**buffers, "src": replace(src, before=nothing)}).after
    stored = after["dst"].view(np.float32)
    padding = [(dst.pointer_bytes + at) // 4 for _, at in padding_of_dst(spec)]
    real = dst.written[::4].copy()
    real[padding] = False
    assert not stored[padding].any()
    assert np.isnan(stored[real]).all() and (stored[real].view(np.uint32) != DST_POISON).all()
