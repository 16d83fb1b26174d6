"""What batch and group normalization compute with: kernels of a tree of moments, and functions of elements."""

from functools import lru_cache

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.eltwise import simple
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.merge_moments import MergeMomentsSpec
from asmdnn.generators.functions.moments import MomentsSpec
from asmdnn.generators.functions.program import Program
from asmdnn.isa.vectors import lanes_of, narrowed
from asmdnn.planning.move_tuning import ReductionTuning
from asmdnn.primitives.reduction.source import Chunk, TreeKernels
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES, DataType


@dataclass(frozen=True, slots=True)
class Moments(TreeKernels):
    """Means, and variances if it `divides`, else sums of squared distances."""

    isa: str
    results: tuple[str, ...]
    divides: bool
    dtype: DataType
    beside: tuple[str, ...] = ()

    @property
    def src_bytes(self) -> int:
        """Of an element of src."""
        return self.dtype.size_bytes

    def first(self, chunk: Chunk, is_last: bool) -> KernelSpec:
        is_row = chunk.along == "rows" and chunk.rows == 1  # which is computed as it is among others
        return MomentsSpec(
            isa=narrowed(self.isa, chunk.elements), along=chunk.along, rows=chunk.rows, elements=chunk.elements,
            src_row_bytes=chunk.src_row_bytes, dst_row_bytes=F32_BYTES if is_row else chunk.dst_row_bytes,
            divides=is_last and self.divides, kind=self.dtype.name,
        )  # fmt: skip

    def merge(self, chunk: Chunk, counts: tuple[int, int], is_last: bool) -> KernelSpec:
        count, last = counts
        return MergeMomentsSpec(
            isa=self.isa, rows=chunk.rows, elements=chunk.elements, row_bytes=chunk.src_row_bytes, count=count,
            last=last, divides=is_last and self.divides,
        )  # fmt: skip

    def cost(self, spec: KernelSpec, tuning: ReductionTuning) -> int:
        """Expected cycles of a call."""
        assert isinstance(spec, MomentsSpec | MergeMomentsSpec)
        vectors = -(-spec.elements // lanes_of(spec.isa))
        return tuning.call_cycles + spec.rows * (tuning.row_cycles + 3 * vectors)


def inverse_root(epsilon: float, scales: bool) -> Program:
    """1 / sqrt(x + epsilon), or scale / sqrt(x + epsilon)."""
    build = Builder(1 + scales)
    x, *scale = build.inputs
    return build.finish((scale[0] if scales else build.value(1.0)) / build.op("sqrt", x + epsilon))


@lru_cache
def normalized(shifts: bool, adds: bool, has_relu: bool) -> Program:
    """(x - mean) * factor, plus the shift, plus another tensor, and relu."""
    build = Builder(3 + shifts + adds)
    x, mean, factor, *more = build.inputs
    result = build.fma(x - mean, factor, more[0]) if shifts else (x - mean) * factor
    if adds:
        result = result + more[-1]
    return build.finish(simple.relu(build, result, 0.0) if has_relu else result)


@lru_cache
def identity() -> Program:
    build = Builder(1)
    return build.finish(build.inputs[0])
