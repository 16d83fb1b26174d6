"""Matrix products of arrays of other types than f32, and quantised ones; kept calls of f32 are in matmul.py."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.ops.applied import Descs
from asmdnn.ops.arguments import AnyArray, product_dims, widened
from asmdnn.ops.calls import memory_at
from asmdnn.ops.nibbles import QuantizedWeights
from asmdnn.ops.quantized import Arguments, ProductRequest
from asmdnn.ops.typed import typed
from asmdnn.ops.typed_calls import NONE, Multiplication, multiplied, numbers_of
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.reordering import reorder
from asmdnn.types import f32

TENSORS = {"a": "src", "b": "weights", "out": "dst"}  # and what the primitive calls them
NAMES = {primitive: own for own, primitive in TENSORS.items()}


def typed_matmul(a: Any, b: Any, bias: Any, out: Any, request: ProductRequest) -> AnyArray:
    """The product of arrays of any types that a level multiplies.  Raises InvalidArguments, Unimplemented."""
    if isinstance(b, QuantizedWeights):
        from asmdnn.ops.nibble_products import quantized_matmul  # which few processes need

        return quantized_matmul(a, b, bias, out, request)
    x, y = typed("a", a), b if isinstance(b, Memory) else typed("b", b)
    first, second = x.shape, y.desc.dims if isinstance(y, Memory) else y.shape
    for name, dims in (("a", first), ("b", second)):
        if len(dims) < 2:
            raise InvalidArguments(f"{name} has {counted(len(dims), 'dim')}, it must have at least 2")
    given: dict[str, tuple[str, Any]] = {"src": ("a", x), "weights": ("b", y)}
    if bias is not None:
        array = typed("bias", bias)
        given["bias"] = "bias", array if array.ndim else array.reshape(1)
    ndim, numbers = max(len(first), len(second)), NONE
    if request.has_numbers:
        dims = product_dims(first, second)
        last, depth, columns = 1 << ndim - 1, first[-1], dims[-1]
        others = {"a": (depth, "columns of a", last), "out": (columns, "columns of out", last)}
        numbers = numbers_of(Arguments(TENSORS, "b", "columns of b", columns, last, depth, others=others), request)
    return multiplied(PRODUCT, given, numbers, out, request)


def dims_of(descs: Descs) -> tuple[int, ...]:
    return product_dims(descs["src"].dims, descs["weights"].dims)


def describe(descs: Descs) -> MatMul:
    """All tensors have as many dims as the product."""
    return MatMul(**{name: widened(NAMES.get(name, name), desc, descs["dst"].ndims) for name, desc in descs.items()})


PRODUCT = Multiplication(("typed matmul",), dims_of, describe)


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
