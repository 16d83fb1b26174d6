"""Kernels under emulation: one call on buffers that have no byte more than what the call may touch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from asmdnn.emulator import Emulator, MemoryRegion, TouchedBytes
from tests.support.arena import Buffer, Bytes

FRAME, CODE, FIRST, STEP = 0x10_0000, 0x7F00_0000_0000, 0x1000_0000, 0x1000_0000
MISALIGNMENT_BYTES = 4 * 13  # of every buffer: elements are aligned, vectors are not
NOWHERE = 0xBAD0_0000_0000_0000  # not canonical: an address that can only be prefetched


@dataclass(frozen=True, eq=False)
class Run:
    """What a call left in each buffer, which of its bytes it touched, and the CPUID features it used."""

    after: dict[str, Bytes]
    footprints: dict[str, TouchedBytes]
    features: frozenset[str]


def emulate(code: bytes, arguments: Sequence[str], buffers: Mapping[str, Buffer | None]) -> Run:
    """Call `code`; raises Violation if it leaves its buffers or breaks the ABI."""
    frame, regions, after = np.full(len(arguments), NOWHERE, np.uint64), [], {}
    for i, name in enumerate(arguments):
        buffer = buffers[name]
        if buffer is not None:
            start, after[name] = FIRST + i * STEP + MISALIGNMENT_BYTES, buffer.before.copy()
            frame[i] = start + buffer.pointer_bytes
            regions.append(MemoryRegion(name, start, after[name], writable=bool(buffer.written.any())))
    machine = Emulator([*regions, MemoryRegion("frame", FRAME, frame.view(np.uint8))], record=True)
    machine.call(code, CODE, FRAME)
    assert machine.footprints is not None
    return Run(after, {name: machine.footprints[name] for name in after}, frozenset(machine.features))
