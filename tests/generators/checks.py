"""What is asserted of a kernel on an emulated CPU."""

from functools import cache

import numpy as np

from asmdnn.generators.contract import KernelSpec
from tests.generators.cases import case_of
from tests.generators.codes import code_of
from tests.support.arena import Bits
from tests.support.emulation import Run, emulate
from tests.support.footprints import claim_of


@cache
def run_of(spec: KernelSpec, integers: bool = True) -> Run:
    """Of the case of that spec; a Violation is the caller's failure."""
    return emulate(code_of(spec).data, spec.frame, case_of(spec, integers).buffers)


def check_results(spec: KernelSpec, integers: bool) -> None:
    """Equal on integers, of which all sums are exact; within the bound on real numbers."""
    case_of(spec, integers).check(run_of(spec, integers).after)


def check_footprint(spec: KernelSpec) -> None:
    """What the spec claims, what the reference touches and what the code touches are the same bytes."""
    case, run = case_of(spec), run_of(spec)
    claim = claim_of(spec.footprint(), spec.frame, case.buffers, case.taps)
    for name, buffer in case.buffers.items():
        if buffer is None:
            continue
        touched = run.footprints[name]
        # Sums of a matrix-vector product lie in dst between passes; before the first one dst is poison, which shows.
        done_reads = touched.read & ~touched.written if spec.footprint().rereads else touched.read
        for side, contract, claimed, done in (
            ("reads", buffer.read, claim[name][0], done_reads),
            ("writes", buffer.written, claim[name][1], touched.written),
        ):
            wide = claimed & contract if name in case.partly else claimed
            assert not difference(contract, wide), f"footprint() {side} of {name} {difference(contract, wide)}"
            assert not difference(contract, done), f"the code {side} {name} {difference(contract, done)}"


def difference(wanted: Bits, found: Bits) -> str:
    """The first bytes, from the buffer's start, that are not in both; "" if all are."""
    missing, extra = np.flatnonzero(wanted & ~found)[:8], np.flatnonzero(found & ~wanted)[:8]
    return f"without bytes {missing.tolist()}, and bytes {extra.tolist()} too" if len(missing) + len(extra) else ""
