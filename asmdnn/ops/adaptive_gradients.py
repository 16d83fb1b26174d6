"""Gradients of adaptive poolings of arrays, whose windows may overlap and differ in size."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory.allocation import allocated
from asmdnn.memory.foreign import as_array
from asmdnn.ops.arguments import AnyArray, Array
from asmdnn.ops.gradients import floats, given_dims
from asmdnn.ops.lookup_gradients import of_elements
from asmdnn.ops.pool_gradients import avg_pool_gradient
from asmdnn.ops.products import matmul
from asmdnn.ops.shares import in_f32
from asmdnn.ops.sum import weighted_sum
from asmdnn.ops.typed import kind_of
from asmdnn.primitives.core.engine import Engine


def adaptive_avg_pool_gradient(dy: Any, dims: Sequence[int], *, engine: Engine | None = None) -> AnyArray:
    """The gradient of x of adaptive_avg_pool, for the gradient dy of its result; dims: those of x, (n, c, ..).

    Windows that do not divide an axis overlap; then it is a matrix product along each axis, in f32.  dy: f32, bf16 or
    f16, as the result.  Raises InvalidArguments, Unimplemented.
    """
    dst, dims = adaptive("dy", dy, dims)
    sizes = list(zip(dims[2:], dst.shape[2:], strict=True))
    if all(n % o == 0 for n, o in sizes):
        return avg_pool_gradient(dst, dims, [n // o for n, o in sizes], engine=engine)
    found = in_f32(dst, engine)
    for axis, (n, o) in enumerate(sizes, 2):
        rows = found.reshape(prod(found.shape[:axis]), o, -1)
        product = matmul(shares_of_windows(n, o), rows, engine=engine)
        found = product.reshape(*found.shape[:axis], n, *found.shape[axis + 1 :])
    return weighted_sum([found], dtype=kind_of(dst), engine=engine)


def shares_of_windows(n: int, outputs: int) -> Array:
    """f32[n, outputs]: what an element has of the gradient of each window, which is as torch cuts them."""
    shares: Array = allocated(np.zeros, (n, outputs), np.float32)
    for o in range(outputs):
        begin, end = o * n // outputs, -(-(o + 1) * n // outputs)
        shares[begin:end, o] = 1 / (end - begin)
    return shares


def adaptive_max_pool_gradient(dy: Any, indices: Any, dims: Sequence[int], *, engine: Engine | None = None) -> AnyArray:
    """The gradient of x of adaptive_max_pool, for the gradient dy of its result and the indices that it has returned:
    int64, or int32, the number of each maximum's element in its plane; all else as in adaptive_avg_pool_gradient."""
    dst, dims = adaptive("dy", dy, dims)
    plane, places = prod(dims[2:]), as_array("indices", indices)
    if places.dtype not in (np.int64, np.int32) or places.shape != dst.shape:
        raise InvalidArguments(f"indices must be int64 or int32 with the dims of dy, not {places.dtype} {places.shape}")
    if places.size and not 0 <= places.min() <= places.max() < plane:
        raise InvalidArguments(f"indices must be from 0 to {plane - 1}, the elements of a plane of {shown(dims)}")
    dense, of_planes = allocated(np.ascontiguousarray, dst), (*dims[:2], prod(dst.shape[2:]))
    part, at = dense.reshape(of_planes), places.reshape(of_planes)
    return of_elements(part, at, (*dims[:2], plane), 2, engine).reshape(dims)


def adaptive(label: str, dy: Any, dims: Sequence[int]) -> tuple[AnyArray, tuple[int, ...]]:
    """The gradient of a result, and the dims of what was pooled.  Raises InvalidArguments."""
    dst = floats(label, dy)
    if not 1 <= dst.ndim - 2 <= 3:
        raise InvalidArguments(f"dy has dims {shown(dst.shape)}, 3 to 5 are needed: (n, c, ...)")
    dims = given_dims("dims", dims, dst.ndim)
    if dims[:2] != dst.shape[:2] or min(dst.shape[2:]) < 1 or min(dims[2:]) < 1:
        raise InvalidArguments(
            f"dy has dims {dst.shape}, dims are {dims}: images and channels must be equal, none is 0"
        )
    return dst, dims
