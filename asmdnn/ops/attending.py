"""Attention on arrays, and its gradients."""

from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.ops.applied import apply, mask_of_scores
from asmdnn.ops.arguments import AnyArray, Array, as_f32
from asmdnn.ops.gradients import Descs, gradients
from asmdnn.ops.typed import typed
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.description import NDIMS, AttentionForward
from asmdnn.primitives.attributes.numbers import check_flag
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import DataType, PropKind


def attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    dtype: DataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """softmax(query key^T * scale + mask) value of arrays, for every head.

    query: (n, heads, rows, d); key: (n, groups, keys, d); value: (n, groups, keys, e); the result (n, heads, rows, e).
    groups divides heads: neighbouring heads share keys and values.  mask: broadcast to (n, heads, rows, keys);
    -infinity hides a key, and so does False in a mask of bools.  causal: row i sees keys up to i + keys - rows.
    scale: 1 / sqrt(d) for None.
    Raises InvalidArguments, Unimplemented.
    """
    check_flag("causal", causal)
    for name, array in (("query", query), ("key", key), ("value", value)):
        if typed(name, array).ndim != NDIMS:
            raise InvalidArguments(f"{name} has {typed(name, array).ndim} dims, attention is of {NDIMS}")
    inputs = {"query": ("query", query), "key": ("key", key), "value": ("value", value)}
    inputs["mask"] = ("mask", mask_of_scores(mask, NDIMS))
    return apply(
        ("attention", causal, scale),
        inputs,
        lambda descs, dst: AttentionForward(
            PropKind.forward_inference, descs["query"], descs["key"], descs["value"], dst, mask=descs.get("mask"),
            scale=0.0 if scale is None else scale, causal=causal,
        ),
        lambda descs: (*descs["query"].dims[:3], descs["value"].dims[3]),
        ((), out, engine, dtype),
    )  # fmt: skip


def attention_gradient(
    dy: Any,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    engine: Engine | None = None,
) -> tuple[Array, Array, Array]:
    """(dquery, dkey, dvalue): the gradients of attention(query, key, value, mask, ...), for the gradient dy of its
    result; probabilities are computed anew.

    query, key, value, mask, causal, scale: those of attention, f32; a mask has no gradient.
    Raises InvalidArguments, Unimplemented.
    """
    check_flag("causal", causal)
    arrays = {"query": as_f32("query", query), "key": as_f32("key", key), "value": as_f32("value", value)}
    for name, array in arrays.items():
        if array.ndim != NDIMS:
            raise InvalidArguments(f"{name} has {array.ndim} dims, attention is of {NDIMS}")

    def describe(descs: Descs) -> AttentionBackward:
        return AttentionBackward(**descs, scale=0.0 if scale is None else scale, causal=causal)

    inputs = {name: (name, array) for name, array in arrays.items()}
    inputs |= {"diff_dst": ("dy", dy), "mask": ("mask", mask_of_scores(mask, NDIMS))}
    results = {f"diff_{name}": array.shape for name, array in arrays.items()}
    dquery, dkey, dvalue = gradients(("attention", causal, scale), inputs, results, describe, None, engine)
    return dquery, dkey, dvalue
