"""ATen's layers: convolutions, products, normalization, attention."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asmdnn.aten.values import Rewriter, Traced, repeated, rule


@rule("linear.default")
def _linear(c: Rewriter, x: Traced, weight: Traced, bias: Traced | None = None) -> Any:
    return _product(c, x, transposed(c, weight), bias)


def transposed(c: Rewriter, weight: Traced) -> Any:
    """Weights turned; those that are data as a view, since they are packed from any order."""
    if weight.data is not None:
        turned = weight.name and f"{weight.name} transposed"
        return Traced(weight.data.T, weight.shape[::-1], weight.dtype, turned)
    return c.apply("Transpose", weight, perm=[1, 0])


def _product(c: Rewriter, x: Any, y: Any, bias: Any) -> Any:
    found = c.apply("MatMul", x, y)
    return found if bias is None else c.apply("Add", found, bias)


@rule("matmul.default", "mm.default", "bmm.default", "mv.default", "dot.default")
def _matmul(c: Rewriter, x: Traced, y: Traced) -> Any:
    return c.apply("MatMul", x, y)


@rule("addmm.default", "baddbmm.default")
def _addmm(c: Rewriter, bias: Traced, x: Traced, y: Traced, *, beta: float = 1, alpha: float = 1) -> Any:
    found = c.apply("MatMul", x, y)
    if alpha != 1:
        found = c.apply("Mul", found, np.float32(alpha))
    return found if beta == 0 else c.apply("Add", found, bias if beta == 1 else c.apply("Mul", bias, np.float32(beta)))


@rule("bilinear.default")
def _bilinear(c: Rewriter, x: Traced, y: Traced, weight: Traced, bias: Traced | None = None) -> Any:
    """Of all pairs of numbers of x and y, each pair a column."""
    pairs = c.apply("Mul", c.reshape(x, (*x.shape, 1)), c.reshape(y, (*y.shape[:-1], 1, y.shape[-1])))
    columns = x.shape[-1] * y.shape[-1]
    flat = c.reshape(weight, (weight.shape[0], columns)) if weight.data is None else weight.data.reshape(-1, columns).T
    turned = flat if weight.data is not None else c.apply("Transpose", flat, perm=[1, 0])
    found = c.apply("MatMul", c.reshape(pairs, (*x.shape[:-1], columns)), turned)
    return found if bias is None else c.apply("Add", found, bias)


BAGS = ("ReduceSum", "ReduceMean", "ReduceMax")  # by ATen's numbers


@rule("_embedding_bag.default", "_embedding_bag_forward_only.default")
def _embedding_bag(
    c: Rewriter, table: Traced, indices: Traced, offsets: Traced, scales: bool = False, mode: int = 0,
    sparse: bool = False, weights: Traced | None = None, has_end: bool = False, padding: int = -1,
) -> Any:  # fmt: skip
    """Bags of one size; the other results are what gradients need."""
    bags = c.shape[0]
    size = indices.shape[0] // max(bags, 1)
    starts = None if offsets.data is None else offsets.data[:bags].tolist()
    if (
        padding >= 0
        or starts != list(range(0, size * bags, max(size, 1)))
        or size * bags != indices.shape[0]
        or not size
    ):
        raise c.refuse("bags of several sizes, or with padding")
    rows = c.apply("Gather", table, c.reshape(indices, (bags, size)), axis=0)
    if weights is not None:
        rows = c.apply("Mul", rows, c.reshape(weights, (bags, size, 1)))
    return c.apply(BAGS[mode], rows, np.array([1], np.int64), keepdims=0), None, None, None


@rule("conv1d.default", "conv2d.default", "conv3d.default", "conv1d.padding", "conv2d.padding", "conv3d.padding")
def _conv(
    c: Rewriter,
    x: Traced,
    weight: Traced,
    bias: Traced | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    axes = weight.rank - 2
    dilations = repeated(dilation, axes)
    if isinstance(padding, str):
        total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(dilations, weight.shape[2:], strict=True)]
        pads = [n // 2 for n in total] + [n - n // 2 for n in total]
    else:
        pads = repeated(padding, axes) * 2
    operands = [batched(c, x, axes), weight, bias][: 3 if bias is not None else 2]
    found = c.apply(
        "Conv", *operands, strides=repeated(stride, axes), pads=pads, dilations=dilations, group=groups,
        kernel_shape=list(weight.shape[2:]),
    )  # fmt: skip
    return found if x.rank == axes + 2 else c.reshape(found, c.shape)


def batched(c: Rewriter, x: Traced, axes: int) -> Any:
    """With a dim of images, which torch lets be left out."""
    return x if x.rank == axes + 2 else c.reshape(x, (1, *x.shape))


@rule("convolution.default")
def _convolution(
    c: Rewriter, x: Traced, weight: Traced, bias: Any, stride: Any, padding: Any, dilation: Any, is_transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    if is_transposed:
        return _conv_transpose(
            c,
            x,
            weight,
            bias,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            dilation=dilation,
        )
    return _conv(c, x, weight, bias, stride=stride, padding=padding, dilation=dilation, groups=groups)


@rule("conv_transpose1d.default", "conv_transpose2d.input", "conv_transpose3d.input")
def _conv_transpose(
    c: Rewriter, x: Traced, weight: Traced, bias: Traced | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    axes = weight.rank - 2
    operands = [batched(c, x, axes), weight, bias][: 3 if bias is not None else 2]
    found = c.apply(
        "ConvTranspose", *operands, strides=repeated(stride, axes), pads=repeated(padding, axes) * 2,
        dilations=repeated(dilation, axes), output_padding=repeated(output_padding, axes), group=groups,
        kernel_shape=list(weight.shape[2:]),
    )  # fmt: skip
    return found if x.rank == axes + 2 else c.reshape(found, c.shape)


@rule("batch_norm.default", "_native_batch_norm_legit_no_training.default", "cudnn_batch_norm.default")
def _batch_norm(c: Rewriter, x: Traced, weight: Any, bias: Any, mean: Any, variance: Any, *rest: Any) -> Any:
    if c.name.startswith("batch_norm"):
        training, _, epsilon = rest[:3]
        if training:
            raise c.refuse("a module in training mode: call eval() first")
    else:
        _, epsilon = rest[:2]
    channels = (x.shape[1],)
    weight = np.ones(channels, np.float32) if weight is None else weight
    bias = np.zeros(channels, np.float32) if bias is None else bias
    found = c.apply("BatchNormalization", x, weight, bias, mean, variance, epsilon=float(epsilon))
    return found if c.name.startswith("batch_norm") else (found, None, None)


@rule("layer_norm.default")
def _layer_norm(
    c: Rewriter, x: Traced, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any
) -> Any:
    weight = np.ones(tuple(shape), np.float32) if weight is None else weight
    return c.apply("LayerNormalization", x, weight, *[bias] * (bias is not None), axis=-len(shape), epsilon=float(eps))


@rule("native_layer_norm.default")
def _native_layer_norm(c: Rewriter, x: Traced, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    return _layer_norm(c, x, shape, weight, bias, eps), None, None


@rule("rms_norm.default")
def _rms_norm(c: Rewriter, x: Traced, shape: Sequence[int], weight: Any = None, eps: Any = None) -> Any:
    weight = np.ones(tuple(shape), np.float32) if weight is None else weight
    epsilon = float(np.finfo(np.float32).eps) if eps is None else float(eps)
    return c.apply("RMSNormalization", x, weight, axis=-len(shape), epsilon=epsilon)


@rule("group_norm.default")
def _group_norm(
    c: Rewriter, x: Traced, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any
) -> Any:
    channels = (x.shape[1],)
    weight = np.ones(channels, np.float32) if weight is None else weight
    bias = np.zeros(channels, np.float32) if bias is None else bias
    return c.apply("GroupNormalization", x, weight, bias, num_groups=groups, epsilon=float(eps))


@rule("instance_norm.default")
def _instance_norm(
    c: Rewriter, x: Traced, weight: Any, bias: Any, mean: Any, variance: Any, use_input: bool, momentum: float,
    eps: float, *rest: Any,
) -> Any:  # fmt: skip
    if not use_input:
        raise c.refuse("running statistics")
    channels = (x.shape[1],)
    weight = np.ones(channels, np.float32) if weight is None else weight
    bias = np.zeros(channels, np.float32) if bias is None else bias
    return c.apply("InstanceNormalization", x, weight, bias, epsilon=float(eps))


@rule("scaled_dot_product_attention.default", "_scaled_dot_product_flash_attention_for_cpu.default")
def _attention(
    c: Rewriter, q: Traced, k: Traced, v: Traced, *rest: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if "flash" in c.name:
        dropout_p, is_causal = (*rest, dropout_p, is_causal)[:2] if len(rest) > 1 else (*rest, is_causal)[:2]
    else:
        attn_mask, dropout_p, is_causal = [*rest, *[attn_mask, dropout_p, is_causal][len(rest) :]]
    if dropout_p:
        raise c.refuse(f"dropout of {dropout_p}")
    if q.rank != 4:
        raise c.refuse(f"queries of {q.rank} dims, it takes (batch, heads, length, features)")
    options: dict[str, Any] = {} if scale is None else {"scale": float(scale)}
    mask = [] if attn_mask is None else [attn_mask]
    found = c.apply("Attention", q, k, v, *mask, is_causal=int(is_causal), **options)
    return (found, None) if "flash" in c.name else found
