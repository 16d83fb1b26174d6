"""Gradients of softmax, layer, RMS and group normalization of arrays."""

from typing import Any

from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import MemoryDesc
from asmdnn.ops.arguments import AnyArray, integer
from asmdnn.ops.gradients import Descs, floats, gradient, gradients
from asmdnn.primitives.channel_gradients.description import GroupNormBackward
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.normalization.channel_description import GroupNormForward, checked_groups
from asmdnn.primitives.normalization.layer_description import LayerNormForward
from asmdnn.primitives.row_gradients.description import LayerNormBackward, SoftmaxBackward
from asmdnn.primitives.softmax.description import SoftmaxAlgorithm
from asmdnn.types import PropKind, f32

LEAST_DIMS = 2  # of what has rows


def softmax_gradient(dy: Any, y: Any, axis: int = -1, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """The gradient of x of softmax(x, axis), for its result y and the gradient dy of that: y * (dy - sum of dy * y).

    Of arrays with the same dims, of f32, bf16 or f16; the result has the type of dy.
    Raises InvalidArguments, Unimplemented.
    """
    return of_softmax("accurate", dy, y, axis, out, engine)


def log_softmax_gradient(dy: Any, y: Any, axis: int = -1, *, out: Any = None, engine: Engine | None = None) -> AnyArray:
    """The same of log_softmax: dy - e^y * sum of dy."""
    return of_softmax("log", dy, y, axis, out, engine)


def of_softmax(alg: SoftmaxAlgorithm, dy: Any, y: Any, axis: int, out: Any, engine: Engine | None) -> AnyArray:
    dst, axis = floats("y", y), integer("axis", axis)

    def describe(descs: Descs) -> SoftmaxBackward:
        return SoftmaxBackward(alg, descs["dst"], descs["diff_dst"], descs["diff_src"], axis)

    inputs = {"dst": ("y", dst), "diff_dst": ("dy", dy)}
    return gradient(("softmax", alg, axis), inputs, ("diff_src", dst.shape), describe, out, engine)


def layer_norm_gradient(
    dy: Any, x: Any, scale: Any = None, *, epsilon: float = 1e-5, engine: Engine | None = None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(dx, dscale, dshift): the gradients of layer_norm(x, scale, shift) over the last axis, for the gradient dy of its
    result; the statistics are computed anew.

    x, dy: of f32, bf16 or f16; dx has dy's type.  dscale, dshift: f32, of the last dim of x.
    Raises InvalidArguments, Unimplemented.
    """
    dx, dscale, dshift = of_norm(dy, x, scale, epsilon, False, engine)
    return dx, dscale, dshift


def rms_norm_gradient(
    dy: Any, x: Any, scale: Any = None, *, epsilon: float = 1e-5, engine: Engine | None = None
) -> tuple[AnyArray, AnyArray]:
    """(dx, dscale): the gradients of rms_norm(x, scale) over the last axis, for the gradient dy of its result;
    types are those of layer_norm_gradient."""
    dx, dscale = of_norm(dy, x, scale, epsilon, True, engine)
    return dx, dscale


def of_norm(dy: Any, x: Any, scale: Any, epsilon: float, rms: bool, engine: Engine | None) -> tuple[AnyArray, ...]:
    """Statistics by the forward pass, then the gradients."""
    src = floats("x", x)
    if src.ndim < LEAST_DIMS:
        raise InvalidArguments(f"x has {counted(src.ndim, 'dim')}, rows and columns are needed: {LEAST_DIMS}")
    rows, columns = src.shape[:-1], src.shape[-1:]

    def forward(descs: Descs) -> LayerNormForward:
        mean, variance = descs.get("mean"), descs["variance"]
        tensors = (PropKind.forward_training, descs["src"], descs["dst"], epsilon)
        return LayerNormForward(*tensors, mean=mean, variance=variance, rms=rms)

    def backward(descs: Descs) -> LayerNormBackward:
        of_rows = (descs["src"], descs["diff_dst"], descs["diff_src"], descs.get("mean"), descs["variance"])
        of_columns = (descs.get("scale"), descs["diff_scale"], descs.get("diff_shift"))
        return LayerNormBackward(*of_rows, epsilon, *of_columns, rms=rms)

    key = ("norm", epsilon, rms)
    means = {} if rms else {"mean": rows}
    *found, _ = gradients(
        (*key, "forward"), {"src": ("x", src)}, {**means, "variance": rows, "dst": src.shape}, forward, None, engine
    )
    statistics = {name: (name, array) for name, array in zip((*means, "variance"), found, strict=True)}
    inputs = {"src": ("x", src), "diff_dst": ("dy", dy), **statistics, "scale": ("scale", scale)}
    shift = {} if rms else {"diff_shift": columns}
    results = {**shift, "diff_scale": columns, "diff_src": src.shape}
    *sums, dx = gradients((*key, "backward"), inputs, results, backward, None, engine)
    return (dx, *reversed(sums))


def group_norm_gradient(
    dy: Any, x: Any, groups: int, scale: Any = None, *, epsilon: float = 1e-5, engine: Engine | None = None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(dx, dscale, dshift): the gradients of group_norm(x, groups, scale, shift), for the gradient dy of its result;
    the statistics are computed anew.

    x, dy: of f32, bf16 or f16; dx has dy's type.  dscale, dshift: f32, a number for each channel.
    Raises InvalidArguments, Unimplemented.
    """
    src = floats("x", x)
    if src.ndim < LEAST_DIMS:
        raise InvalidArguments(f"x has {counted(src.ndim, 'dim')}, images and channels are needed: {LEAST_DIMS}")
    images, channels = src.shape[:2]
    count = checked_groups(groups, MemoryDesc(src.shape, f32, "any"))

    def forward(descs: Descs) -> GroupNormForward:
        tensors = (PropKind.forward_training, descs["src"], descs["dst"], count, epsilon)
        return GroupNormForward(*tensors, mean=descs["mean"], variance=descs["variance"])

    def backward(descs: Descs) -> GroupNormBackward:
        of_images = (descs["src"], descs["diff_dst"], descs["diff_src"], count, descs["mean"], descs["variance"])
        return GroupNormBackward(*of_images, epsilon, descs.get("scale"), descs["diff_scale"], descs["diff_shift"])

    key, statistics = ("group norm", count, epsilon), dict.fromkeys(("mean", "variance"), (images, count))
    mean, variance, _ = gradients(
        (*key, "forward"), {"src": ("x", src)}, {**statistics, "dst": src.shape}, forward, None, engine
    )
    inputs = {"src": ("x", src), "diff_dst": ("dy", dy), "mean": ("mean", mean), "variance": ("variance", variance)}
    results = {**dict.fromkeys(("diff_scale", "diff_shift"), (channels,)), "diff_src": src.shape}
    dscale, dshift, dx = gradients(
        (*key, "backward"), {**inputs, "scale": ("scale", scale)}, results, backward, None, engine
    )
    return dx, dscale, dshift
