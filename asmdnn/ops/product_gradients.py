"""Gradients of products of arrays: inner products, whose weights and data are apart, and matrix products."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.gradients import Descs, floats, gradient, gradients
from asmdnn.ops.products import matmul
from asmdnn.ops.shares import in_f32, summed_to
from asmdnn.ops.typed import kind_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.inner_product.inner_product import InnerProductBackwardData, InnerProductBackwardWeights
from asmdnn.types import f32

LEAST_DIMS = 2


def inner_product_input_gradient(dy: Any, weights: Any, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """The gradient of x of inner_product(x, weights, bias), for the gradient dy of its result: sums over o of
    dy[n, o] * weights[o].

    dy: (n, o); weights: (o, c) with up to three spatial dims, which the result has, too: (n, c, ..).  Of f32, bf16 or
    f16; the result has dy's type.  Raises InvalidArguments, Unimplemented.
    """
    dst, weights = matrices(("dy", dy), ("weights", weights))
    dims = (dst.shape[0], *weights.shape[1:])

    def describe(descs: Descs) -> InnerProductBackwardData:
        return InnerProductBackwardData(descs["diff_src"], descs["weights"], descs["diff_dst"])

    inputs = {"weights": ("weights", weights), "diff_dst": ("dy", dst)}
    return gradient(("inner product",), inputs, ("diff_src", dims), describe, out, engine)


def inner_product_weight_gradient(x: Any, dy: Any, *, engine: Engine | None = None) -> tuple[AnyArray, AnyArray]:
    """(dw, db): the gradients of weights and bias of inner_product(x, weights, bias), for the gradient dy of
    its result.

    x: (n, c) with up to three spatial dims; dy: (n, o); dw: (o, c, ..); db: (o,).  Of f32, bf16 or f16; results have
    dy's type.  Raises InvalidArguments, Unimplemented.
    """
    src, dst = matrices(("x", x), ("dy", dy))

    def describe(descs: Descs) -> InnerProductBackwardWeights:
        return InnerProductBackwardWeights(*(descs[name] for name in ("src", "diff_weights", "diff_dst", "diff_bias")))

    outputs = dst.shape[1]
    inputs = {"src": ("x", src), "diff_dst": ("dy", dst)}
    results = {"diff_bias": (outputs,), "diff_weights": (outputs, *src.shape[1:])}
    db, dw = gradients(("inner product", "weights"), inputs, results, describe, None, engine)
    return dw, db


def matmul_gradient(dy: Any, a: Any, b: Any, *, engine: Engine | None = None) -> tuple[AnyArray, AnyArray]:
    """(da, db): the gradients of a and b of matmul(a, b), for the gradient dy of its result: dy b^T and a^T dy, summed
    over batch dims that were broadcast.

    a: (.., m, k); b: (.., k, n); dy: (.., m, n); all of f32, bf16 or f16.  Results have the dims of a and of b, and
    dy's type.  That of a bias is a sum of dy.  Raises InvalidArguments, Unimplemented.
    """
    left, right, dst = matrices(("a", a), ("b", b), ("dy", dy))
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        raise InvalidArguments(f"batch dims of a {left.shape} and b {right.shape} must be 1 or equal") from None
    dims = (*batch, left.shape[-2], right.shape[-1])
    if left.shape[-1] != right.shape[-2] or dst.shape != dims:
        raise InvalidArguments(f"dy has dims {dst.shape}, the product of a {left.shape} and b {right.shape} has {dims}")
    if right.ndim == LEAST_DIMS:  # all rows are those of one matrix
        rows, of_rows = left.reshape(-1, left.shape[-1]), dst.reshape(-1, dst.shape[-1])
        da = of_broadcast(of_rows, right.T, rows.shape, dst, engine)
        return da.reshape(left.shape), of_broadcast(rows.T, of_rows, right.shape, dst, engine)
    return (
        of_broadcast(dst, np.swapaxes(right, -1, -2), left.shape, dst, engine),
        of_broadcast(np.swapaxes(left, -1, -2), dst, right.shape, dst, engine),
    )


def of_broadcast(a: AnyArray, b: AnyArray, dims: tuple[int, ...], like: AnyArray, engine: Engine | None) -> AnyArray:
    """A product of the type of `like`, summed to these dims; of factors of several types as f32."""
    if kind_of(a) != kind_of(b):
        a, b = in_f32(a, engine), in_f32(b, engine)
    whole = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) == dims[:-2]
    kind = kind_of(like) if whole else f32
    product: AnyArray = matmul(a, b, dtype=None if kind_of(a) == kind == f32 else kind, engine=engine)
    return product if whole else summed_to(product, dims, like, engine)


def matrices(*given: tuple[str, Any]) -> list[AnyArray]:
    """Arrays of floats with rows and columns.  Raises InvalidArguments."""
    found = []
    for label, value in given:
        array = floats(label, value)
        if array.ndim < LEAST_DIMS:
            raise InvalidArguments(
                f"{label} has {counted(array.ndim, 'dim')}, rows and columns are needed: {LEAST_DIMS}"
            )
        found.append(array)
    return found
