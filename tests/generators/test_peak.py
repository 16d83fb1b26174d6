"""The peak kernel does as many multiply-adds as it says: the ceiling that all results are compared with."""

import numpy as np
import pytest

from asmdnn.emulator import Emulator, MemoryRegion
from asmdnn.generators.probes.peak import PeakSpec
from tests.generators.codes import code_of
from tests.generators.reference import LANES

FRAME, CODE = 0x1000, 0x40_0000


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.emulated(isa)) for isa in LANES])
def test_passes(isa: str) -> None:
    """Per pass its multiply-adds, and the two instructions of the loop."""
    spec = PeakSpec(isa=isa)
    executed = []
    for passes in (1, 2, 7):
        machine = Emulator([MemoryRegion("frame", FRAME, np.array([passes], np.int64).view(np.uint8))])
        machine.call(code_of(spec).data, CODE, FRAME)
        executed.append(machine.instructions)
    multiply_adds = spec.flops // (2 * LANES[isa])
    assert np.diff(executed).tolist() == [multiply_adds + 2, 5 * (multiply_adds + 2)]
    listing = code_of(spec).listing
    assert listing is not None
    assert sum("vfmadd231ps" in line.text for line in listing) == multiply_adds >= 10
