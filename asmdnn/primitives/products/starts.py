"""The start values of the sums of a product of bytes, where its kernels shift src or src has a zero point.

start[.., n] = -(shift + zero_point) * sum over k of weights[.., k, n]
"""

import numpy as np

from asmdnn.forking import importing
from asmdnn.generators.dot.start_vector import ARGUMENTS, StartVectorSpec
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SHIFT, SummedDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, View, records_of
from asmdnn.primitives.products.matrices import Matrix
from asmdnn.types import s32

ZERO_POINT = "src_zero_points"


def add_start(
    assembly: Assembly, weights: MemoryDesc, isa: str, shift: int, has_zero_point: bool, mask: int | None = None
) -> Matrix | None:
    """Adds the phases that compute them from the tensor "weights"; returns where they are, None if sums start from
    zero.

    isa: the level of the product's kernels.  mask: of dims that are columns, or matrices; None: all but k.  Column sums
    that are packed with the weights are these values without a zero point."""
    if not (shift or has_zero_point):
        return None
    with importing():  # the kernels of compensations, which products of floats do not need
        from asmdnn.primitives.reorder.compensation import add_compensation, but_depth, compensation_desc

    mask = but_depth(weights.ndims) if mask is None else mask
    sums = compensation_desc(weights, mask)
    if not sums.nelems():
        return None
    if isinstance(weights, SummedDesc) and not has_zero_point and shift == SHIFT:
        return vectors("weights", sums, weights.begins[0])
    buffer = assembly.room("start of sums", sums.size_bytes)
    source = View(buffer)
    if isinstance(weights, SummedDesc):
        source = View("weights", weights.begins[1])
    else:
        add_compensation(
            assembly, weights, mask, (View("weights"), View(buffer)), factor=1 if has_zero_point else shift
        )
    if has_zero_point:
        spec = StartVectorSpec(isa=isa, count=sums.nelems(), shift=shift)
        record, cycles = records_of(ARGUMENTS, {}), np.array([sums.nelems()], np.int32)
        assembly.add([Phase((spec,), (View(ZERO_POINT), source, View(buffer)), record, cycles)])
    return vectors(buffer, sums)


def vectors(buffer: str, sums: MemoryDesc, start_bytes: int = 0) -> Matrix:
    """A row that is added to all rows of a product."""
    size = s32.size_bytes
    *steps, column = (size * stride if n > 1 else 0 for stride, n in zip(sums.strides, sums.dims, strict=True))
    return Matrix(buffer, start_bytes, tuple(steps), 0, column, s32)
