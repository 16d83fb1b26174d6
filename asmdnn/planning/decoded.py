"""Checks of a plan from a file before anything runs it: types, shapes and ranges.

A checksum says that a file is what was written, not that it makes sense.  This looks at every number once, without the
kernels' footprints, so that it costs a small part of reading the plan; `Plan.check()` proves the rest.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.memory.layout import MAX_BYTES
from asmdnn.planning.phase import FLAGS, NOTHING, Phase, View
from asmdnn.planning.plan import Plan

MOST_ROUNDS = 1 << 24  # of a phase: each takes some words when a program is made
REACH_BYTES = 1 << 31  # how far from its buffer a pointer may be: kernels address by displacements of 32 bits


class Nonsense(Exception):
    """A defect of a plan; the reader of the file adds where it came from."""


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Nonsense(what)


def check_decoded(plan: Plan) -> None:
    """Raise Nonsense unless the executor can walk the plan."""
    require(isinstance(plan.implementation, str), "its implementation has no name")
    writes = any(plan.tensors[name].nelems() for name in plan.outputs)  # else there may be nothing to be done
    require(not writes or (bool(plan.specs) and bool(plan.phases)), "it has no kernels or no phases")
    for spec in plan.specs:
        attributes = ("name", "isa", "generate", "footprint")
        require(all(hasattr(spec, name) for name in attributes), f"{type(spec).__name__} is no kernel")
    check_buffers(plan)
    for number, phase in enumerate(plan.phases):
        check_records(plan, phase, f"phase {number}")
        before = plan.phases[number - 1] if number else None
        flags = [getattr(phase, flag) for flag in FLAGS]
        require(all(isinstance(flag, bool) for flag in flags), f"phase {number} does not say how it is run")
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
    for names in (plan.outputs, *plan.in_place):
        require(all(isinstance(name, str) and name in plan.tensors for name in names), "an output is no tensor")
    pairs = all(len(pair) == 2 and pair[0] not in plan.outputs and pair[1] in plan.outputs for pair in plan.in_place)
    alike = pairs and all(plan.tensors[x] == plan.tensors[y] for x, y in plan.in_place)
    require(alike, "an input that may be memory of an output lies otherwise")
    require(bool(plan.outputs), "it writes nothing")


def named(table: Mapping[str, Any], what: str) -> list[tuple[str, Any]]:
    require(isinstance(table, Mapping) and all(isinstance(name, str) for name in table), f"its {what} have no names")
    return list(table.items())


def check_records(plan: Plan, phase: Phase, where: str) -> None:
    """Records of the phase's arguments, kernels that exist, pointers near their buffers, costs that add up."""
    records, cycles = phase.records, phase.cycles
    width = 1 + len(phase.arguments)
    for view in phase.arguments:
        check_view(plan, view, where)
    require(records.dtype == np.int64 and records.shape == (len(records), width), f"{where} has misshapen records")
    require(cycles.dtype == np.int32 and cycles.shape == (len(records),), f"{where} has misshapen costs")
    if not len(records):
        return
    require(int(cycles.min()) >= 0, f"{where} has negative costs")
    low, high = records.min(axis=0).tolist(), records.max(axis=0).tolist()
    require(low[0] >= 0 and high[0] < len(phase.kernels), f"{where} has records of a kernel that does not exist")
    check_rounds(phase, where)
    for i, view in enumerate(phase.arguments):
        moves = [(times - 1) * strides[i] for times, strides in phase.repeats]
        least = low[1 + i] + view.offset_bytes + sum(move for move in moves if move < 0)
        most = high[1 + i] + view.offset_bytes + sum(move for move in moves if move > 0)
        size = 0 if view == NOTHING else plan.buffer_bytes(view.buffer)
        is_near = least >= -REACH_BYTES and most <= size + REACH_BYTES
        require(is_near, f"{where} has records far outside of {view.buffer}")


def check_rounds(phase: Phase, where: str) -> None:
    """Few enough rounds to lay out, and groups that are ranges of records."""
    for times, strides in phase.repeats:
        integers = all(type(x) is int for x in (times, *strides))
        require(integers and times > 0 and len(strides) == len(phase.arguments), f"{where} has misshapen rounds")
    require(phase.rounds <= MOST_ROUNDS, f"{where} has {phase.rounds} rounds")
    groups = phase.groups
    if groups is not None:
        is_list = groups.dtype == np.int64 and groups.ndim == 1 and len(groups) > 1
        require(is_list and bool((np.diff(groups) > 0).all()), f"{where} has misshapen groups")
        require((groups[0], groups[-1]) == (0, len(phase.records)), f"{where} has groups of other records")


def check_view(plan: Plan, view: View, where: str) -> None:
    """A part of a buffer that exists, or NOTHING."""
    sizes = (view.offset_bytes, 0 if view.size_bytes is None else view.size_bytes)
    require(isinstance(view.buffer, str) and all(type(x) is int for x in sizes), f"{where} has arguments without names")
    known = view.buffer in plan.tensors or view.buffer in plan.constants or view.buffer in plan.scratch_bytes
    require(known or view == NOTHING, f"{where} has an argument of no buffer")
    end = view.offset_bytes + (view.size_bytes or 0)
    require(
        view == NOTHING or 0 <= view.offset_bytes <= end <= plan.buffer_bytes(view.buffer), f"{where} leaves a buffer"
    )
