"""What moves of arrays share: the call of a primitive that computes nothing, so that arrays may be of any type."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.memory import MemoryDesc
from asmdnn.ops.applied import Descs, layout_key, prepare, with_type
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.calls import calls, kept_call
from asmdnn.ops.typed import kind_of, numpy_type, typed, typed_output
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.types import DataType

Labelled = Mapping[str, tuple[str, AnyArray]]  # by the primitive's names: what callers call the argument, and its array
Describe = Callable[[Descs, MemoryDesc], Description]


def moved(
    key: tuple[Hashable, ...],
    given: Labelled,
    describe: Describe,
    dims: Sequence[int],
    out: Any,
    engine: Engine | None,
) -> AnyArray:
    """Elements of arrays in `out`, or in a new array of these dims and of the first array's type; returns it.

    key: the function and all its arguments that are no arrays.  given: arrays that have been read.  describe: the
    description from the inputs' descriptors and the result's.  Raises InvalidArguments.
    """
    arrays = [array for _, array in given.values()]
    target = None if out is None else typed_output("out", out)
    where = None if target is None else layout_key(target)
    full_key = ("moved", *key, where, engine_key(engine), *map(layout_key, arrays))
    call = kept_call(full_key)
    if call is None:
        first, result = arrays[0], tuple(dims)
        if target is not None and kind_of(target) != kind_of(first):
            wanted = f"the result of {kind_of(first)}: give an array of that type"
            raise InvalidArguments(f"out is of {kind_of(target)}, {wanted}")
        call = calls.put(full_key, prepare(given, describe, lambda _: result, (target, None), NO_ATTR, engine))
    kind = arrays[0].dtype  # before the call adds the result to them
    found = call(arrays, target)
    return out if out is not None else with_type(found, call, (kind,))


def array_of(name: str, value: Any) -> AnyArray:
    """The array, which has dims."""
    array = typed(name, value)
    if not array.ndim:
        raise InvalidArguments(f"{name} is a scalar, it must have dims")
    return array


def own_type(dtype: DataType, like: Any) -> np.dtype[Any]:
    """The numpy type of results that have the elements of an argument."""
    return numpy_type(dtype, (typed("x", like).dtype,) if dtype.extension else ())


def copied(label: str, part: AnyArray, engine: Engine | None, out: Any = None) -> AnyArray:
    """A view of an array as a new array, or in `out`."""
    return moved(("copy",), {"src": (label, part)}, copy_of, part.shape, out, engine)


def copy_of(descs: Descs, dst: MemoryDesc) -> Reorder:
    return Reorder(descs["src"], dst)
