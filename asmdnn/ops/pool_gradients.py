"""Gradients of poolings of arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.foreign import as_array
from asmdnn.ops.arguments import F32, AnyArray
from asmdnn.ops.gradients import Descs, Labels, floats, given_dims, gradient
from asmdnn.ops.pooling import Sizes, each, flag
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.types import PoolingAlgorithm, s32


def avg_pool_gradient(
    dy: Any,
    dims: Sequence[int],
    kernel: Sizes,
    *,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    count_include_pad: bool = True,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of avg_pool, for the gradient dy of its result; dims: those of x, (n, c, h, w) and so on.

    dy: f32, bf16 or f16, as the result.
    The window is that of the forward pass; ceil_mode is in the dims of dy.  Raises InvalidArguments, Unimplemented.
    """
    include = flag("count_include_pad", count_include_pad)
    alg: PoolingAlgorithm = "avg_include_padding" if include else "avg_exclude_padding"
    return pool_gradient(alg, dy, dims, (kernel, stride, padding, 1), kept={}, out=out, engine=engine)


def max_pool_gradient(
    dy: Any,
    indices: Any,
    dims: Sequence[int],
    kernel: Sizes,
    *,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    out: Any = None,
    engine: Engine | None = None,
) -> AnyArray:
    """The gradient of x of max_pool, for the gradient dy of its result and the indices that it has returned.

    They are int64, or int32 as jax makes them.  An index that is no pixel of its window is passed over.  All else is as
    in avg_pool_gradient.
    """
    places = as_array("indices", indices)
    if places.dtype not in (np.int64, np.int32) or places.shape != floats("dy", dy).shape:
        raise InvalidArguments(f"indices must be int64 or int32 with the dims of dy, not {places.dtype} {places.shape}")
    words = allocated(places.clip(-1, 2**31 - 1).astype, np.int32, order="C")
    kept = {"indices": ("indices", words.view(F32))}
    return pool_gradient("max", dy, dims, (kernel, stride, padding, dilation), kept=kept, out=out, engine=engine)


def pool_gradient(
    alg: PoolingAlgorithm,
    dy: Any,
    dims: Sequence[int],
    window: tuple[Sizes, Sizes | None, Sizes, Sizes],
    kept: Labels,
    out: Any,
    engine: Engine | None,
) -> AnyArray:
    dst = floats("dy", dy)
    axes = dst.ndim - 2
    if not 1 <= axes <= 3:
        raise InvalidArguments(f"dy has dims {shown(dst.shape)}, 3 to 5 are needed: (n, c, ...)")
    kernel, stride, padding, dilation = window
    sizes = each("kernel", kernel, axes, 1)
    strides = sizes if stride is None else each("stride", stride, axes, 1)
    before = each("padding", padding, axes, 0)
    steps = tuple(n - 1 for n in each("dilation", dilation, axes, 1))

    def describe(descs: Descs) -> PoolingBackward:
        places = descs.get("indices")
        if places is not None:
            places = MemoryDesc(places.dims, s32, strides=places.strides)
        fields = (descs["diff_src"], descs["diff_dst"], sizes, strides, steps, before, before)
        return PoolingBackward(alg, *fields, places)

    inputs = {"diff_dst": ("dy", dst), **kept}
    dims = given_dims("dims", dims, axes + 2)
    return gradient(("pool", alg, sizes, strides, before, steps), inputs, ("diff_src", dims), describe, out, engine)
