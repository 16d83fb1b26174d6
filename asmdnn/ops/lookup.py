"""Parts of arrays by indices: gather, and rows of a table.  Nothing is computed, so arrays may be of any type."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory.allocation import allocated
from asmdnn.memory.foreign import as_array
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.calls import memory_at
from asmdnn.ops.moves import delivered, memory_of, run, target
from asmdnn.ops.typed import typed, typed_output
from asmdnn.primitives.concat.concat import axis_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.gather.indices import check_indices

NARROW, WIDE = np.dtype(np.int32), np.dtype(np.int64)


def gather(x: Any, indices: Any, axis: int = 0, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """numpy.take(x, indices, axis): what indices name along an axis of x, in a new array or in `out`.

    indices: integers of 32 or 64 bits, of any dims, which take the place of the axis; negative ones count from the end.
    The result has the type of x.  Raises InvalidArguments, for indices out of range before anything is read.
    """
    memory = memory_of("x", x)
    positions = integers_of(indices)
    at = axis_of(axis, memory.desc.ndims)
    dims = memory.desc.dims
    check_indices("indices", positions, dims[at], at)
    dense = allocated(np.ascontiguousarray, positions)  # has a dim where `positions` is a number
    made = (*dims[:at], *dense.shape, *dims[at + 1 :])
    shape = (*dims[:at], *positions.shape, *dims[at + 1 :])
    given = None if out is None or positions.shape else np.expand_dims(typed_output("out", out), at)
    result = target(made, memory.desc, out if given is None else given)
    if dense.dtype == WIDE:
        dense = dense.view(NARROW)[..., ::2]  # the low halves
    if result.desc.nelems():
        numbers = memory_at("indices", dense)
        run(Gather(memory.desc, numbers.desc, result.desc, at), {"src": memory, "indices": numbers}, result, engine)
    return out if out is not None else delivered(result, None, x).reshape(shape)


def embedding(table: Any, indices: Any, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """table[indices]: a row of the matrix for each index; see `gather`.  Raises InvalidArguments."""
    rows = typed("table", table)
    if rows.ndim != 2:
        raise InvalidArguments(f"table has {rows.ndim} dims, it must be a matrix, a row for each index")
    return gather(rows, indices, 0, out=out, engine=engine)


def integers_of(indices: Any) -> AnyArray:
    """An array of 32 or 64 bits.  Raises InvalidArguments."""
    array = as_array("indices", indices)
    if array.dtype not in (NARROW, WIDE):
        raise InvalidArguments(f"indices have dtype {array.dtype}, convert them to int32 or int64")
    return array
