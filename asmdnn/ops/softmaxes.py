"""Softmax of arrays."""

from collections.abc import Sequence
from typing import Any

from asmdnn.ops.applied import Ending, SameDims, apply, mask_of_scores
from asmdnn.ops.arguments import AnyArray, AnyDataType, integer
from asmdnn.ops.typed import fractions, typed
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.softmax.description import SoftmaxAlgorithm, SoftmaxForward
from asmdnn.types import PropKind


def softmax(
    x: Any,
    axis: int = -1,
    *,
    mask: Any = None,
    scale: float = 1.0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """softmax(scale * x + mask) of an array over one axis.

    mask: broadcast to x; -infinity in it takes elements out, and so does False in a mask of bools.  out: anything that
    exports memory of x's dims; x itself, for a dense x.  post_ops run in order on the result, but for Sum.
    Raises InvalidArguments, Unimplemented.
    """
    return _softmax("accurate", x, axis, mask, scale, (post_ops, out, engine, dtype))


def log_softmax(
    x: Any,
    axis: int = -1,
    *,
    mask: Any = None,
    scale: float = 1.0,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The logarithm of `softmax`, computed without it; the same arguments."""
    return _softmax("log", x, axis, mask, scale, (post_ops, out, engine, dtype))


def _softmax(alg: SoftmaxAlgorithm, x: Any, axis: int, mask: Any, scale: float, ending: Ending) -> AnyArray:
    array, axis = typed("x", x), integer("axis", axis)
    post_ops, out, engine, dtype = ending
    inputs = {"src": ("x", array), "mask": ("mask", mask_of_scores(mask, array.ndim))}
    return apply(
        ("softmax", alg, axis, scale),
        inputs,
        lambda descs, dst: SoftmaxForward(
            prop_kind=PropKind.forward_inference,
            alg=alg,
            src=descs["src"],
            dst=dst,
            axis=axis,
            mask=descs.get("mask"),
            scale=scale,
        ),
        SameDims("src"),
        (post_ops, out, engine, fractions(dtype, out, array)),
    )
