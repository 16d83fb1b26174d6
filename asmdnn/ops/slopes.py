"""PReLU of arrays."""

from collections.abc import Sequence
from typing import Any

from asmdnn.ops.applied import SameDims, apply, widened
from asmdnn.ops.arguments import AnyArray, AnyDataType
from asmdnn.ops.typed import typed
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.prelu import PReLUForward
from asmdnn.types import PropKind


def prelu(
    x: Any,
    weights: Any,
    *,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """x where it is positive, else weights * x, of arrays.

    weights: a vector for the channels, dim 1 of x (of a vector x its only one); else broadcast to x.  out: anything
    that exports memory of x's dims; x itself, for a dense x.  post_ops run in order on the result.
    Raises InvalidArguments, Unimplemented.
    """
    array = typed("x", x)
    vector = widened(typed("weights", weights), "weights", array.ndim, axis=min(1, array.ndim - 1))
    return apply(
        ("prelu",),
        {"src": ("x", array), "weights": ("weights", vector)},
        lambda descs, dst: PReLUForward(PropKind.forward_inference, descs["src"], descs["weights"], dst),
        SameDims("src"),
        (post_ops, out, engine, dtype),
    )
