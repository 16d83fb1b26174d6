"""Softmax of arrays."""

from collections.abc import Sequence
from typing import Any

from asmdnn.ops.applied import Ending, apply, same_dims, widened
from asmdnn.ops.arguments import Array, as_f32
from asmdnn.primitives.attributes.attr import AnyPostOp
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.softmax.description import SoftmaxAlgorithm, SoftmaxForward
from asmdnn.types import PropKind


def softmax(
    x: Any,
    axis: int = -1,
    *,
    mask: Any = None,
    scale: float = 1.0,
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """softmax(scale * x + mask) of an f32 array over one axis.

    mask: broadcast to x; -infinity in it takes elements out.  out: anything that exports memory of x's dims; x itself,
    for a dense x.  post_ops run in order on the result, but for Sum.  Raises InvalidArguments, Unimplemented.
    """
    return _softmax("accurate", x, axis, mask, scale, (post_ops, out, engine))


def log_softmax(
    x: Any,
    axis: int = -1,
    *,
    mask: Any = None,
    scale: float = 1.0,
    post_ops: Sequence[AnyPostOp] = (),
    out: Any = None,
    engine: Engine | None = None,
) -> Array:
    """The logarithm of `softmax`, computed without it; the same arguments."""
    return _softmax("log", x, axis, mask, scale, (post_ops, out, engine))


def _softmax(alg: SoftmaxAlgorithm, x: Any, axis: int, mask: Any, scale: float, ending: Ending) -> Array:
    array = as_f32("x", x)
    inputs = {"src": ("x", array), "mask": ("mask", widened(mask, "mask", array.ndim))}
    return apply(
        ("softmax", alg, axis, scale),
        inputs,
        lambda descs, dst: SoftmaxForward(
            PropKind.forward_inference, alg, descs["src"], dst, axis, descs.get("mask"), scale
        ),
        same_dims("src"),
        *ending,
    )
