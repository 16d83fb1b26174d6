"""Gradients of parts of arrays by indices: sums where one index is named several times, in f32 and in their order."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory.allocation import within_memory
from asmdnn.ops.arguments import AnyArray, integers
from asmdnn.ops.gradients import floats, given_dims
from asmdnn.ops.lookup import gather, integers_of, scatter
from asmdnn.ops.moving import own_type
from asmdnn.ops.shares import summed_to, zeros_of
from asmdnn.ops.typed import kind_of
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.concat.concat import axis_of
from asmdnn.primitives.core.engine import Engine

SCATTERED = ("none", "add")  # reductions with gradients


def gather_gradient(
    dy: Any, indices: Any, dims: Sequence[int], axis: int = 0, *, out: Any = None, engine: Engine | None = None
) -> AnyArray:
    """The gradient of x of gather(x, indices, axis), for the gradient dy of its result; dims: those of x.

    What one index has named several times is summed in f32, in the order of indices.  dy: of f32, bf16 or f16, as the
    result.  Raises InvalidArguments.
    """
    part, positions = floats("dy", dy), integers_of(indices)
    dims = given_dims("dims", dims, part.ndim - positions.ndim + 1)
    found = scatter(zeros_of(dims, part), positions, part, axis_of(axis, len(dims)), "add", out=out, engine=engine)
    return found if out is not None else found.view(own_type(kind_of(part), part))


def embedding_gradient(dy: Any, indices: Any, rows: int, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """The gradient of the table of embedding(table, indices).

    rows: of the table.  dy: as of gather_gradient, and so is the rest.  Raises InvalidArguments.
    """
    part = floats("dy", dy)
    if not part.ndim:
        raise InvalidArguments("dy is a scalar, it must have dims: a row for each index")
    return gather_gradient(part, indices, (*integers("rows", rows), part.shape[-1]), out=out, engine=engine)


def scatter_gradient(
    dy: Any, indices: Any, axis: int = 0, reduction: str = "none", *, engine: Engine | None = None
) -> tuple[AnyArray, AnyArray]:
    """(dx, dupdates): the gradients of scatter(x, indices, updates, axis, reduction), for the gradient dy of its
    result.

    reduction: "none" or "add".  Of equal indices the last one has it with "none".  dy: of f32, bf16 or f16; so are
    results.  Raises InvalidArguments, also for other reductions.
    """
    found, positions = floats("dy", dy), integers_of(indices)
    check_alg("reduction", reduction, SCATTERED)
    at = axis_of(axis, found.ndim)
    of_updates = gather(found, positions, at, engine=engine)
    if reduction == "add":
        return summed_to(found, found.shape, found, engine), of_updates
    dx = scatter(found, positions, zeros_of(of_updates.shape, found), at, engine=engine)
    return dx, without_overwritten(of_updates, positions, found.shape[at], at, engine)


@within_memory
def without_overwritten(
    updates: AnyArray, positions: AnyArray, count: int, axis: int, engine: Engine | None
) -> AnyArray:
    """The same with zeros where a later index is equal."""
    numbers = positions.ravel() % max(count, 1)
    last = np.zeros(count, np.int64)
    last[numbers] = np.arange(len(numbers))  # of equal ones the last
    lost = np.flatnonzero(last[numbers] != np.arange(len(numbers)))
    if not len(lost):
        return updates
    flat = updates.reshape((*updates.shape[:axis], -1, *updates.shape[axis + positions.ndim :]))
    dims = (*flat.shape[:axis], len(lost), *flat.shape[axis + 1 :])
    return scatter(flat, lost, zeros_of(dims, updates), axis, engine=engine).reshape(updates.shape)


def topk_gradient(
    dy: Any, indices: Any, dims: Sequence[int], axis: int = -1, *, engine: Engine | None = None
) -> AnyArray:
    """The gradient of x of the values of topk(x, k, axis), for their gradient dy and the indices beside them.

    dims: those of x; 0 for what was not among the best.  dy: of f32, bf16 or f16; so is the result.
    Raises InvalidArguments.
    """
    part, positions = floats("dy", dy), integers_of(indices)
    dims = given_dims("dims", dims, part.ndim)
    at = axis_of(axis, len(dims))
    if positions.shape != part.shape or [*part.shape[:at], *part.shape[at + 1 :]] != [*dims[:at], *dims[at + 1 :]]:
        raise InvalidArguments(f"dy has dims {part.shape}, indices {positions.shape}: those of {dims} but for the axis")
    if positions.size and not 0 <= positions.min() <= positions.max() < dims[at]:
        raise InvalidArguments(f"indices must be from 0 to {dims[at] - 1}, the elements of axis {at}")
    return of_elements(part, positions, dims, at, engine)


@within_memory
def of_elements(
    part: AnyArray, positions: AnyArray, dims: tuple[int, ...], axis: int, engine: Engine | None
) -> AnyArray:
    """Sums of elements by where they are along an axis."""
    places = list(np.ogrid[tuple(np.s_[:n] for n in part.shape)])
    places[axis] = positions
    flat = np.ravel_multi_index(np.broadcast_arrays(*places), dims) if part.size else np.zeros(0, np.int64)
    count = int(np.prod(dims))
    line = np.ascontiguousarray(part).reshape(-1)
    if not line.size:
        return zeros_of(dims, part).view(own_type(kind_of(part), part))
    return gather_gradient(line, flat.reshape(-1), (count,), engine=engine).reshape(dims)
