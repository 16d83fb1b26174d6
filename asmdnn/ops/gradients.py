"""Gradients of array functions: primitives with one result or several, for arrays of any strides."""

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import AnyArray, aligned
from asmdnn.ops.calls import ArrayCall, calls, desc_of, kept_call, layout_of
from asmdnn.ops.typed import kind_of, numpy_type, typed, typed_output
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.types import FLOATS, DataType, f32

Descs = dict[str, MemoryDesc]
Labels = Mapping[str, tuple[str, Any]]  # by the primitive's names: what callers call the argument, and its array
NEEDED = frozenset(("src", "dst", "diff_dst"))  # other inputs may be left out
TYPED = frozenset(  # of the type of diff_dst; other results are f32
    ("diff_src", "diff_weights", "diff_bias", "diff_query", "diff_key", "diff_value")
)


def floats(label: str, value: Any) -> AnyArray:
    """An aligned array of f32, bf16 or f16; other types are refused, and numbers of Python become float32."""
    array = typed(label, value)
    if kind_of(array) not in FLOATS:
        raise InvalidArguments(f"{label} has dtype {array.dtype}, convert it to float32")
    return aligned(label, array)


def gradient(
    key: tuple[Hashable, ...],
    inputs: Labels,
    result: tuple[str, tuple[int, ...]],
    describe: Callable[[Descs], Description],
    out: Any,
    engine: Engine | None,
) -> AnyArray:
    """One result, in `out` if that is given; else as `gradients`."""
    target = None if out is None else typed_output("out", out)
    (found,) = gradients(key, inputs, dict([result]), describe, target, engine)
    return found if out is None else out


def gradients(
    key: tuple[Hashable, ...],
    inputs: Labels,
    results: Mapping[str, tuple[int, ...]],
    describe: Callable[[Descs], Description],
    out: AnyArray | None,
    engine: Engine | None,
) -> tuple[AnyArray, ...]:
    """Compute results of these dims, by the primitive's names; the last one into `out`, if that is given.  They are of
    the type that diff_dst has, or f32.

    key: the function and all its arguments that are no arrays.  inputs that are None are left out.  describe: the
    description, from the descriptors of inputs and results.  Raises InvalidArguments, Unimplemented.
    """
    for name in NEEDED & inputs.keys():
        if inputs[name][1] is None:
            raise InvalidArguments(f"{inputs[name][0]} must be an array, not None")
    given = {name: (label, floats(label, array)) for name, (label, array) in inputs.items() if array is not None}
    arrays: list[AnyArray] = [array for _, array in given.values()]
    kind = kind_of(given["diff_dst"][1]) if "diff_dst" in given else f32
    shapes = tuple((name, array.shape, array.strides, array.dtype) for name, (_, array) in given.items())
    where = None if out is None else (out.shape, out.strides, out.dtype)
    full_key = ("gradients", *key, shapes, tuple(results.items()), where, engine_key(engine))
    call = kept_call(full_key)
    if call is None:
        call = calls.put(full_key, prepare(given, results, kind, describe, out, engine))
    *first, last = results
    held = [array.dtype for array in arrays]
    others = [allocated(np.empty, results[name], numpy_type(kind if name in TYPED else f32, held)) for name in first]
    if out is None and kind != f32 and last in TYPED:
        out = allocated(np.empty, results[last], numpy_type(kind, held))
    return (*others, call([*arrays, *others], out))


def prepare(
    given: Mapping[str, tuple[str, AnyArray]],
    results: Mapping[str, tuple[int, ...]],
    kind: DataType,
    describe: Callable[[Descs], Description],
    out: AnyArray | None,
    engine: Engine | None,
) -> ArrayCall:
    """The call for arrays of these shapes and strides; kind: the type of TYPED results."""
    for label, array in given.values():
        if not array.ndim:
            raise InvalidArguments(f"{label} is a scalar, it must have dims")
    layouts = {name: layout_of(label, array) for name, (label, array) in given.items()}
    descs = {name: desc for name, (desc, _) in layouts.items()}
    for name, dims in results.items():
        descs[name] = MemoryDesc(dims, kind if name in TYPED else f32, LETTERS[: len(dims)])
    last = [*results][-1]
    if out is not None:
        if kind_of(out) not in FLOATS:
            raise InvalidArguments(f"out is of {kind_of(out)}, a gradient is of {', '.join(map(str, FLOATS))}")
        if out.shape != results[last]:
            raise InvalidArguments(f"out has dims {out.shape}, the result has {results[last]}")
        descs[last] = desc_of("out", out)
    primitive = Primitive(primitive_desc(describe(descs), engine=engine))
    labels = [given[name][0] if name in given else name for name in descs]
    copied = [i for i, (_, is_copied) in enumerate(layouts.values()) if is_copied]
    return ArrayCall(primitive, [*descs], [*labels[:-1], "out"], [*descs.values()], copied)


def given_dims(name: str, value: Sequence[int], ndims: int) -> tuple[int, ...]:
    """Dims that a caller gives, such as those of an input.  Raises InvalidArguments."""
    dims: tuple[Any, ...] = tuple(value) if isinstance(value, list | tuple) else ()
    whole = (isinstance(n, int | np.integer) and not isinstance(n, bool) and abs(int(n)) <= sys.maxsize for n in dims)
    if len(dims) != ndims or not all(whole):
        raise InvalidArguments(f"{name} must be {ndims} integers, the dims of an array, not {shown(value)}")
    return tuple(map(int, dims))
