"""Matrix products of arrays of other types than f32, and quantised ones; kept calls of f32 are in matmul.py."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.arrays import data_type_of
from asmdnn.ops.arguments import AnyArray, chain_of, widened
from asmdnn.ops.nibbles import QuantizedWeights
from asmdnn.ops.product_request import ProductRequest
from asmdnn.ops.typed import INTEGERS, named, numpy_type, result_type, typed
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.primitive import Primitive
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reordering import reorder
from asmdnn.types import DATA_TYPES, DataType, f32, s32

TENSORS = {"a": "src", "b": "weights", "out": "dst"}  # and what the primitive calls them


def typed_matmul(a: Any, b: Any, bias: Any, out: Any, request: ProductRequest) -> AnyArray:
    """The product of arrays of any types that a level multiplies.  Raises InvalidArguments, Unimplemented."""
    if isinstance(b, QuantizedWeights):
        from asmdnn.ops.quantized import quantized_matmul  # which few processes need

        return quantized_matmul(a, b, bias, out, request)
    given = {"src": typed("a", a), "weights": b if isinstance(b, Memory) else typed("b", b)}
    ndim = max(x.ndim if isinstance(x, np.ndarray) else x.desc.ndims for x in given.values())
    memories = {name: memory_of(name, x, ndim) for name, x in given.items()}
    if bias is not None:
        memories["bias"] = memory_of("bias", typed("bias", bias), ndim)
    quantities = {
        **quantities_of("scales", request.scales, np.float32, memories["weights"].desc.dims[-1]),
        **quantities_of("zero_points", request.zero_points, np.int32, 1),
    }
    if out is not None and not isinstance(out, np.ndarray):
        raise InvalidArguments(f"out must be an array of numpy, where types are not f32 alone, not {shown(out)}")
    result = out
    if result is None:
        dims, kind, numpy = new_result(memories, request, given)
        result = allocated(np.empty, dims, numpy)
    memories["dst"] = memory_of("out", result if out is not None else named(result, kind), ndim)
    attr = Attr(
        chain_of(request.post_ops),
        scales={TENSORS[x]: mask(x, q, ndim) for x, q in quantities_in("scales", quantities).items()},
        zero_points={TENSORS[x]: 0 for x in quantities_in("zero_points", quantities)},
    )
    pd = primitive_desc(MatMul(**{name: memory.desc for name, memory in memories.items()}), attr, request.engine)
    arguments = {f"{TENSORS[x]}_{kind}": Memory.from_array(values) for (x, kind), values in quantities.items()}
    run: Callable[..., None] = Primitive(pd).execute
    run(**memories, **arguments, **attr.data())
    return result


def memory_of(name: str, x: AnyArray | Memory, ndim: int) -> Memory:
    """An array in so many dims, the new ones in front; copied where its strides are none that kernels take."""
    if isinstance(x, Memory):
        return Memory(widened("b", x.desc, ndim), x.array, padding_is_zero=True)
    if x.ndim < 2 and name != "bias":
        raise InvalidArguments(f"{name} has {x.ndim} dims, it must have at least 2")
    wide = x.reshape((1,) * (ndim - x.ndim) + x.shape)
    if name == "out":
        return Memory.from_array(wide)
    try:
        return Memory.from_array(wide)
    except InvalidArguments:
        data_type_of(x.dtype)  # or it is the type
        return Memory.from_array(allocated(np.ascontiguousarray, wide))


def new_result(
    memories: Mapping[str, Memory], request: ProductRequest, given: Mapping[str, Any]
) -> tuple[tuple[int, ...], DataType, Any]:
    """Dims, type and numpy's: f32 where scales are given, else integers' sums, and the type of equal floats."""
    src, weights = memories["src"].desc, memories["weights"].desc
    try:
        batch = np.broadcast_shapes(src.dims[:-2], weights.dims[:-2])
    except ValueError:
        raise InvalidArguments(f"a has dims {src.dims}, b {weights.dims}: batch dims must be equal or 1") from None
    of_integers = np.dtype(src.dtype.numpy).kind in INTEGERS and not src.dtype.extension
    dtype = result_type(request.dtype, None, f32 if request.scales else s32 if of_integers else src.dtype)
    own = (x.dtype for x in given.values() if isinstance(x, np.ndarray))
    return (*batch, src.dims[-2], weights.dims[-1]), dtype, numpy_type(dtype, own)


def quantities_of(kind: str, given: Mapping[str, Any], numpy: Any, columns: int) -> dict[tuple[str, str], AnyArray]:
    """Scales or zero points as vectors, by tensor and kind: of one number, or of b's columns."""
    if not isinstance(given, Mapping):
        raise InvalidArguments(f"{kind} must map a, b or out to numbers, such as {{'a': 2}}, not {shown(given)}")
    found = {}
    for name, value in given.items():
        if name not in TENSORS:
            raise InvalidArguments(f"{kind} has {shown(name)}, it must be one of {', '.join(TENSORS)}")
        try:
            values = np.asarray(value)
        except Exception:  # whatever the caller's object does
            raise InvalidArguments(f"{kind}[{name!r}] must be numbers, not {shown(value)}") from None
        if values.dtype.kind not in ("iuf" if kind == "scales" else INTEGERS):
            whole = "" if kind == "scales" else "whole "
            raise InvalidArguments(f"{kind}[{name!r}] must be {whole}numbers, not {shown(value)}")
        if values.size not in ((1, columns) if name == "b" else (1,)):
            most = f", or {columns} for the columns of b" if name == "b" and columns > 1 else ""
            raise InvalidArguments(f"{kind}[{name!r}] has {values.size} elements, it must have 1{most}")
        found[name, kind] = allocated(np.ascontiguousarray, values.reshape(-1), numpy)
    return found


def quantities_in(kind: str, found: Mapping[tuple[str, str], AnyArray]) -> dict[str, AnyArray]:
    return {name: values for (name, of), values in found.items() if of == kind}


def mask(name: str, values: AnyArray, ndim: int) -> int:
    """Of b's last dim where columns have scales of their own."""
    return 1 << ndim - 1 if name == "b" and values.size > 1 else 0


def packed_typed(b: AnyArray, engine: Engine | None) -> Memory:
    """A matrix (k, n) of other types than f32 in the format that products read fastest: of src of its own type, or,
    if it is s8, of u8 or s8."""
    plain = typed("b", b)
    if plain.ndim != 2:
        raise InvalidArguments(f"b has {plain.ndim} dims, weights that are packed have 2")
    weights = Memory.from_array(allocated(np.ascontiguousarray, plain))
    kind = weights.desc.dtype
    src = DATA_TYPES["u8"] if kind.name == "s8" else kind
    (k, n) = weights.desc.dims
    tensors = MemoryDesc((1, k), src, "ab"), MemoryDesc((k, n), kind, "any"), MemoryDesc((1, n), f32, "ab")
    pd = primitive_desc(MatMul(*tensors), engine=engine)
    return reorder(weights, pd.plan.tensors["weights"], engine=engine)
