"""A plan between reorders: for formats that its kernels do not address, and for dims that they do not repeat.

A phase in front copies such a tensor into scratch in the format that the plan reads, and one behind brings results
into the caller's format.
"""

from collections.abc import Container, Mapping
from dataclasses import replace

from asmdnn.memory import MemoryDesc
from asmdnn.planning.phase import Phase, View, of_one_width
from asmdnn.planning.plan import Plan
from asmdnn.primitives.formats import row_major
from asmdnn.primitives.reorder.schedule import reorder_phases

WORD = "reorder"  # in the implementation's name


def between_reorders(plan: Plan, passed: Mapping[str, MemoryDesc], reads: Container[str] = ()) -> Plan:
    """`plan` for a caller who passes some tensors as `passed` describes them.

    A dim of 1 of an input is repeated where the plan has more.  `reads` names the outputs of which the plan reads what
    they held before.  The plan itself if it takes all tensors as they are passed.
    """
    apart = {name: desc for name, desc in passed.items() if desc != plan.tensors[name]}
    if not apart:
        return plan
    copies = Copies()
    inputs = [name for name in apart if name not in plan.outputs or name in reads]
    for name in inputs:
        copies.bring(name, apart[name], copy_of(name), plan.tensors[name])
    copies.add_plan(plan, apart)
    outputs = [name for name in apart if name in plan.outputs]
    for name in outputs:
        copies.reorder(copy_of(name), plan.tensors[name], name, apart[name])
    scratch = {copy_of(name): plan.tensors[name].size_bytes for name in apart}
    return replace(
        plan,
        implementation=f"{WORD}+{plan.implementation}",
        phases=of_one_width(copies.phases),
        tensors={**plan.tensors, **apart},
        scratch_bytes={**plan.scratch_bytes, **scratch, **copies.scratch},
        in_place=() if outputs else tuple(name for name in plan.in_place if name not in apart),
    )


def copy_of(name: str) -> str:
    """The scratch buffer of a copy."""
    return f"copy of {name}"


class Copies:
    """Phases and scratch as they come together."""

    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.scratch: dict[str, int] = {}

    def bring(self, source: str, src: MemoryDesc, target: str, dst: MemoryDesc) -> None:
        """`source` into the format of the scratch `target`, which may have more of what is 1 in src."""
        if src.dims != dst.dims and src.inner_blocks:  # a block cannot be repeated, so it becomes plain first
            plain, buffer = row_major(src.dims, src), f"plain {source}"
            self.scratch[buffer] = plain.size_bytes
            self.reorder(source, src, buffer, plain)
            source, src = buffer, plain
        self.reorder(source, repeated(src, dst.dims), target, dst)

    def reorder(self, source: str, src: MemoryDesc, target: str, dst: MemoryDesc) -> None:
        self.phases += reorder_phases(src, dst, (source, target))

    def add_plan(self, plan: Plan, apart: Container[str]) -> None:
        """The phases of a plan, with copies of the tensors `apart`."""
        places = {name: View(copy_of(name)) for name in plan.tensors if name in apart}
        self.phases += [phase.on(places) for phase in plan.phases]


def repeated(desc: MemoryDesc, dims: tuple[int, ...]) -> MemoryDesc:
    """A plain tensor with its dims of 1 repeated up to `dims`."""
    if desc.dims == dims:
        return desc
    strides = [stride if n == m else 0 for stride, n, m in zip(desc.strides, desc.dims, dims, strict=True)]
    return MemoryDesc(dims, desc.dtype, strides=strides, offset0=desc.offset0)
