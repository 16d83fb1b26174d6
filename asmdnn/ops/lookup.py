"""Parts of arrays by indices: gather, rows of a table, and scatter.  What is only moved may be of any type."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.foreign import as_array
from asmdnn.ops.applied import Descs
from asmdnn.ops.arguments import AnyArray, aligned, of_no_numbers
from asmdnn.ops.moves import taken
from asmdnn.ops.moving import array_of, moved
from asmdnn.ops.typed import typed, typed_output
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.concat.concat import axis_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.gather.indices import check_indices
from asmdnn.primitives.scatter.description import ALGORITHMS, Reduction, Scatter

NARROW, WIDE = np.dtype(np.int32), np.dtype(np.int64)


def gather(x: Any, indices: Any, axis: int = 0, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """numpy.take(x, indices, axis): what indices name along an axis of x, in a new array or in `out`.

    indices: integers of 32 or 64 bits, of any dims, which take the place of the axis; negative ones count from the end.
    The result has the type of x.  Raises InvalidArguments, for indices out of range before anything is read.
    """
    array, positions = array_of("x", x), integers_of(indices)
    at = axis_of(axis, array.ndim)
    check_indices("indices", positions, array.shape[at], at)
    places = words_of(positions)
    if positions.ndim:
        return taken(array, places, at, engine, out)
    given = None if out is None else np.expand_dims(typed_output("out", out), at)
    found = taken(array, places, at, engine, given)
    return found.reshape((*array.shape[:at], *array.shape[at + 1 :])) if out is None else out


def embedding(table: Any, indices: Any, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """table[indices]: a row of the matrix for each index; see `gather`.  Raises InvalidArguments."""
    rows = aligned("table", typed("table", table))
    if rows.ndim != 2:
        raise InvalidArguments(f"table has {counted(rows.ndim, 'dim')}, it must be a matrix, a row for each index")
    return gather(rows, indices, 0, out=out, engine=engine)


def scatter(
    x: Any,
    indices: Any,
    updates: Any,
    axis: int = 0,
    reduction: Reduction = "none",
    *,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """x, of which indices name parts along an axis that become updates, in a new array or in `out`; x stays.

    updates: of the dims and type of `gather(x, indices, axis)`.  reduction: "none"; "add", "mul", "max" or "min"
    combine updates with what is there, in f32, for arrays of float32, float16 and bfloat16.  Indices as in `gather`,
    taken in row-major order, so that of equal ones the last stays and sums are the same for every number of threads.
    Raises InvalidArguments, for indices out of range before anything is written.
    """
    array, positions, given = array_of("x", x), integers_of(indices), array_of("updates", updates)
    dims, at = array.shape, axis_of(axis, array.ndim)
    check_indices("indices", positions, dims[at], at)
    wanted = (*dims[:at], *positions.shape, *dims[at + 1 :])
    if given.shape != (wanted or (1,)):
        raise InvalidArguments(f"updates has dims {given.shape}, those of x and indices make it {wanted}")
    check_alg("reduction", reduction, ALGORITHMS)
    places = words_of(positions)
    rows = allocated(given.reshape, (*dims[:at], *places.shape, *dims[at + 1 :]))  # which has a dim for a number
    inputs = {"src": ("x", array), "indices": ("indices", places), "updates": ("updates", rows)}

    def describe(descs: Descs, dst: MemoryDesc) -> Scatter:
        return Scatter(descs["src"], descs["indices"], descs["updates"], dst, at, reduction)

    return moved(("scatter", at, reduction), inputs, describe, dims, out, engine)


def words_of(positions: AnyArray) -> AnyArray:
    """Indices of 32 bits, or the low halves of wider ones, of a dim at least."""
    dense = positions if positions.flags.c_contiguous and positions.ndim else allocated(np.ascontiguousarray, positions)
    return dense.view(NARROW)[..., ::2] if dense.dtype == WIDE else dense


def integers_of(indices: Any) -> AnyArray:
    """An array of 32 or 64 bits.  Raises InvalidArguments."""
    array = as_array("indices", indices)
    if text := of_no_numbers("indices", array):
        raise InvalidArguments(text)
    if array.dtype not in (NARROW, WIDE):
        raise InvalidArguments(f"indices have dtype {array.dtype}, convert them to int32 or int64")
    return array
