"""Moves of arrays: concat, split, slice, pad, expand.  Nothing is computed, so arrays may be of any type.

Types are numpy's: float32, float16, int32, int8, uint8; and those of ml_dtypes.
"""

from collections.abc import Sequence
from itertools import accumulate
from operator import index
from typing import Any

import numpy as np

from asmdnn.errors import AsmdnnError, InvalidArguments, counted, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.sequences import items
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import AnyArray, integers
from asmdnn.ops.calls import memory_at, readable
from asmdnn.ops.typed import numpy_type, typed, typed_output
from asmdnn.primitives.concat.concat import Concat, axis_of
from asmdnn.primitives.concat.pad import Pad, PadMode
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.types import DataType

Widths = int | Sequence[Sequence[int]]


def concat(arrays: Sequence[Any], axis: int = 0, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """Arrays of one type one after the other along an axis, in a new array or in `out`.  Raises InvalidArguments."""
    try:
        given = items(arrays)
        memories = [memory_of(f"arrays[{k}]", array) for k, array in enumerate(given)]
    except AsmdnnError:
        raise
    except Exception:  # whatever the caller's object does
        memories = []
    if not memories:
        raise InvalidArguments(f"arrays must be a sequence of one array or more, not {shown(arrays)}")
    descs = tuple(memory.desc for memory in memories)
    at = axis_of(axis, descs[0].ndims)
    dims = list(descs[0].dims)
    dims[at] = sum(desc.dims[at] for desc in descs if desc.ndims == len(dims))
    result = target(dims, descs[0], out)
    run(Concat(descs, result.desc, at), {f"src{k}": m for k, m in enumerate(memories)}, result, engine)
    return delivered(result, out, given[0])


def split(x: Any, parts: int | Sequence[int], axis: int = 0, *, engine: Engine | None = None) -> list[AnyArray]:
    """The parts of an array along an axis: so many equal ones, or of these sizes, each a new array.

    Raises InvalidArguments for sizes that do not make up the axis.
    """
    memory = memory_of("x", x)
    at = axis_of(axis, memory.desc.ndims)
    whole = memory.desc.dims[at]
    numbers = integers("parts", parts)
    if not isinstance(parts, Sequence):
        count = numbers[0]
        numbers = (whole // count,) * count if count > 0 and whole % count == 0 else ()
    if sum(numbers) != whole or min(numbers, default=-1) < 0:
        raise InvalidArguments(f"parts is {shown(parts)}, axis {at} of x is {whole}: give sizes that make it up")
    found = []
    for start, size in zip(accumulate(numbers, initial=0), numbers, strict=False):
        dims = [size if dim == at else n for dim, n in enumerate(memory.desc.dims)]
        part = memory.desc.submemory(dims, [start if dim == at else 0 for dim in range(len(dims))])
        found.append(copied(part, memory, engine, like=x))
    return found


def slice(
    x: Any, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int] = (), *, engine: Engine | None = None
) -> AnyArray:
    """x[starts[0]:stops[0]:steps[0], ...] as a new array; negative starts and stops count from the end.

    Steps below 0 go backwards, then with a stop of -n - 1 or less as far as the first of n.  Raises InvalidArguments.
    """
    memory = memory_of("x", x)
    desc = memory.desc
    words = {"starts": integers("starts", starts), "stops": integers("stops", stops)}
    words["steps"] = (1,) * desc.ndims if isinstance(steps, tuple) and not steps else integers("steps", steps)
    for name, numbers in words.items():
        if len(numbers) != desc.ndims:
            raise InvalidArguments(
                f"{name} must be one integer for each of {counted(desc.ndims, 'dim')}, not {shown(numbers)}"
            )
    if 0 in words["steps"]:
        raise InvalidArguments(f"steps must not be 0, they are {shown(steps)}")
    places = zip(*words.values(), desc.dims, strict=True)
    ranges = [range(n)[start:stop:step] for start, stop, step, n in places]
    dims = [len(each) for each in ranges]
    if 0 in dims:
        return allocated(np.empty, dims, own_type(desc.dtype, x))
    forward = [each if each.step > 0 else each[::-1] for each in ranges]
    offset = sum(each.start * stride for each, stride in zip(forward, desc.strides, strict=True))
    strides = [each.step * stride for each, stride in zip(forward, desc.strides, strict=True)]
    part = MemoryDesc([len(each) for each in forward], desc.dtype, strides=strides, offset0=desc.offset0 + offset)
    backward = {axis: range(len(each))[::-1] for axis, each in enumerate(ranges) if each.step < 0}
    if not backward:
        return copied(part, memory, engine, like=x)
    found = Memory(part, memory.array, padding_is_zero=True)
    for axis, each in backward.items():
        found = gathered(found, axis, each, engine)
    return delivered(found, None, x)


def gathered(source: Memory, axis: int, numbers: range, engine: Engine | None) -> Memory:
    """What is at these places of an axis, as a new plain tensor."""
    indices = Memory.from_array(allocated(np.array, numbers, np.int32))
    dims = source.desc.dims
    result = target((*dims[:axis], len(numbers), *dims[axis + 1 :]), source.desc, None)
    desc = Gather(source.desc, indices.desc, result.desc, axis)
    run(desc, {"src": source, "indices": indices}, result, engine)
    return result


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
    memory = memory_of("x", x)
    dims = memory.desc.dims
    pairs = widths_of(widths, len(dims))
    made = [n + before + after for n, (before, after) in zip(dims, pairs, strict=True)]
    result = target(made, memory.desc, out)
    run(
        Pad(memory.desc, result.desc, tuple(before for before, _ in pairs), mode, value),
        {"src": memory},
        result,
        engine,
    )
    return delivered(result, out, x)


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
    memory = memory_of("x", x)
    desc, wanted = memory.desc, integers("dims", dims)
    new = len(wanted) - desc.ndims
    own = (1,) * max(new, 0) + desc.dims
    if new < 0 or any(n not in (1, m) for n, m in zip(own, wanted, strict=True)):
        raise InvalidArguments(
            f"dims is {shown(wanted)}, the dims of x, {desc.dims}, must be 1 or the same from the end on"
        )
    strides = [s if n == m else 0 for s, n, m in zip((0,) * new + desc.strides, own, wanted, strict=True)]
    return copied(MemoryDesc(wanted, desc.dtype, strides=strides, offset0=desc.offset0), memory, engine, out, x)


def memory_of(name: str, value: Any) -> Memory:
    """A view of the array; a copy where no descriptor can describe its strides."""
    array = typed(name, value)
    if not array.ndim:
        raise InvalidArguments(f"{name} is a scalar, it must have dims")
    return readable(name, array)


def target(dims: Sequence[int], like: MemoryDesc, out: Any) -> Memory:
    """A new plain memory, or that of `out`, which must have these dims."""
    if out is None:
        return Memory(MemoryDesc(dims, like.dtype, LETTERS[: len(dims)]))
    found = memory_at("out", typed_output("out", out))
    if found.desc.dtype != like.dtype:
        raise InvalidArguments(f"out is of {found.desc.dtype}, the result of {like.dtype}: give an array of that type")
    if found.desc.dims != tuple(dims):
        raise InvalidArguments(f"out has dims {found.desc.dims}, the result has {shown(tuple(dims))}")
    return found


def own_type(dtype: DataType, like: Any) -> np.dtype[Any]:
    """The numpy type of results that have the elements of an argument."""
    return numpy_type(dtype, (typed("x", like).dtype,) if dtype.extension else ())


def delivered(result: Memory, out: Any, like: Any) -> AnyArray:
    """`out`, or a new array with elements as those of an argument."""
    return result.view().view(own_type(result.desc.dtype, like)) if out is None else out


def copied(part: MemoryDesc, memory: Memory, engine: Engine | None, out: Any = None, like: Any = None) -> AnyArray:
    """Part of a memory as a new array, of elements as those of an argument, or in `out`."""
    result = target(part.dims, part, out)
    run(Reorder(part, result.desc), {"src": Memory(part, memory.array, padding_is_zero=True)}, result, engine)
    return delivered(result, out, like)


def run(desc: Description, sources: dict[str, Memory], result: Memory, engine: Engine | None) -> None:
    """Plan, which is kept, and execute."""
    Primitive(primitive_desc(desc, engine=engine)).execute(None, **sources, dst=result)
