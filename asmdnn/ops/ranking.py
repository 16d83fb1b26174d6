"""The largest and smallest numbers of arrays, and where they are."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.applied import Descs, apply
from asmdnn.ops.arguments import AnyArray, integer, output
from asmdnn.ops.typed import kind_of, named, numpy_type, typed
from asmdnn.primitives.attributes.numbers import check_flag
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.topk.description import TopKForward
from asmdnn.types import s32

Indices = npt.NDArray[np.int64]


def topk(
    x: Any, k: int, axis: int = -1, *, largest: bool = True, out: Any = None, engine: Engine | None = None
) -> tuple[AnyArray, Indices]:
    """(values, indices) of the k largest or smallest numbers of an array along an axis, the best first.

    As torch.topk: NaN is larger than every number; of equal numbers that with the lowest index comes first.
    indices: int64.  out: two dense arrays for values, of the type of x, and indices, int64.
    Raises InvalidArguments, Unimplemented.
    """
    check_flag("largest", largest)
    array, axis = typed("x", x), integer("axis", axis)
    dims = result_dims(array, axis, k)
    if out is not None and not (isinstance(out, Sequence) and len(out) == 2):
        raise InvalidArguments(f"out must be two arrays, for values and indices, not {shown(out)}")
    kind = kind_of(array)
    numpy = numpy_type(kind, [array.dtype])
    values = allocated(np.empty, dims, numpy) if out is None else result_in("out[0]", out[0], dims, numpy)
    if out is not None and np.may_share_memory(values, array):
        raise InvalidArguments("out[0] shares memory with x: give another array")
    indices = best(
        alg="max" if largest else "min",
        x=array,
        values=named(values, kind),
        dims=dims,
        axis=axis,
        flags=(False, not largest),
        engine=engine,
    )
    return (values, indices) if out is None else (out[0], delivered("out[1]", indices, out[1]))


def result_in(name: str, out: Any, dims: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The memory of `out`, dense and of these dims.  Raises InvalidArguments."""
    array = output(name, out, dtype)
    if array.shape != dims or not array.flags.c_contiguous or not array.flags.writeable:
        raise InvalidArguments(f"{name} must be a dense array of dims {dims} that can be written, not {array.shape}")
    return array


def delivered(name: str, found: Indices, out: Any) -> Indices:
    """`found`, or `out` with it."""
    if out is None:
        return found
    result_in(name, out, found.shape, np.dtype(np.int64))[...] = found
    given: Indices = out
    return given


def argmax(
    x: Any,
    axis: int = -1,
    *,
    keepdims: bool = False,
    select_last_index: bool = False,
    out: Any = None,
    engine: Engine | None = None,
) -> Indices:
    """Where the largest number of an array is along an axis, int64: as numpy.argmax, the first NaN if there is one.

    select_last_index: of equal numbers the last one, not the first.  keepdims: the axis stays, as 1.  out: a dense
    int64 array of the result's dims.  Raises InvalidArguments, Unimplemented.
    """
    return where(alg="max", x=x, axis=axis, keepdims=keepdims, select_last=select_last_index, out=out, engine=engine)


def argmin(
    x: Any,
    axis: int = -1,
    *,
    keepdims: bool = False,
    select_last_index: bool = False,
    out: Any = None,
    engine: Engine | None = None,
) -> Indices:
    """Where the smallest number is; see argmax."""
    return where(alg="min", x=x, axis=axis, keepdims=keepdims, select_last=select_last_index, out=out, engine=engine)


def where(
    alg: Literal["max", "min"], x: Any, axis: int, keepdims: bool, select_last: bool, out: Any, engine: Engine | None
) -> Indices:
    check_flag("keepdims", keepdims)
    check_flag("select_last_index", select_last)
    array, axis = typed("x", x), integer("axis", axis)
    found = best(
        alg=alg,
        x=array,
        values=None,
        dims=result_dims(array, axis, 1),
        axis=axis,
        flags=(select_last, False),
        engine=engine,
    )
    return delivered("out", found if keepdims else np.squeeze(found, axis), out)


def result_dims(x: AnyArray, axis: int, k: int) -> tuple[int, ...]:
    """Of a result.  Raises InvalidArguments."""
    k = integer("k", k)
    if not -x.ndim <= axis < x.ndim:
        known = f"use {-x.ndim} to {x.ndim - 1}" if x.ndim else "give it one"
        raise InvalidArguments(f"axis is {shown(axis)}, x has {counted(x.ndim, 'dim')}: {known}")
    if not x.shape[axis]:
        raise InvalidArguments(f"x has no elements along axis {axis}, of which none is the best: give it some")
    if not 1 <= k <= x.shape[axis]:
        raise InvalidArguments(
            f"k is {shown(k)}, x has {counted(x.shape[axis], 'element')} along axis {axis}: use 1 to that"
        )
    return tuple(k if dim == axis % x.ndim else n for dim, n in enumerate(x.shape))


def best(
    alg: Literal["max", "min"],
    x: AnyArray,
    values: AnyArray | None,
    dims: tuple[int, ...],
    axis: int,
    flags: tuple[bool, bool],
    engine: Engine | None,
) -> Indices:
    """The indices; values are written into memory that goes in as if it were an input."""

    def described(descs: Descs, dst: MemoryDesc) -> TopKForward:
        indices = MemoryDesc(dims, s32, LETTERS[: len(dims)])
        return TopKForward(alg, descs["src"], indices, axis, descs.get("values"), *flags)

    inputs = {"src": ("x", x), "values": ("values", values)}
    found = apply(("topk", alg, dims, axis, flags), inputs, described, lambda _: dims, ((), None, engine, s32))
    return allocated(found.astype, np.int64)
