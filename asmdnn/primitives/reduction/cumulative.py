"""Cumulative sums along an axis: the description, and the plan."""

from collections.abc import Mapping
from dataclasses import dataclass

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.cumulative import CumulativeSumSpec
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import Box, Loop, cut_loop
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import ReductionTuning, Tuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.numbers import check_flag
from asmdnn.primitives.elementwise.schedule import MAX_STEP, ZERO_ISA, check_tensors, phases_of
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import like, of_type
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.nests import Calls, is_dense, nest_of, row_calls, with_last
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.tensors import check_tensor, checked_axis
from asmdnn.types import bf16, f16, f32

NAME = "cumulative_sum"
SRC, DST = range(2)
TYPES = (f32.name, bf16.name, f16.name)  # of src and dst


@dataclass(frozen=True, slots=True)
class CumulativeSum:
    """dst = the sums of src along `axis`, from the first element to each; -1 is the last axis.

    exclusive: without the element itself, so the first is 0.  reverse: from each element to the last one.  src and dst
    have the same dims, in any formats; in place, unless exclusive, if they have one format.
    Source: ONNX's CumSum.  Raises InvalidArguments.
    """

    src: MemoryDesc
    dst: MemoryDesc
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def __post_init__(self) -> None:
        check_tensor("src", self.src)
        check_tensor("dst", self.dst, self.src.dims)
        object.__setattr__(self, "axis", checked_axis(self.axis, self.src))
        for name in ("exclusive", "reverse"):
            check_flag(f"CumulativeSum.{name}", getattr(self, name))

    def __str__(self) -> str:
        words = [f"cumulative sum of {self.src} to {self.dst}, axis {self.axis}"]
        return ", ".join(words + ["exclusive"] * self.exclusive + ["reverse"] * self.reverse)


@implementation(NAME, f32_level)
def plan(desc: CumulativeSum, attr: Attr, engine: Engine) -> Plan:
    """Plan cumulative sums.  Raises Refused."""
    isa, tuning = f32_level(engine.isa), engine.tuning
    if attr.post_ops or attr.quantizes:
        raise Refused("post-ops, scales and zero points are not implemented")
    src = like(desc.dst, desc.src)
    passed = {"src": src, "dst": like(src, desc.dst)}
    check_tensors(passed, "dst", TYPES)
    name = f"{NAME}:{isa}"
    if 0 in src.dims:
        return Assembly(tuning, engine.isa).plan(name, passed, ("dst",))
    tensors: Mapping[str, MemoryDesc] = {name: of_type(tensor, f32) for name, tensor in passed.items()}
    calls = calls_of(desc, tensors, isa, tuning)
    if calls is None:
        tensors = dict.fromkeys(passed, with_last(tensors["src"], (desc.axis,)))
        calls = calls_of(desc, tensors, isa, tuning)
        assert calls is not None, "rows along the axis are dense"
    costs = {spec: cost(spec, tuning.reduction) for spec in dict.fromkeys(spec for spec, *_ in calls)}
    in_place = ("src",) if tensors["src"] == tensors["dst"] and not desc.exclusive else ()
    phases = phases_of(calls, costs, views(tuple(tensors)), tuning.phases)
    return between_reorders(Plan(name, phases, tensors, {}, {}, ("dst",), in_place), passed, tuning)


def calls_of(
    desc: CumulativeSum, tensors: Mapping[str, MemoryDesc], isa: str, tuning: Tuning
) -> Calls[KernelSpec] | None:
    """Kernels, and where they are called; None for formats that no kernel reads."""
    nest = nest_of(tuple(tensors.values()), tensors["dst"].dims, (desc.axis,), DST)
    if nest is None or len(nest.reduced) > 1:
        return None
    axis = nest.row
    calls: Calls[KernelSpec] = []
    if nest.is_row:
        for box, rows, outer in row_calls(nest, axis.extent, tuning.elementwise):
            calls += of_axis(desc, isa, "rows", (box, outer), (rows, axis))
        return calls
    lanes = next((loop for loop in nest.kept if is_dense(loop)), None)
    if lanes is None or axis.extent * max(axis.strides) > MAX_STEP:
        return None
    for box, some in cut_loop(nest.box, lanes, tuning.reduction.lanes):
        outer = tuple(loop for loop in box.loops if loop is not some)
        calls += of_axis(desc, isa, "lanes", (box, outer), (axis, some))
    return calls


def of_axis(
    desc: CumulativeSum, isa: str, along: str, where: tuple[Box, tuple[Loop, ...]], loops: tuple[Loop, Loop]
) -> Calls[KernelSpec]:
    """The calls for a loop over rows and one along them: sums, which without the element itself lie one step further,
    behind zeros."""
    (box, outer), (rows, row) = where, loops
    axis = row if along == "rows" else rows
    src_row_bytes, dst_row_bytes = rows.strides_bytes(f32)

    def sums(rows: int, elements: int) -> CumulativeSumSpec:
        return CumulativeSumSpec(
            isa=isa,
            along=along,
            rows=rows,
            elements=elements,
            src_row_bytes=src_row_bytes,
            dst_row_bytes=dst_row_bytes,
            reverse=desc.reverse,
        )

    if not desc.exclusive:
        return [(sums(rows.extent, row.extent), box, outer)]
    one = (rows.extent, 1) if along == "rows" else (1, row.extent)
    first = axis.extent - 1 if desc.reverse else 0
    zeros = RowsSpec(ZERO_ISA, one[0], f32.size_bytes * one[1], 0, dst_row_bytes, zero=True)
    calls: Calls[KernelSpec] = [(zeros, moved(box, (0, first * axis.strides[DST])), outer)]
    if axis.extent > 1:
        less = (rows.extent, row.extent - 1) if along == "rows" else (rows.extent - 1, row.extent)
        further = (axis.strides[SRC], 0) if desc.reverse else (0, axis.strides[DST])
        calls.append((sums(*less), moved(box, further), outer))
    return calls


def moved(box: Box, steps: tuple[int, int]) -> Box:
    return Box(tuple(at + step for at, step in zip(box.starts, steps, strict=True)), box.loops, box.padding)


def cost(spec: KernelSpec, tuning: ReductionTuning) -> int:
    """Expected cycles."""
    if isinstance(spec, RowsSpec):
        return tuning.call_cycles + spec.rows
    assert isinstance(spec, CumulativeSumSpec)
    vectors = -(-spec.elements // lanes_of(spec.isa))
    return tuning.call_cycles + spec.rows * (tuning.row_cycles + tuning.sum_cycles * vectors)
