"""Whole plans under emulation: every record in order, each buffer of exactly its size, inputs read-only."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.emulator import Emulator, MemoryRegion
from asmdnn.planning.plan import Plan
from asmdnn.runtime.kernels import generate
from tests.support.arena import POISON, Bytes

FRAME, CODES, FIRST, GAP_BYTES = 0x10_0000, 0x7F00_0000_0000, 0x1000_0000, 1 << 16
KERNEL_STRIDE_BYTES = 1 << 20


def as_bytes(array: npt.NDArray[Any]) -> Bytes:
    return array.reshape(-1).view(np.uint8)


def regions_of(plan: Plan, memories: Mapping[str, dnn.Memory]) -> list[MemoryRegion]:
    """A region for every buffer of the plan; scratch holds poison."""
    arrays = {name: as_bytes(memory.array) for name, memory in memories.items()}
    arrays |= {name: as_bytes(array) for name, array in plan.constants.items()}
    arrays |= {name: as_bytes(np.full(-(-size // 4), POISON)) for name, size in plan.scratch_bytes.items()}
    regions, address = [], FIRST
    for name, array in arrays.items():
        regions.append(MemoryRegion(name, address, array, writable=name in plan.outputs or name in plan.scratch_bytes))
        address += len(array) + GAP_BYTES - len(array) % 64
    return regions


def proved_desc(*request: Any, **options: Any) -> dnn.PrimitiveDesc:
    """As dnn.primitive_desc, and the plan is proved."""
    pd = dnn.primitive_desc(*request, **options)
    pd.plan.check()
    return pd


def execute(pd: dnn.PrimitiveDesc, memories: dict[str, dnn.Memory], emulated: bool = False) -> None:
    """By the CPU, or under emulation."""
    if emulated:
        emulate_plan(pd.plan, memories)
    else:
        dnn.Primitive(pd).execute(**memories)


def emulate_plan(plan: Plan, memories: Mapping[str, dnn.Memory]) -> None:
    """Execute `plan` on `memories`, as one thread would, in one part."""
    frame, regions = np.zeros(plan.arguments, np.int64), regions_of(plan, memories)
    base = {region.name: region.address for region in regions}
    machine = Emulator([*regions, MemoryRegion("frame", FRAME, as_bytes(frame))])
    number = {spec: i for i, spec in enumerate(plan.specs)}
    codes = [generate(spec) for spec in plan.specs]
    for phase in plan.phases:
        bases = [base.get(view.buffer, 0) + view.offset_bytes for view in phase.arguments]
        for kernel, *offsets in phase.written_out().records.tolist()[:: -1 if phase.backwards else 1]:
            frame[: len(bases)] = np.add(bases, offsets)
            code = number[phase.kernels[kernel]]
            machine.call(codes[code], CODES + code * KERNEL_STRIDE_BYTES, FRAME)
