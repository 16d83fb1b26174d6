"""Products and convolutions of arrays of any types, by calls that are kept; scales and zero points come beside them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.applied import Descs, layout_key, with_type
from asmdnn.ops.arguments import AnyArray, chain_of
from asmdnn.ops.calls import ArrayCall, calls, desc_of, kept_call, layout_of
from asmdnn.ops.quantized import NOTHING, Arguments, ProductRequest, attr_of
from asmdnn.ops.typed import result_type, typed_output
from asmdnn.primitives.attributes.chain import INTEGERS as WITH_ZERO_POINTS
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import engine_key
from asmdnn.primitives.core.primitive import Primitive

Given = Mapping[str, tuple[str, AnyArray | Memory]]  # by the primitive's names: the caller's, and the tensor


class Numbers(NamedTuple):
    """Scales and zero points.  masks, points, groups: by the primitive's names of tensors, as Attr has them; arrays: by
    those of arguments."""

    masks: Mapping[str, int]
    points: Mapping[str, int]
    groups: Mapping[str, tuple[int, int]]
    arrays: Mapping[str, AnyArray]

    @property
    def key(self) -> tuple[Any, ...]:
        """What a call depends on: which there are, and for what."""
        return tuple(self.masks.items()), tuple(self.points.items()), tuple(self.groups.items())


NONE = Numbers(NOTHING, NOTHING, NOTHING, NOTHING)


def numbers_of(arguments: Arguments, request: ProductRequest) -> Numbers:
    """Those of a call.  Raises InvalidArguments."""
    found = {"scales": arguments.vectors("scales", request.scales)}
    found["zero_points"] = arguments.vectors("zero_points", request.zero_points)
    names = arguments.tensors
    arrays = {f"{names[x]}_{kind}": v.reshape(-1) for kind, vectors in found.items() for x, v in vectors.items()}
    masks, points = ({names[x]: arguments.mask_of(x, v) for x, v in vectors.items()} for vectors in found.values())
    return Numbers(masks, points, arguments.groups(*found.values()), arrays)


class Multiplication(NamedTuple):
    """What is computed.  key: the function and all its arguments that are no arrays; dims: of the result, from the
    descriptors of inputs; describe: the description, from those of inputs and result."""

    key: tuple[Any, ...]
    dims: Callable[[Descs], tuple[int, ...]]
    describe: Callable[[Descs], Description]


def multiplied(what: Multiplication, given: Given, numbers: Numbers, out: Any, request: ProductRequest) -> AnyArray:
    """Compute into `out`, or into a new array; returns it.  A Memory among what is given has a format of its own.

    Raises InvalidArguments, Unimplemented.
    """
    target = None if out is None else typed_output("out", out)
    where = None if target is None else layout_key(target)
    arrays, shapes = list[AnyArray](), list[Any]()
    for _, x in given.values():
        is_packed = type(x) is Memory
        arrays.append(x.array if is_packed else x)  # type: ignore[union-attr, arg-type]
        shapes.append(x.desc if is_packed else layout_key(x))  # type: ignore[union-attr, arg-type]
    chain = chain_of(request.post_ops)
    asked = chain, request.modes, request.dtype, numbers.key, engine_key(request.engine)
    key = (*what.key, *shapes, where, asked)
    call = kept_call(key)
    if call is None:
        call = calls.put(key, prepare(what, given, target, numbers, request))
    dtypes = [x.dtype for x in arrays]
    arrays += numbers.arrays.values()
    if chain:
        arrays += [memory.array for op in chain if type(op) is PostOp for memory in op.data.values()]
    result = call(arrays, target)
    return out if out is not None else with_type(result, call, dtypes)


def prepare(
    what: Multiplication, given: Given, out: AnyArray | None, numbers: Numbers, request: ProductRequest
) -> ArrayCall:
    """The call for arrays of these shapes, strides and types.  Raises InvalidArguments, Unimplemented."""
    layouts = {
        name: (x.desc, False) if isinstance(x, Memory) else layout_of(label, x) for name, (label, x) in given.items()
    }
    descs = {name: desc for name, (desc, _) in layouts.items()}
    chain = chain_of(request.post_ops)
    attr = attr_of(chain, request.modes, scales=numbers.masks, zero_points=numbers.points, groups=numbers.groups)
    if out is None and attr.reads_dst():
        raise InvalidArguments("out must be given, post-op Sum adds what it holds")
    dims, kind = what.dims(descs), result_type(request.dtype, out, request.usual_type(descs["src"].dtype))
    dst = MemoryDesc(dims, kind, LETTERS[: len(dims)]) if out is None else desc_of("out", out)
    if dst.dims != dims:
        raise InvalidArguments(f"out has dims {dst.dims}, the result has {dims}")
    check_points(numbers, {**descs, "dst": dst}, {name: label for name, (label, _) in given.items()})
    primitive = Primitive(primitive_desc(what.describe({**descs, "dst": dst}), attr, request.engine))
    data = attr.data()
    vectors = {name: desc_of(name, values) for name, values in numbers.arrays.items()}
    vectors |= {name: memory.desc for name, memory in data.items()}
    return ArrayCall(
        primitive,
        [*layouts, *vectors, "dst"],
        [*(label for label, _ in given.values()), *vectors, "out"],
        [*descs.values(), *vectors.values(), dst],
        [i for i, (_, is_copied) in enumerate(layouts.values()) if is_copied],
    )


def check_points(numbers: Numbers, descs: Descs, labels: Mapping[str, str]) -> None:
    """Raise Unimplemented for zero points of floats."""
    for name in numbers.points:
        kind = descs[name].dtype
        if kind not in WITH_ZERO_POINTS and kind.in_a_byte == 1:
            where = labels.get(name, "out")
            raise Unimplemented(f"zero points are for integers, and {where} is {kind}: leave them out")
