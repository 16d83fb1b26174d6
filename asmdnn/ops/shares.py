"""What gradients of array functions are made of: sums over what was broadcast, in f32, rounded once to a type."""

from typing import Any

import numpy as np

from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.elementwise import binary
from asmdnn.ops.reduction import reduce
from asmdnn.ops.sum import weighted_sum
from asmdnn.ops.typed import kind_of, named
from asmdnn.primitives.attributes.post_ops import Eltwise
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import f32


def summed_to(
    array: AnyArray, dims: tuple[int, ...], like: AnyArray, engine: Engine | None, factor: float = 1.0
) -> AnyArray:
    """factor * the sums of an array over all that `dims` are broadcast to, of the type of `like`: a new array."""
    new = array.ndim - len(dims)
    axes = tuple(i for i, n in enumerate(array.shape) if i < new or (n > 1 and dims[i - new] == 1))
    if not axes:
        return weighted_sum([array], [factor], dtype=kind_of(like), engine=engine)
    if not array.size:
        return zeros_of(dims, like).view(like.dtype)
    scale = [Eltwise("linear", factor)] * (factor != 1)
    return reduce(array, "sum", axes, keepdims=True, post_ops=scale, dtype=kind_of(like), engine=engine).reshape(dims)


def of_product(
    a: AnyArray, b: AnyArray, dims: tuple[int, ...], like: AnyArray, engine: Engine | None, factor: float = 1.0
) -> AnyArray:
    """factor * a * b, summed likewise."""
    whole = np.broadcast_shapes(a.shape, b.shape) == dims
    kind = kind_of(like) if whole else f32
    scale = [Eltwise("linear", factor)] * (whole and factor != 1)
    product = binary("mul", a, b, post_ops=scale, dtype=kind, engine=engine)
    return product if whole else summed_to(product, dims, like, engine, factor)


def zeros_of(dims: tuple[int, ...], like: AnyArray) -> AnyArray:
    """Of the type of another array; of one that numpy lacks, in words of that name.  Raises InvalidArguments."""
    kind = kind_of(like)
    MemoryDesc(dims, kind, LETTERS[: len(dims)])  # which says what is wrong with them
    return named(allocated(np.zeros, dims, kind.numpy), kind)


def in_f32(array: Any, engine: Engine | None) -> AnyArray:
    """The same numbers."""
    return array if kind_of(array) == f32 else weighted_sum([array], dtype=f32, engine=engine)
