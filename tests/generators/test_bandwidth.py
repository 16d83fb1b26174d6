"""The kernels that ceilings are measured with read and add exactly what they say."""

import numpy as np
import pytest

from asmdnn.emulator import Emulator, MemoryRegion
from asmdnn.explain.classes import bytes_of
from asmdnn.generators.probes.bandwidth import ADDITIONS, BandwidthSpec, ClockSpec
from asmdnn.isa.vectors import lanes_of
from tests.generators.codes import code_of
from tests.generators.reference import LANES

FRAME, CODE, DATA = 0x1000, 0x40_0000, 0x10_0000


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.emulated(isa)) for isa in LANES])
def test_every_byte_is_read_in_every_pass(isa: str) -> None:
    """A buffer of exactly the blocks: one byte further would leave the region, which the emulator refuses."""
    spec = BandwidthSpec(isa=isa)
    block = spec.block_bytes(4 * lanes_of(isa))
    executed = []
    for blocks, passes in ((1, 1), (3, 1), (3, 2)):
        frame = np.array([DATA, blocks, passes], np.int64).view(np.uint8)
        data = MemoryRegion("data", DATA, np.zeros(blocks * block, np.uint8))
        machine = Emulator([MemoryRegion("frame", FRAME, frame), data])
        machine.call(code_of(spec).data, CODE, FRAME)
        executed.append(machine.instructions)
    of_block = executed[1] - executed[0]
    assert of_block == 2 * (16 + 3)  # 16 loads, the step, the loop's two
    listing = code_of(spec).listing
    assert listing is not None
    loads = [bytes_of(*line.detail[:2]) for line in listing if line.role == "block" and "mov" in line.text]
    assert sum(loaded for loaded, _ in loads) == block
    assert all(stored == 0 for _, stored in loads)


def test_additions_wait_for_each_other() -> None:
    listing = code_of(ClockSpec()).listing
    assert listing is not None
    additions = [line.detail.operands for line in listing if line.detail.mnemonic == "ADD"]
    assert len(additions) == ADDITIONS
    assert len(set(additions)) == 1
    assert additions[0][0] is not additions[0][1]
