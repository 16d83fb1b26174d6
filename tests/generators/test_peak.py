"""The peak kernels do as many multiply-adds as they say: the ceilings that all results are compared with."""

import numpy as np
import pytest

from asmdnn.corpus.families import dot_peaks
from asmdnn.emulator import Emulator, MemoryRegion
from asmdnn.explain.classes import flops_of
from asmdnn.generators.probes.peak import PeakSpec
from asmdnn.isa.levels import isa_of
from tests.generators.codes import code_of
from tests.generators.reference import LANES

FRAME, CODE = 0x1000, 0x40_0000


def executed(spec: PeakSpec) -> list[int]:
    """Instructions of 1, 2 and 7 passes."""
    found = []
    for passes in (1, 2, 7):
        machine = Emulator([MemoryRegion("frame", FRAME, np.array([passes], np.int64).view(np.uint8))])
        machine.call(code_of(spec).data, CODE, FRAME)
        found.append(machine.instructions)
    return found


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.emulated(isa)) for isa in LANES])
def test_passes(isa: str) -> None:
    """Per pass its multiply-adds, and the two instructions of the loop."""
    spec = PeakSpec(isa=isa)
    multiply_adds = spec.flops // (2 * LANES[isa])
    assert np.diff(executed(spec)).tolist() == [multiply_adds + 2, 5 * (multiply_adds + 2)]
    listing = code_of(spec).listing
    assert listing is not None
    assert sum("vfmadd231ps" in line.text for line in listing) == multiply_adds >= 10


# By their definitions: multiplies and additions of one instruction, and the instructions of a chain in a pass.
@pytest.mark.parametrize(
    ("instruction", "bytes_of_sums", "ops_of_sum", "steps"),
    [
        ("VPMADDWD", None, 4, 2),
        ("VPMADDUBSW", None, 4, 1),
        ("VPMULLD", None, 2, 2),
        ("VPDPBUSD_VEX", 32, 8, 1),
        ("VPDPBUSD", 64, 8, 1),
        ("VDPBF16PS", 64, 4, 1),
        ("VFMADD231PH", 64, 4, 1),
        ("TDPBF16PS", 1024, 64, 1),
        ("TDPBUSD", 1024, 128, 1),
        ("TDPBSSD", 1024, 128, 1),
    ],
)
def test_of_dot_products(instruction: str, bytes_of_sums: int | None, ops_of_sum: int, steps: int) -> None:
    specs = [spec for spec in dot_peaks() if spec.instruction == instruction]
    assert specs
    for spec in specs:
        sums = (bytes_of_sums or isa_of(spec.isa).vector_bytes) // 4
        chains, rest = divmod(spec.flops, sums * ops_of_sum)
        assert (chains, rest) == (4 if instruction.startswith("TDP") else 12, 0)
        assert np.diff(executed(spec)).tolist() == [steps * chains + 2, 5 * (steps * chains + 2)]
        listing = code_of(spec).listing
        assert listing is not None
        assert sum(line.detail.mnemonic == instruction for line in listing) == chains
        assert sum(flops_of(*line.detail[:2]) for line in listing) == spec.flops
