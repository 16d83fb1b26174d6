"""What a plan from a file must be before anything runs it: of the right types, shapes and ranges.

A checksum says that a file is what was written, not that it makes sense.  This looks at every number once, without the
kernels' footprints, so that it costs a small part of reading the plan; `Plan.check()` proves the rest.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.memory.desc import MAX_BYTES
from asmdnn.planning.plan import Phase, Plan

REACH_BYTES = 1 << 31  # how far from its buffer a pointer may be: kernels address by displacements of 32 bits


class Nonsense(Exception):
    """What is wrong with a plan; whoever reads it says where it came from."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Nonsense(what)


def check_decoded(plan: Plan) -> None:
    """Raise Nonsense unless the executor can walk the plan."""
    require(isinstance(plan.implementation, str), "its implementation has no name")
    require(bool(plan.specs) and bool(plan.phases), "it has no kernels or no phases")
    for spec in plan.specs:
        attributes = ("name", "isa", "generate", "footprint")
        require(all(hasattr(spec, name) for name in attributes), f"{type(spec).__name__} is no kernel")
    check_buffers(plan)
    for number, phase in enumerate(plan.phases):
        check_records(plan, phase, f"phase {number}")
        before = plan.phases[number - 1] if number else None
        require(isinstance(phase.continues, bool), f"phase {number} does not say whether it continues another")
        if phase.continues:
            require(before is not None and len(before.records) == len(phase.records), f"phase {number} continues none")


def check_buffers(plan: Plan) -> None:
    """Tensors have a format, scratch a size, and what is written is a tensor."""
    for name, desc in named(plan.tensors, "tensors"):
        require(isinstance(desc, MemoryDesc) and not desc.is_any, f"tensor {name} has no format")
    for name, size in named(plan.scratch_bytes, "scratch"):
        require(type(size) is int and 0 <= size <= MAX_BYTES, f"scratch {name} has no size")
    for name, array in named(plan.constants, "constants"):
        require(array.dtype == np.int64 and array.ndim == 1, f"constant {name} is no list of int64")
    for names in (plan.outputs, plan.in_place):
        require(all(isinstance(name, str) and name in plan.tensors for name in names), "an output is no tensor")
    require(bool(plan.outputs), "it writes nothing")


def named(table: Mapping[str, Any], what: str) -> list[tuple[str, Any]]:
    require(isinstance(table, dict) and all(isinstance(name, str) for name in table), f"its {what} have no names")
    return list(table.items())


def check_records(plan: Plan, phase: Phase, where: str) -> None:
    """Records of one width for the whole plan, kernels that exist, pointers near their buffers, costs that add up."""
    records, cycles = phase.records, phase.cycles
    width = 1 + len(plan.phases[0].arguments)
    require(all(isinstance(name, str) for name in phase.arguments), f"{where} has arguments without names")
    require(1 + len(phase.arguments) == width, f"{where} has another number of arguments than phase 0")
    require(records.dtype == np.int64 and records.shape == (len(records), width), f"{where} has misshapen records")
    require(cycles.dtype == np.int32 and cycles.shape == (len(records),), f"{where} has misshapen costs")
    if not len(records):
        return
    require(int(cycles.min()) >= 0, f"{where} has negative costs")
    low, high = records.min(axis=0).tolist(), records.max(axis=0).tolist()
    require(low[0] >= 0 and high[0] < len(plan.specs), f"{where} has records of a kernel that does not exist")
    for name, least, most in zip(phase.arguments, low[1:], high[1:], strict=True):
        size = buffer_bytes(plan, name)
        require(least >= -REACH_BYTES and most <= size + REACH_BYTES, f"{where} has records far outside of {name}")


def buffer_bytes(plan: Plan, name: str) -> int:
    """The size; 0 for an argument that the plan's kernels do not have."""
    known = name in plan.tensors or name in plan.constants or name in plan.scratch_bytes
    return plan.buffer_bytes(name) if known else 0
