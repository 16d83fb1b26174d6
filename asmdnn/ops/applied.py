"""Primitives of one result on arrays: what the functions of this package share that are a description and no more."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.foreign import as_array
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import F32, AnyArray, AnyDataType, chain_of
from asmdnn.ops.calls import ArrayCall, calls, desc_of, kept_call, layout_of
from asmdnn.ops.exact_words import are_words, check_words
from asmdnn.ops.typed import numpy_type, result_type, typed, typed_output
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.types import f32, s32

Descs = dict[str, MemoryDesc]
Ending = tuple[Sequence[AnyPostOp | str], Any, Engine | None, AnyDataType | None]  # post_ops, out, engine, dtype


def apply(
    key: tuple[Hashable, ...],
    inputs: Mapping[str, tuple[str, Any]],
    describe: Callable[[Descs, MemoryDesc], Description],
    result_dims: Callable[[Descs], tuple[int, ...]],
    ending: Ending,
) -> AnyArray:
    """Compute into `out`, or into a new array of `dtype`, or else of the first input's type; returns it.

    key: the function and all its arguments that are no arrays.  inputs: by the primitive's names, the label of the
    function's argument and its array; those that are None are left out, but for the first.  describe: the description
    from the inputs' descriptors and the result's.  `out` may be the first input where the primitive works in place.
    Raises InvalidArguments, Unimplemented.
    """
    given: dict[str, tuple[str, AnyArray]] = {}
    for name, (label, value) in inputs.items():
        if value is not None or not given:
            given[name] = label, typed(label, value)
    return compute(key, given, describe, result_dims, ending)


def compute(
    key: tuple[Hashable, ...],
    given: Mapping[str, tuple[str, AnyArray]],
    describe: Callable[[Descs, MemoryDesc], Description],
    result_dims: Callable[[Descs], tuple[int, ...]],
    ending: Ending,
) -> AnyArray:
    """`apply` on arrays that have been read."""
    post_ops, out, engine, dtype = ending
    arrays: list[AnyArray] = []
    target = None if out is None else typed_output("out", out)
    chain = chain_of(post_ops)
    where = None if target is None else layout_key(target)
    parts = [*key, where, dtype, chain, engine_key(engine)]
    for name, (_, array) in given.items():  # as `layout_key`, without a call
        arrays.append(array)
        parts += (name, array.shape, array.strides, None if array.dtype is F32 else array.dtype)
    full_key = tuple(parts)
    call = kept_call(full_key)
    if call is None:
        if type(result_dims) is SameDims and not given[result_dims.name][1].ndim:
            return of_scalars(key, given, describe, result_dims, (chain, target, engine, dtype), out)
        call = calls.put(full_key, prepare(given, describe, result_dims, (target, dtype), Attr(chain), engine))
    if chain:
        arrays += [memory.array for op in chain if type(op) is PostOp for memory in op.data.values()]
    if call.target.dtype is not f32 and call.target.dtype == s32 and are_words(given.values()):
        return of_words(call, given, arrays, target, out)
    result = call(arrays, target)
    return out if out is not None else with_type(result, call, (array.dtype for _, array in given.values()))


def with_type(result: AnyArray, call: ArrayCall, given: Iterable[np.dtype[Any]]) -> AnyArray:
    """A new array of a call with numpy's type for its elements, by the types of arguments."""
    return result if result.dtype is F32 else result.view(numpy_type(call.target.dtype, given))


def of_words(
    call: ArrayCall,
    given: Mapping[str, tuple[str, AnyArray]],
    arrays: list[AnyArray],
    target: AnyArray | None,
    out: Any,
) -> AnyArray:
    """The call from s32 to s32, whose integers are exact, or InvalidArguments; `out` is written before its own are."""
    check_words(given.values(), "convert it to float32, or use numpy")
    result = call(arrays, target)
    check_words([("the result", result)], "give dtype=f32, which rounds it, or use numpy")
    return result if out is None else out


def of_scalars(
    key: tuple[Hashable, ...],
    given: Mapping[str, tuple[str, AnyArray]],
    describe: Callable[[Descs, MemoryDesc], Description],
    result_dims: Callable[[Descs], tuple[int, ...]],
    ending: Ending,
    out: Any,
) -> AnyArray:
    """`compute` where the array has no dims, nor has the result: by views of one dim, as no descriptor has none."""
    post_ops, target, engine, dtype = ending
    lines = {name: (label, array.reshape(array.shape or 1)) for name, (label, array) in given.items()}
    if target is not None and target.ndim:
        raise InvalidArguments(f"out has dims {target.shape}, the result has ()")
    place = None if target is None else target.reshape(1)
    result = compute(key, lines, describe, result_dims, (post_ops, place, engine, dtype))
    return result.reshape(()) if out is None else out


def layout_key(array: AnyArray) -> tuple[Hashable, ...]:
    """What a call depends on of an array."""
    if array.dtype is F32:
        return array.shape, array.strides
    return array.shape, array.strides, array.dtype


def prepare(
    given: Mapping[str, tuple[str, AnyArray]],
    describe: Callable[[Descs, MemoryDesc], Description],
    result_dims: Callable[[Descs], tuple[int, ...]],
    wanted: tuple[AnyArray | None, AnyDataType | None],
    attr: Attr,
    engine: Engine | None,
) -> ArrayCall:
    """The call for arrays of these shapes and strides; wanted: `out`, and the type of the result.

    Raises InvalidArguments, Unimplemented.
    """
    out, dtype = wanted
    for label, array in given.values():
        if not array.ndim:
            raise InvalidArguments(f"{label} is a scalar, it must have dims")
    layouts = {name: layout_of(label, array) for name, (label, array) in given.items()}
    descs = {name: desc for name, (desc, _) in layouts.items()}
    dims = result_dims(descs)
    if out is not None and out.shape != dims:
        raise InvalidArguments(f"out has dims {out.shape}, the result has {dims}")
    if out is None and attr.reads_dst():
        raise InvalidArguments("out must be given, post-op Sum adds what it holds")
    kind = result_type(dtype, out, next(iter(descs.values())).dtype)
    dst = MemoryDesc(dims, kind, LETTERS[: len(dims)]) if out is None else desc_of("out", out)
    primitive = Primitive(primitive_desc(describe(descs, dst), attr, engine))
    data = attr.data()
    labels = [label for label, _ in given.values()]
    return ArrayCall(
        primitive,
        [*layouts, *data, "dst"],
        [*labels, *data, "out"],
        [*descs.values(), *(memory.desc for memory in data.values()), dst],
        [i for i, (_, is_copied) in enumerate(layouts.values()) if is_copied],
        in_place=[i for i, name in enumerate(layouts) if (name, "dst") in primitive.pd.plan.in_place],
    )


class SameDims:
    """A result with the dims of an input, which may have none."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, descs: Descs) -> tuple[int, ...]:
        return descs[self.name].dims


def widened(array: Any, label: str, ndim: int, axis: int | None = None) -> Any:
    """An array with dims of 1 in front, or a vector along `axis` of so many dims: views, nothing is copied."""
    if array is None:
        return None
    found = typed(label, array)
    ndim = ndim or 1  # as `of_scalars`
    if axis is not None and found.ndim == 1:
        return found.reshape([-1 if dim == axis % ndim else 1 for dim in range(ndim)])
    if found.ndim > ndim:
        raise InvalidArguments(f"{label} has {counted(found.ndim, 'dim')}, x has {ndim}")
    return found.reshape((1,) * (ndim - found.ndim) + found.shape)


def mask_of_scores(mask: Any, ndim: int) -> Any:
    """A mask as `widened` has it; one of bools becomes what is added to scores: 0 where true, else -infinity."""
    with suppress(InvalidArguments):  # a type that numpy cannot name: `typed` reads it, or says what is wrong with it
        truths = None if mask is None or isinstance(mask, Memory) else as_array("mask", mask)
        if truths is not None and truths.dtype == np.bool_:
            mask = np.where(truths, np.float32(0), np.float32(-np.inf))
    return widened(mask, "mask", ndim)
