"""Attention on arrays, and its gradients."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory.allocation import allocated
from asmdnn.ops.applied import apply, mask_of_scores
from asmdnn.ops.arguments import F32, AnyArray, AnyDataType
from asmdnn.ops.gradients import Descs, floats, gradients
from asmdnn.ops.typed import typed
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.description import NDIMS, AttentionForward
from asmdnn.primitives.attention.tensors import MOST_SUM
from asmdnn.primitives.attributes.numbers import check_flag
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import PropKind


def attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    return_logsumexp: bool = False,
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> Any:
    """softmax(query key^T * scale + mask) value of arrays, for every head.

    query: (n, heads, rows, d); key: (n, groups, keys, d); value: (n, groups, keys, e); the result (n, heads, rows, e).
    groups divides heads: neighbouring heads share keys and values.  mask: broadcast to (n, heads, rows, keys);
    -infinity hides a key, and so does False in a mask of bools.  causal: row i sees keys up to i + keys - rows.
    scale: 1 / sqrt(d) for None.  return_logsumexp: also return the logarithm of the sum of e^score of each row, an f32
    array (n, heads, rows, 1) for attention_gradient.
    Returns a new array, or `out`.
    Raises InvalidArguments, Unimplemented.
    """
    check_flag("causal", causal)
    check_flag("return_logsumexp", return_logsumexp)
    for name, array in (("query", query), ("key", key), ("value", value)):
        if typed(name, array).ndim != NDIMS:
            raise InvalidArguments(f"{name} has {counted(typed(name, array).ndim, 'dim')}, attention is of {NDIMS}")
    inputs = {"query": ("query", query), "key": ("key", key), "value": ("value", value)}
    inputs["mask"] = ("mask", mask_of_scores(mask, NDIMS))
    rows = typed("query", query).shape[:3]
    sums = allocated(np.empty, (*rows, 1), np.float32) if return_logsumexp else None
    inputs["logsumexp"] = ("logsumexp", sums)  # written, into memory that goes in as if it were an input
    result = apply(
        ("attention", causal, scale),
        inputs,
        lambda descs, dst: AttentionForward(
            PropKind.forward_inference, descs["query"], descs["key"], descs["value"], dst, mask=descs.get("mask"),
            scale=0.0 if scale is None else scale, causal=causal, logsumexp=descs.get("logsumexp"),
        ),
        lambda descs: (*descs["query"].dims[:3], descs["value"].dims[3]),
        ((), out, engine, dtype),
    )  # fmt: skip
    return (result, sums) if return_logsumexp else result


def attention_gradient(
    dy: Any,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    logsumexp: Any = None,
    engine: Engine | None = None,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(dquery, dkey, dvalue): the gradients of attention(query, key, value, mask, ...), for the gradient dy of its
    result; probabilities are computed anew.

    query, key, value, mask, causal, scale: those of attention; a mask has no gradient.  logsumexp: what attention has
    returned beside its result, which saves finding the maxima and sums of rows again; they are found where one of it
    is beyond 1024, too large to be exact.  Results are of dy's type.
    Raises InvalidArguments, Unimplemented.
    """
    check_flag("causal", causal)
    arrays = {"query": floats("query", query), "key": floats("key", key), "value": floats("value", value)}
    for name, array in arrays.items():
        if array.ndim != NDIMS:
            raise InvalidArguments(f"{name} has {counted(array.ndim, 'dim')}, attention is of {NDIMS}")

    def describe(descs: Descs) -> AttentionBackward:
        return AttentionBackward(**descs, scale=0.0 if scale is None else scale, causal=causal)

    inputs = {name: (name, array) for name, array in arrays.items()}
    inputs |= {"diff_dst": ("dy", dy), "mask": ("mask", mask_of_scores(mask, NDIMS))}
    inputs["logsumexp"] = ("logsumexp", exact_sums(logsumexp, arrays["query"].shape))
    results = {f"diff_{name}": array.shape for name, array in arrays.items()}
    dquery, dkey, dvalue = gradients(("attention", causal, scale), inputs, results, describe, None, engine)
    return dquery, dkey, dvalue


def exact_sums(logsumexp: Any, query: tuple[int, ...]) -> Any:
    """None for one that a mask of large numbers made inexact; what does not fit is refused by who reads it."""
    if logsumexp is None:
        return None
    sums = floats("logsumexp", logsumexp)
    is_read = sums.dtype is not F32 or sums.shape != (*query[:3], 1) or np.abs(sums).max(initial=0) <= MOST_SUM
    return sums if is_read else None
