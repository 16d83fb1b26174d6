"""Gradients of batch normalization of arrays, by the batch's statistics and by given ones."""

from typing import Any

from asmdnn.errors import InvalidArguments, counted
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.gradients import Descs, floats, gradients
from asmdnn.primitives.channel_gradients.description import BatchNormBackward
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.normalization.channel_description import BatchNormForward
from asmdnn.types import PropKind

LEAST_DIMS = 2


def batch_norm_gradient(
    dy: Any,
    x: Any,
    scale: Any = None,
    mean: Any = None,
    variance: Any = None,
    *,
    epsilon: float = 1e-5,
    engine: Engine | None = None,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(dx, dscale, dshift): the gradients of batch_norm(x, scale, shift, mean, variance), for the gradient dy of its
    result.

    x, dy: (n, c, ..), of f32, bf16 or f16; dx has dy's type.  scale: (c,) or None; dscale, dshift: f32[c].  mean,
    variance: (c,), constants of the forward pass; if both are None, they are those of x, which dx goes through.
    Raises InvalidArguments, Unimplemented.
    """
    src = floats("x", x)
    if src.ndim < LEAST_DIMS:
        raise InvalidArguments(f"x has {counted(src.ndim, 'dim')}, images and channels are needed: {LEAST_DIMS}")
    given = mean is not None or variance is not None
    if given and (mean is None or variance is None):
        raise InvalidArguments("mean and variance must both be given, or none of them")
    channels = src.shape[1:2]
    if not given and src.size == channels[0] > 0:
        raise InvalidArguments(f"x of {src.shape} has one value for each channel: give it more, or both statistics")
    if not given:
        mean, variance = statistics(src, epsilon, engine)

    def describe(descs: Descs) -> BatchNormBackward:
        of_images = (descs["src"], descs["diff_dst"], descs["diff_src"], descs["mean"], descs["variance"], epsilon)
        return BatchNormBackward(*of_images, descs.get("scale"), descs["diff_scale"], descs["diff_shift"], given)

    inputs = {"src": ("x", src), "diff_dst": ("dy", dy), "mean": ("mean", mean), "variance": ("variance", variance)}
    results = {"diff_scale": channels, "diff_shift": channels, "diff_src": src.shape}
    key = ("batch norm", epsilon, given)
    dscale, dshift, dx = gradients(key, {**inputs, "scale": ("scale", scale)}, results, describe, None, engine)
    return dx, dscale, dshift


def statistics(src: AnyArray, epsilon: float, engine: Engine | None) -> tuple[AnyArray, AnyArray]:
    """Mean and variance of every channel."""

    def forward(descs: Descs) -> BatchNormForward:
        tensors = (PropKind.forward_training, descs["src"], descs["dst"], epsilon)
        return BatchNormForward(*tensors, mean=descs["mean"], variance=descs["variance"])

    results = {**dict.fromkeys(("mean", "variance"), src.shape[1:2]), "dst": src.shape}
    mean, variance, _ = gradients(
        ("batch norm", epsilon, "forward"), {"src": ("x", src)}, results, forward, None, engine
    )
    return mean, variance
