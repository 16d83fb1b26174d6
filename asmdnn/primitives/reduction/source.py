"""What a tree of sums reads: the loops over elements that stay and that are reduced, and the kernels that do it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from asmdnn.generators.contract import KernelSpec
from asmdnn.memory import MemoryDesc
from asmdnn.planning.loops import Loop, is_near
from asmdnn.planning.move_tuning import ReductionTuning
from asmdnn.primitives.shapes.nests import Nest, nest_of
from asmdnn.records import dataclass
from asmdnn.types import f32

SRC, DST = range(2)


class TreeKernels(ABC):
    """The kernels of a tree.  results: the buffers of the result, all laid out as dst; beside: a buffer laid out as dst
    that kernels read, as the last argument; operands: those of the tensors that the nest has after dst, arguments 1 and
    on of the first kernels."""

    results: tuple[str, ...]
    beside: tuple[str, ...]
    operands: tuple[str, ...] = ()

    @property
    def src_bytes(self) -> int:
        """Of an element of src."""
        return f32.size_bytes

    @property
    def operand_bytes(self) -> tuple[int, ...]:
        """Of an element of each operand."""
        return (f32.size_bytes,) * len(self.operands)

    @property
    def result_bytes(self) -> int:
        """Of an element of the results; those of levels between are f32."""
        return f32.size_bytes

    @abstractmethod
    def first(self, chunk: "Chunk", is_last: bool) -> KernelSpec:
        """Of chunks of src."""

    @abstractmethod
    def merge(self, chunk: "Chunk", counts: tuple[int, int], is_last: bool) -> KernelSpec:
        """Of chunks of results, of `counts[0]` elements each but for the last one of counts[1]."""

    @abstractmethod
    def cost(self, spec: KernelSpec, tuning: ReductionTuning) -> int:
        """Expected cycles of a call."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What a kernel is called for: see ReduceSpec.  dst_row_bytes: of f32.  operands: of each, the steps from row to
    row and from element to element, in elements."""

    along: str
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    operands: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ReductionSource:
    """A nest of src and dst as one of two forms: `row` is the reduced loop that is dense in src; or `lanes` the kept
    loop that is dense in both, and `row` None."""

    nest: Nest
    row: Loop | None
    lanes: Loop | None


def source_of(
    src: MemoryDesc, dst: MemoryDesc, reduced: Sequence[int], operands: Sequence[MemoryDesc] = ()
) -> ReductionSource | None:
    """The form of a reduction of src, and of operands with it, to a dense dst of 1 in these dims; None for formats that
    no kernel reads."""
    nest = nest_of((src, dst, *operands), src.dims, reduced, SRC)
    if nest is None or not all(map(is_near, (*nest.kept, *nest.reduced))):
        return None
    row = next((loop for loop in nest.reduced if loop.strides[SRC] == 1), None)
    lanes = next((loop for loop in nest.kept if loop.strides[:2] == (1, 1)), None)
    if lanes and max(lanes.strides) > 1:
        return None
    if row and max(row.strides) > 1:  # an operand moves otherwise: one element at a time
        return ReductionSource(nest, None, lanes or Loop(1, (1,) * len(nest.starts)))
    if row is None and lanes is None:
        if any(loop.strides[SRC] == 1 for loop in nest.kept) or nest.reduced or nest.kept:
            return None
        lanes = Loop(1, (1,) * len(nest.starts))
    return ReductionSource(nest, row, lanes)
