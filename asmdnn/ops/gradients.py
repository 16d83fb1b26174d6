"""Gradients of array functions: primitives with one result or several, for arrays of any strides."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import F32, AnyArray, Array, as_f32, output
from asmdnn.ops.calls import ArrayCall, calls, desc_of, layout_of
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.types import f32

Descs = dict[str, MemoryDesc]
Labels = Mapping[str, tuple[str, Any]]  # by the primitive's names: what callers call the argument, and its array
NEEDED = frozenset(("src", "dst", "diff_dst"))  # other inputs may be left out
find = calls.entries.get


def gradient(
    key: tuple[Hashable, ...],
    inputs: Labels,
    result: tuple[str, tuple[int, ...]],
    describe: Callable[[Descs], Description],
    out: Any,
    engine: Engine | None,
) -> Array:
    """One result, in `out` if that is given; else as `gradients`."""
    target = None if out is None else output("out", out)
    (found,) = gradients(key, inputs, dict([result]), describe, target, engine)
    return found if out is None else out


def gradients(
    key: tuple[Hashable, ...],
    inputs: Labels,
    results: Mapping[str, tuple[int, ...]],
    describe: Callable[[Descs], Description],
    out: Array | None,
    engine: Engine | None,
) -> tuple[Array, ...]:
    """Compute results of these dims, by the primitive's names; the last one into `out`, if that is given.

    key: the function and all its arguments that are no arrays.  inputs that are None are left out.  describe: the
    description, from the descriptors of inputs and results.  Raises InvalidArguments, Unimplemented.
    """
    for name in NEEDED & inputs.keys():
        if inputs[name][1] is None:
            raise InvalidArguments(f"{inputs[name][0]} must be an array, not None")
    given = {name: (label, as_f32(label, array)) for name, (label, array) in inputs.items() if array is not None}
    arrays: list[AnyArray] = [array for _, array in given.values()]
    shapes = tuple((name, array.shape, array.strides) for name, (_, array) in given.items())
    where = None if out is None else (out.shape, out.strides)
    full_key = ("gradients", *key, shapes, tuple(results.items()), where, engine_key(engine))
    try:
        call = find(full_key)
    except Exception:  # what cannot be hashed or compared is nothing that prepare() takes
        call = None
    if call is None:
        call = calls.put(full_key, prepare(given, results, describe, out, engine))
    *first, _ = results.values()
    others = [allocated(np.empty, dims, F32) for dims in first]
    return (*others, call([*arrays, *others], out))


def prepare(
    given: Mapping[str, tuple[str, Array]],
    results: Mapping[str, tuple[int, ...]],
    describe: Callable[[Descs], Description],
    out: Array | None,
    engine: Engine | None,
) -> ArrayCall:
    """The call for arrays of these shapes and strides."""
    for label, array in given.values():
        if not array.ndim:
            raise InvalidArguments(f"{label} is a scalar, it must have dims")
    layouts = {name: layout_of(label, array) for name, (label, array) in given.items()}
    descs = {name: desc for name, (desc, _) in layouts.items()}
    descs |= {name: MemoryDesc(dims, f32, LETTERS[: len(dims)]) for name, dims in results.items()}
    last = [*results][-1]
    if out is not None:
        if out.shape != results[last]:
            raise InvalidArguments(f"out has dims {out.shape}, the result has {results[last]}")
        descs[last] = desc_of("out", out)
    primitive = Primitive(primitive_desc(describe(descs), engine=engine))
    labels = [given[name][0] if name in given else name for name in descs]
    copied = [i for i, (_, is_copied) in enumerate(layouts.values()) if is_copied]
    return ArrayCall(primitive, [*descs], [*labels[:-1], "out"], [*descs.values()], copied)


def dims_of(name: str, value: Sequence[int], ndims: int) -> tuple[int, ...]:
    """Dims that a caller gives, such as those of an input.  Raises InvalidArguments."""
    dims: tuple[Any, ...] = tuple(value) if isinstance(value, list | tuple) else ()
    if len(dims) != ndims or not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in dims):
        raise InvalidArguments(f"{name} must be {ndims} integers, the dims of an array, not {shown(value)}")
    return tuple(map(int, dims))
