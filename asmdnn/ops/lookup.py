"""Parts of arrays by indices: gather, rows of a table, and scatter.  What is only moved may be of any type."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory
from asmdnn.memory.allocation import allocated
from asmdnn.memory.foreign import as_array
from asmdnn.ops.arguments import AnyArray, aligned, of_no_numbers
from asmdnn.ops.calls import memory_at
from asmdnn.ops.moves import delivered, memory_of, run, target
from asmdnn.ops.typed import typed, typed_output
from asmdnn.primitives.attributes.numbers import check_alg
from asmdnn.primitives.concat.concat import axis_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.gather.indices import check_indices
from asmdnn.primitives.scatter.description import ALGORITHMS, Reduction, Scatter

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
    made = (*dims[:at], *(positions.shape or (1,)), *dims[at + 1 :])
    shape = (*dims[:at], *positions.shape, *dims[at + 1 :])
    given = None if out is None or positions.shape else np.expand_dims(typed_output("out", out), at)
    result = target(made, memory.desc, out if given is None else given)
    if result.desc.nelems():
        numbers = index_memory(positions)
        run(Gather(memory.desc, numbers.desc, result.desc, at), {"src": memory, "indices": numbers}, result, engine)
    return out if out is not None else delivered(result, None, x).reshape(shape)


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
    memory, positions, given = memory_of("x", x), integers_of(indices), memory_of("updates", updates)
    dims, at = memory.desc.dims, axis_of(axis, memory.desc.ndims)
    check_indices("indices", positions, dims[at], at)
    wanted = (*dims[:at], *positions.shape, *dims[at + 1 :])
    if given.desc.dims != (wanted or (1,)):
        raise InvalidArguments(f"updates has dims {given.desc.dims}, those of x and indices make it {wanted}")
    numbers, result = index_memory(positions), target(dims, memory.desc, out)
    made = given.desc.reshape((*dims[:at], *numbers.desc.dims, *dims[at + 1 :]))  # which has a dim for a number
    check_alg("reduction", reduction, ALGORITHMS)
    desc = Scatter(memory.desc, numbers.desc, made, result.desc, at, reduction)
    inputs = {"src": memory, "indices": numbers, "updates": Memory(made, given.array, padding_is_zero=True)}
    run(desc, inputs, result, engine)
    return delivered(result, out, x)


def index_memory(positions: AnyArray) -> Memory:
    """Indices of 32 bits, or the low halves of wider ones, of a dim at least."""
    dense = allocated(np.ascontiguousarray, positions)  # has a dim where `positions` is a number
    return memory_at("indices", dense.view(NARROW)[..., ::2] if dense.dtype == WIDE else dense)


def integers_of(indices: Any) -> AnyArray:
    """An array of 32 or 64 bits.  Raises InvalidArguments."""
    array = as_array("indices", indices)
    if text := of_no_numbers("indices", array):
        raise InvalidArguments(text)
    if array.dtype not in (NARROW, WIDE):
        raise InvalidArguments(f"indices have dtype {array.dtype}, convert them to int32 or int64")
    return array
