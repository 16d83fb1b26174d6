"""Moves of arrays: concat, split, slice, pad, expand.  Nothing is computed, so arrays may be of any type.

Types are numpy's: float32, float16, int32, int8, uint8; and those of ml_dtypes.
"""

from collections.abc import Sequence
from itertools import accumulate
from operator import index
from typing import Any

import numpy as np

from asmdnn.errors import AsmdnnError, InvalidArguments, counted, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.sequences import items
from asmdnn.ops.applied import Descs
from asmdnn.ops.arguments import AnyArray, integers
from asmdnn.ops.moving import array_of, copied, moved, own_type
from asmdnn.ops.typed import kind_of
from asmdnn.primitives.concat.concat import Concat, axis_of
from asmdnn.primitives.concat.pad import Pad, PadMode, number
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.reorder.reorder import Reorder

Widths = int | Sequence[Sequence[int]]


def concat(arrays: Sequence[Any], axis: int = 0, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """Arrays of one type one after the other along an axis, in a new array or in `out`.  Raises InvalidArguments."""
    try:
        given = {f"src{k}": (f"arrays[{k}]", array_of(f"arrays[{k}]", x)) for k, x in enumerate(items(arrays))}
    except AsmdnnError:
        raise
    except Exception:  # whatever the caller's object does
        given = {}
    if not given:
        raise InvalidArguments(f"arrays must be a sequence of one array or more, not {shown(arrays)}")
    shapes = [array.shape for _, array in given.values()]
    dims = list(shapes[0])
    at = axis_of(axis, len(dims))
    dims[at] = sum(shape[at] for shape in shapes if len(shape) == len(dims))

    def describe(descs: Descs, dst: MemoryDesc) -> Concat:
        return Concat(tuple(descs.values()), dst, at)

    return moved(("concat", at), given, describe, dims, out, engine)


def split(x: Any, parts: int | Sequence[int], axis: int = 0, *, engine: Engine | None = None) -> list[AnyArray]:
    """The parts of an array along an axis: so many equal ones, or of these sizes, each a new array.

    Raises InvalidArguments for sizes that do not make up the axis.
    """
    array = array_of("x", x)
    at = axis_of(axis, array.ndim)
    whole = array.shape[at]
    numbers = integers("parts", parts)
    if not isinstance(parts, Sequence):
        count = numbers[0]
        numbers = (whole // count,) * count if count > 0 and whole % count == 0 else ()
    if sum(numbers) != whole or min(numbers, default=-1) < 0:
        raise InvalidArguments(f"parts is {shown(parts)}, axis {at} of x is {whole}: give sizes that make it up")
    ends, before = accumulate(numbers), (np.s_[:],) * at
    places = [(*before, np.s_[end - size : end]) for end, size in zip(ends, numbers, strict=True)]
    return [copied("x", array[place], engine) for place in places]


def slice(
    x: Any, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int] = (), *, engine: Engine | None = None
) -> AnyArray:
    """x[starts[0]:stops[0]:steps[0], ...] as a new array; negative starts and stops count from the end.

    Steps below 0 go backwards, then with a stop of -n - 1 or less as far as the first of n.  Raises InvalidArguments.
    """
    array = array_of("x", x)
    words = {"starts": integers("starts", starts), "stops": integers("stops", stops)}
    words["steps"] = (1,) * array.ndim if isinstance(steps, tuple) and not steps else integers("steps", steps)
    for name, numbers in words.items():
        if len(numbers) != array.ndim:
            raise InvalidArguments(
                f"{name} must be one integer for each of {counted(array.ndim, 'dim')}, not {shown(numbers)}"
            )
    if 0 in words["steps"]:
        raise InvalidArguments(f"steps must not be 0, they are {shown(steps)}")
    places = zip(*words.values(), array.shape, strict=True)
    ranges = [range(n)[start:stop:step] for start, stop, step, n in places]
    if not all(ranges):
        return allocated(np.empty, [len(each) for each in ranges], own_type(kind_of(array), x))
    forward = [each if each.step > 0 else each[::-1] for each in ranges]
    found = copied("x", array[tuple(np.s_[each.start : each.stop : each.step] for each in forward)], engine)
    for axis, each in enumerate(ranges):
        if each.step < 0:
            found = taken(found, allocated(np.array, range(len(each))[::-1], np.int32), axis, engine)
    return found


def taken(array: AnyArray, places: AnyArray, axis: int, engine: Engine | None, out: Any = None) -> AnyArray:
    """What is at these places of an axis, which are in range: s32 of any dims."""
    given = {"src": ("x", array), "indices": ("indices", places)}
    dims = (*array.shape[:axis], *places.shape, *array.shape[axis + 1 :])

    def describe(descs: Descs, dst: MemoryDesc) -> Gather:
        return Gather(descs["src"], descs["indices"], dst, axis)

    return moved(("gather", axis), given, describe, dims, out, engine)


def pad(
    x: Any,
    widths: Widths,
    mode: PadMode = "constant",
    value: float = 0.0,
    *,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """x with elements around it, as numpy.pad: `value`, the outermost element ("edge"), or x mirrored ("reflect").

    widths: (before, after) for each dim, or an integer for all.  In a new array or in `out`.  Raises InvalidArguments.
    """
    array = array_of("x", x)
    pairs = widths_of(widths, array.ndim)
    dims = [n + before + after for n, (before, after) in zip(array.shape, pairs, strict=True)]
    begins, constant = tuple(before for before, _ in pairs), number("value", value)

    def describe(descs: Descs, dst: MemoryDesc) -> Pad:
        return Pad(descs["src"], dst, begins, mode, constant)

    # As text, since 0.0 is another constant than -0.0.
    return moved(("pad", tuple(pairs), mode, constant.hex()), {"src": ("x", array)}, describe, dims, out, engine)


def widths_of(widths: Any, ndims: int) -> list[tuple[int, int]]:
    """(before, after) for each dim.  Raises InvalidArguments."""
    try:
        pairs = [(index(widths),) * 2] * ndims if not isinstance(widths, Sequence) else [
            (index(before), index(after)) for before, after in items(widths)
        ]  # fmt: skip
    except Exception:  # whatever the caller's object does
        pairs = []
    if len(pairs) != ndims or any(n < 0 for pair in pairs for n in pair):
        raise InvalidArguments(f"widths must be an integer >= 0, or {ndims} pairs of them, not {shown(widths)}")
    return pairs


def expand(x: Any, dims: Sequence[int], *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """x with its dims of 1 repeated up to `dims`, and new dims in front, in a new array or in `out`.

    Raises InvalidArguments.
    """
    array, wanted = array_of("x", x), integers("dims", dims)
    new = len(wanted) - array.ndim
    own = (1,) * max(new, 0) + array.shape
    if new < 0 or any(n not in (1, m) for n, m in zip(own, wanted, strict=True)):
        raise InvalidArguments(
            f"dims is {shown(wanted)}, the dims of x, {array.shape}, must be 1 or the same from the end on"
        )

    def describe(descs: Descs, dst: MemoryDesc) -> Reorder:
        src = descs["src"]
        strides = [s if n == m else 0 for s, n, m in zip((0,) * new + src.strides, own, wanted, strict=True)]
        return Reorder(MemoryDesc(wanted, src.dtype, strides=strides, offset0=src.offset0), dst)

    return moved(("expand", wanted), {"src": ("x", array)}, describe, wanted, out, engine)
