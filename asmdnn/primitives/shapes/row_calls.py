"""Calls of kernels that work along rows of tensors of one shape, and their phases."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.postops import Operand
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.memory import MemoryDesc
from asmdnn.planning.calls import Call
from asmdnn.planning.calls import phases_of as records_of_calls
from asmdnn.planning.loops import NEAR_STEP, Box, Loop, cut_in_few_sizes
from asmdnn.planning.move_tuning import ElementwiseTuning
from asmdnn.planning.phase import Phase, View
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import PhaseTuning
from asmdnn.primitives.shapes.nests import Nest
from asmdnn.types import DataType, f32

AnySpec = TypeVar("AnySpec", bound=KernelSpec)
Calls = list[tuple[AnySpec, Box, tuple[Loop, ...]]]


def row_calls(
    nest: Nest, elements: int, tuning: ElementwiseTuning, element_bytes: int = f32.size_bytes
) -> Iterator[tuple[Box, Loop, tuple[Loop, ...]]]:
    """Calls of kernels for some rows of so many elements: the box, the loop of the rows, and the loops outside.

    The rows are the longest of the loops that are kept, in parts of a record.  element_bytes: of the largest type that
    rows are read or written in.  Raises Refused for rows that code cannot count in 32 bits of bytes.
    """
    check_row(elements, element_bytes)
    others = (loop for loop in nest.kept if max(loop.strides) <= NEAR_STEP)
    rows = max(others, key=lambda x: x.extent, default=Loop(1, (0,) * len(nest.starts)))
    most = max(1, min(tuning.most_rows, tuning.record_elements // elements))
    for box, some in cut_in_few_sizes(nest.box, rows, most):
        yield box, some, tuple(loop for loop in box.loops if loop is not some)


def check_row(elements: int, element_bytes: int = f32.size_bytes) -> None:
    """Raise Refused for a row that code cannot count in 32 bits of bytes."""
    if elements > (longest := MAX_OFFSET // element_bytes):
        raise Refused(f"rows have {elements} elements, kernels take up to {longest} of {element_bytes} bytes: cut them")


def widest(tensors: Mapping[str, MemoryDesc]) -> int:
    """Bytes of an element of the largest type."""
    return max(tensor.dtype.size_bytes for tensor in tensors.values())


def types_of(tensors: Mapping[str, MemoryDesc]) -> tuple[DataType, ...]:
    """Of the tensors of kernels, in the order of their arguments."""
    return tuple(tensor.dtype for tensor in tensors.values())


def operands_along(tensors: Mapping[str, MemoryDesc], row: Loop, rows: Loop) -> dict[str, Operand]:
    """Where post-ops of a kernel that works along `row`, on `rows` of them, read each tensor: a number for all of a row
    where that does not move it."""
    return {
        name: Operand(a, desc.dtype.size_bytes * rows.strides[a], 0, row.strides[a] == 0 and row.extent > 1)
        for a, (name, desc) in enumerate(tensors.items())
    }


def phases_of(
    calls: Calls[AnySpec],
    costs: Mapping[AnySpec, int],
    arguments: tuple[View, ...],
    tuning: PhaseTuning,
    sizes: Sequence[int] = (),
) -> tuple[Phase, ...]:
    """One phase of all records in the order of dst, or, where there are many, rounds of boxes that share their loops:
    pieces of one row follow one another, so that memory is met once, and in order.

    calls: a kernel, its box, and the loops of the box outside of the kernel.  costs: of a call of each kernel, in
    cycles.  sizes: bytes of an element of each argument, where they are not all f32.
    """
    in_bytes = sizes or [f32.size_bytes] * len(arguments)
    made = []
    for spec, box, outer in calls:
        there = Box(box.starts, outer).in_bytes(in_bytes)
        made.append(Call(spec, there.starts, there.loops, costs[spec]))
    return tuple(records_of_calls(made, arguments, tuning, along_dst=True))
