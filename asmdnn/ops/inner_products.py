"""Inner products of arrays: fully connected layers, of every type that a level multiplies."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.ops.applied import layout_key
from asmdnn.ops.arguments import F32, AnyArray, AnyDataType, chain_of
from asmdnn.ops.calls import ArrayCall, calls, desc_of, kept_call, layout_of
from asmdnn.ops.quantized import NOTHING, Arguments, ProductRequest, attr_of
from asmdnn.ops.typed import numpy_type, result_type, typed, typed_output
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.inner_product.inner_product import MOST_DIMS, InnerProductForward
from asmdnn.types import AccumulationMode, FpMathMode

TENSORS = {"x": "src", "weights": "weights", "out": "dst"}  # and what the primitive calls them
CHANNELS = 1  # the mask of weights' output channels


def inner_product(
    x: Any,
    weights: Any,
    bias: Any = None,
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    scales: Mapping[str, Any] = NOTHING,
    zero_points: Mapping[str, Any] = NOTHING,
    fpmath_mode: FpMathMode = "strict",
    accumulation_mode: AccumulationMode = "strict",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """A fully connected layer: out[n, o] = bias[o] + the sum over c and positions of x[n, c, ..] * weights[o, c, ..].

    x: (n, c) with up to three spatial dims; weights: (o, c) with the same ones, or a Memory in any format of the
    primitive's; bias: (o,) or None.  Arrays may have any strides that are not negative; others are copied.  post_ops
    run in order on the result; `Sum` adds what `out` held.  Returns a new array (n, o), or `out`: anything that exports
    memory of these dims, strided too.
    Types are those of `matmul`, and so are the modes; scales and zero points are of "x", "weights" and "out", those of
    weights for each of o, or one.  The result has `dtype`; without it x's type, but s32 of integers, f32 with scales.
    Raises InvalidArguments for what does not fit, Unimplemented for types that the level does not multiply.
    """
    packed = weights.desc if type(weights) is Memory else None
    arrays = {"src": typed("x", x), "weights": typed("weights", weights) if packed is None else weights.array}
    if bias is not None:
        arrays["bias"] = typed("bias", bias)
    channels = check_dims(arrays["src"].shape, arrays["weights"].shape if packed is None else packed.dims)
    numbers = NONE if scales is zero_points is NOTHING else numbers_of(scales, zero_points, channels)
    modes = fpmath_mode, accumulation_mode
    request = ProductRequest(chain_of(post_ops), dtype, scales, zero_points, engine, modes)
    return compute(arrays, packed, out, numbers, request)


class Quantities(NamedTuple):
    """Scales and zero points.  masks, points: by the primitive's names of tensors; arrays: by those of arguments."""

    masks: Mapping[str, int]
    points: Mapping[str, int]
    arrays: Mapping[str, AnyArray]

    @property
    def key(self) -> tuple[Any, ...]:
        """What a call depends on: which there are, and for what."""
        return tuple(self.masks.items()), tuple(self.points)


NONE = Quantities(NOTHING, NOTHING, NOTHING)


def numbers_of(scales: Mapping[str, Any], zero_points: Mapping[str, Any], channels: int) -> Quantities:
    """Those of a call.  Raises InvalidArguments."""
    arguments = Arguments(TENSORS, "weights", "output channels", channels, CHANNELS)
    factors, points = arguments.vectors("scales", scales), arguments.vectors("zero_points", zero_points)
    arrays = {f"{TENSORS[x]}_scales": values for x, values in factors.items()}
    arrays |= {f"{TENSORS[x]}_zero_points": values for x, values in points.items()}
    masks = {TENSORS[x]: CHANNELS * (values.size > 1) for x, values in factors.items()}
    return Quantities(masks, {TENSORS[x]: 0 for x in points}, arrays)


def check_dims(x: tuple[int, ...], weights: tuple[int, ...]) -> int:
    """The output channels.  Raises InvalidArguments unless weights are for such an x."""
    if not 2 <= len(x) <= MOST_DIMS:
        raise InvalidArguments(f"x has {counted(len(x), 'dim')}, it must have 2 to {MOST_DIMS}")
    if len(weights) != len(x) or weights[1:] != x[1:]:
        raise InvalidArguments(f"weights has dims {weights}, x {x}: all but the first must be equal")
    return weights[0]


def compute(
    arrays: Mapping[str, AnyArray],
    packed: MemoryDesc | None,
    out: Any,
    numbers: Quantities,
    request: ProductRequest,
) -> AnyArray:
    """By a call that is kept; packed: the format of weights that are in one."""
    target = where = None
    if out is not None:
        target = typed_output("out", out)
        where = layout_key(target)
    chain, engine = chain_of(request.post_ops), request.engine
    shapes = tuple([(name, *layout_key(array)) for name, array in arrays.items()])
    asked = chain, request.modes, request.dtype, numbers.key, engine_key(engine)
    key = ("inner_product", shapes, packed, where, asked)
    call = kept_call(key)
    if call is None:
        call = calls.put(key, prepare(arrays, packed, target, numbers, request))
    operands = [*arrays.values(), *numbers.arrays.values()]
    if chain:
        operands += [memory.array for op in chain if type(op) is PostOp for memory in op.data.values()]
    result = call(operands, target)
    if out is not None or result.dtype is F32:
        return result if out is None else out
    return result.view(numpy_type(call.target.dtype, [array.dtype for array in arrays.values()]))


def prepare(
    arrays: Mapping[str, AnyArray],
    packed: MemoryDesc | None,
    out: AnyArray | None,
    numbers: Quantities,
    request: ProductRequest,
) -> ArrayCall:
    """The call for arrays of these shapes, strides and types.  Raises InvalidArguments, Unimplemented."""
    labels = {"src": "x", "weights": "weights", "bias": "bias"}
    layouts = {name: layout_of(labels[name], x) for name, x in arrays.items() if packed is None or name != "weights"}
    if packed is not None:
        layouts["weights"] = packed, False
    layouts = {name: layouts[name] for name in arrays}  # in the order of the call's arrays
    descs = {name: desc for name, (desc, _) in layouts.items()}
    chain = chain_of(request.post_ops)
    attr = attr_of(chain, request.modes, scales=numbers.masks, zero_points=numbers.points)
    if out is None and attr.reads_dst():
        raise InvalidArguments("out must be given, post-op Sum adds what it holds")
    dims = descs["src"].dims[0], descs["weights"].dims[0]
    usual, _ = request._replace(dtype=None).result(descs["src"].dtype, ())
    kind = result_type(request.dtype, out, usual)
    dst = MemoryDesc(dims, kind, "ab") if out is None else desc_of("out", out)
    if dst.dims != dims:
        raise InvalidArguments(f"out has dims {dst.dims}, the result has {dims}")
    if "bias" in descs and descs["bias"].dims != dims[1:]:
        raise InvalidArguments(
            f"bias has dims {descs['bias'].dims}, it must be ({dims[1]},), one for each row of weights"
        )
    desc = InnerProductForward(descs["src"], descs["weights"], dst, descs.get("bias"))
    primitive = Primitive(primitive_desc(desc, attr, request.engine))
    data = attr.data()
    vectors = {name: desc_of(name, values) for name, values in numbers.arrays.items()}
    vectors |= {name: memory.desc for name, memory in data.items()}
    return ArrayCall(
        primitive,
        [*layouts, *vectors, "dst"],
        [*(labels[name] for name in layouts), *vectors, "out"],
        [*descs.values(), *vectors.values(), dst],
        [i for i, (_, is_copied) in enumerate(layouts.values()) if is_copied],
    )
