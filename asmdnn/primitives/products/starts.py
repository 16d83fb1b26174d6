"""What the sums of a product of bytes start from, where its kernels shift src or src has a zero point.

start[.., n] = -(shift + zero_point) * sum over k of weights[.., k, n]
"""

import numpy as np

from asmdnn.generators.dot.start_vector import ARGUMENTS, StartVectorSpec
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, records_of, views
from asmdnn.primitives.products.product import Matrix
from asmdnn.primitives.reorder.compensation import add_compensation, compensation_desc
from asmdnn.types import s32

ZERO_POINT = "src_zero_points"


def add_start(assembly: Assembly, weights: MemoryDesc, isa: str, shift: int, has_zero_point: bool) -> Matrix | None:
    """The phases that compute it from the tensor "weights", and where it is; None if sums start from zero.

    isa: the level of the product's kernels.
    """
    mask = (1 << weights.ndims) - 1 - (1 << weights.ndims - 2)  # all dims but k
    sums = compensation_desc(weights, mask)
    if not (shift or has_zero_point) or not sums.nelems():
        return None
    buffer = assembly.room("start of sums", sums.size_bytes)
    add_compensation(assembly, weights, mask, ("weights", buffer), factor=1 if has_zero_point else shift)
    if has_zero_point:
        spec = StartVectorSpec(isa, sums.nelems(), shift)
        record, cycles = records_of(ARGUMENTS, {}), np.array([sums.nelems()], np.int32)
        assembly.add([Phase((spec,), views((ZERO_POINT, buffer)), record, cycles)])
    *steps, column = (
        s32.size_bytes * stride if n > 1 else 0 for stride, n in zip(sums.strides, sums.dims, strict=True)
    )
    return Matrix(buffer, 0, tuple(steps), 0, column, s32)
