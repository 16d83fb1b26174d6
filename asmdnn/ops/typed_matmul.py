"""Matrix products of arrays of other types than f32, and quantised ones; kept calls of f32 are in matmul.py."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import AnyArray, check_product_out, product_dims, widened
from asmdnn.ops.calls import memory_at, readable
from asmdnn.ops.nibbles import QuantizedWeights
from asmdnn.ops.quantized import Arguments, ProductRequest, check_typed_output, execute
from asmdnn.ops.typed import named, typed
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.reordering import reorder
from asmdnn.types import f32

TENSORS = {"a": "src", "b": "weights", "out": "dst"}  # and what the primitive calls them


def typed_matmul(a: Any, b: Any, bias: Any, out: Any, request: ProductRequest) -> AnyArray:
    """The product of arrays of any types that a level multiplies.  Raises InvalidArguments, Unimplemented."""
    if isinstance(b, QuantizedWeights):
        from asmdnn.ops.nibble_products import quantized_matmul  # which few processes need

        return quantized_matmul(a, b, bias, out, request)
    given = {"src": typed("a", a), "weights": b if isinstance(b, Memory) else typed("b", b)}
    ndim = max(x.ndim if isinstance(x, np.ndarray) else x.desc.ndims for x in given.values())
    memories = {name: memory_of(name, x, ndim) for name, x in given.items()}
    if bias is not None:
        memories["bias"] = memory_of("bias", typed("bias", bias), ndim)
    dims = product_dims(memories["src"].desc.dims, memories["weights"].desc.dims)
    *_, depth, columns = memories["weights"].desc.dims
    last = 1 << ndim - 1
    others = {"a": (depth, "columns of a", last), "out": (columns, "columns of out", last)}
    arguments = Arguments(TENSORS, "b", "columns of b", columns, last, depth, others=others)
    arguments.check(request)
    check_typed_output(out, request)
    result: AnyArray = out
    if out is None:
        kind, numpy = request.result(memories["src"].desc.dtype, (*given.values(),))
        result = allocated(np.empty, dims, numpy)
    else:
        check_product_out(result.shape, dims)
    memories["dst"] = memory_of("out", result if out is not None else named(result, kind), ndim)
    execute(MatMul(**{name: memory.desc for name, memory in memories.items()}), memories, arguments, request)
    return result


def memory_of(name: str, x: AnyArray | Memory, ndim: int) -> Memory:
    """An array in so many dims, the new ones in front; copied where its strides are none that kernels take."""
    if isinstance(x, Memory):
        return Memory(widened("b", x.desc, ndim), x.array, padding_is_zero=True)
    own = {primitive: own for own, primitive in TENSORS.items()}.get(name, name)
    if x.ndim < 2 and name != "bias":
        raise InvalidArguments(f"{own} has {counted(x.ndim, 'dim')}, it must have at least 2")
    wide = x.reshape((1,) * (ndim - x.ndim) + x.shape)
    return memory_at(own, wide) if own == "out" else readable(own, wide)


def packed_typed(b: AnyArray, engine: Engine | None) -> Memory:
    """A matrix (k, n) of other types than f32 in the format that products read fastest: of src of its own type; that of
    s8 serves u8, too, and zero points."""
    plain = typed("b", b)
    if plain.ndim != 2:
        raise InvalidArguments(f"b has {counted(plain.ndim, 'dim')}, weights that are packed have 2")
    weights = memory_at("b", allocated(np.ascontiguousarray, plain))
    kind = weights.desc.dtype
    (k, n) = weights.desc.dims
    src, wanted = MemoryDesc((1, k), kind, "ab"), MemoryDesc((k, n), kind, "any")
    pd = primitive_desc(MatMul(src, wanted, MemoryDesc((1, n), f32, "ab")), engine=engine)
    return reorder(weights, pd.plan.tensors["weights"], engine=engine)
