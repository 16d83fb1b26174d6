"""Normalizations of arrays."""

from collections.abc import Sequence
from typing import Any

from asmdnn.ops.applied import SameDims, apply
from asmdnn.ops.arguments import AnyArray, AnyDataType, integer
from asmdnn.ops.gradients import Descs, floats, gradient
from asmdnn.primitives.attributes.post_ops import AnyPostOp
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.normalization.channel_description import BatchNormForward, GroupNormForward
from asmdnn.primitives.normalization.layer_description import LayerNormForward
from asmdnn.primitives.normalization.lrn_backward_description import LRNBackward
from asmdnn.primitives.normalization.lrn_description import LRNAlgorithm, LRNForward
from asmdnn.types import PropKind

INFERENCE = PropKind.forward_inference


def layer_norm(
    x: Any,
    scale: Any = None,
    shift: Any = None,
    *,
    epsilon: float = 1e-5,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift over the last dim of an array, of c elements.

    scale, shift: (c,) or None.  out: anything that exports memory of x's dims; x itself, for a dense x.  post_ops run
    in order on the result, but for Sum.  Raises InvalidArguments, Unimplemented.
    """
    inputs = {"src": ("x", x), "scale": ("scale", scale), "shift": ("shift", shift)}
    return apply(
        ("layer_norm", epsilon),
        inputs,
        lambda descs, dst: LayerNormForward(
            INFERENCE, descs["src"], dst, epsilon, descs.get("scale"), descs.get("shift")
        ),
        SameDims("src"),
        (post_ops, out, engine, dtype),
    )


def rms_norm(
    x: Any,
    scale: Any = None,
    *,
    epsilon: float = 1e-5,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """x / sqrt(mean of x^2 + epsilon) * scale over the last dim; the same arguments as `layer_norm`."""
    return apply(
        ("rms_norm", epsilon),
        {"src": ("x", x), "scale": ("scale", scale)},
        lambda descs, dst: LayerNormForward(INFERENCE, descs["src"], dst, epsilon, descs.get("scale"), rms=True),
        SameDims("src"),
        (post_ops, out, engine, dtype),
    )


def batch_norm(
    x: Any,
    scale: Any = None,
    shift: Any = None,
    mean: Any = None,
    variance: Any = None,
    *,
    epsilon: float = 1e-5,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift for every channel of an array (n, c, ..).

    scale, shift: (c,) or None.  mean, variance: (c,); if both are None, they are those of x.  out: anything that
    exports memory of x's dims; x itself, for a dense x.  post_ops run in order on the result, such as
    `Eltwise("relu")`.  Raises InvalidArguments, Unimplemented.
    """
    inputs = {"src": ("x", x), "mean": ("mean", mean), "variance": ("variance", variance)}
    inputs |= {"scale": ("scale", scale), "shift": ("shift", shift)}
    given = mean is not None or variance is not None
    return apply(
        ("batch_norm", epsilon),
        inputs,
        lambda descs, dst: BatchNormForward(
            prop_kind=INFERENCE,
            src=descs["src"],
            dst=dst,
            epsilon=epsilon,
            scale=descs.get("scale"),
            shift=descs.get("shift"),
            mean=descs.get("mean"),
            variance=descs.get("variance"),
            use_global_stats=given,
        ),
        SameDims("src"),
        (post_ops, out, engine, dtype),
    )


def group_norm(
    x: Any,
    groups: int,
    scale: Any = None,
    shift: Any = None,
    *,
    epsilon: float = 1e-5,
    post_ops: Sequence[AnyPostOp | str] = (),
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """As `batch_norm`, by the mean and the variance of every image and group of channels of x.

    groups: how many, 1 to c; c of them are instance normalization.
    """
    groups = integer("groups", groups)
    return apply(
        ("group_norm", groups, epsilon),
        {"src": ("x", x), "scale": ("scale", scale), "shift": ("shift", shift)},
        lambda descs, dst: GroupNormForward(
            prop_kind=INFERENCE,
            src=descs["src"],
            dst=dst,
            groups=groups,
            epsilon=epsilon,
            scale=descs.get("scale"),
            shift=descs.get("shift"),
        ),
        SameDims("src"),
        (post_ops, out, engine, dtype),
    )


def lrn(
    x: Any,
    size: int = 5,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    alg: LRNAlgorithm = "lrn_across_channels",
    dtype: AnyDataType | None = None,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """x * (k + alpha / n * sum of x^2 over a window)^-beta of an array (n, c, ..); see `LRNForward`.

    The window is of `size` channels, of which n is the number; with "lrn_within_channel" of so many positions along
    each spatial axis.  As torch's local_response_norm for an odd size, as ONNX's LRN for any.
    """
    size = integer("size", size)
    return apply(
        ("lrn", size, alpha, beta, k, alg),
        {"src": ("x", x)},
        lambda descs, dst: LRNForward(
            prop_kind=INFERENCE, alg=alg, src=descs["src"], dst=dst, local_size=size, alpha=alpha, beta=beta, k=k
        ),
        SameDims("src"),
        ((), out, engine, dtype),
    )


def lrn_gradient(
    dy: Any,
    x: Any,
    size: int = 5,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    alg: LRNAlgorithm = "lrn_across_channels",
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of lrn(x, size, ...), for the gradient dy of its result; what powers are of is computed anew.

    Of arrays (n, c, ..) with the same dims, of f32, bf16 or f16; the result has dy's type.
    Raises InvalidArguments, Unimplemented.
    """
    src, numbers = floats("x", x), (integer("size", size), alpha, beta, k)

    def describe(descs: Descs) -> LRNBackward:
        return LRNBackward(alg, descs["src"], descs["diff_dst"], descs["diff_src"], *numbers)

    inputs = {"src": ("x", src), "diff_dst": ("dy", dy)}
    return gradient(("lrn", *numbers, alg), inputs, ("diff_src", src.shape), describe, out, engine)
