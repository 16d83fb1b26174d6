"""torch's whole attention and encoder layers, which its modules take where no gradient is required."""

from typing import Any

import numpy as np

from asmdnn.aten.layer_rules import transposed
from asmdnn.aten.values import Rewriter, Traced, rule


@rule("_native_multi_head_attention.default")
def _multi_head(
    c: Rewriter, q: Traced, k: Traced, v: Traced, features: int, heads: int, weight: Traced, bias: Traced, out: Traced,
    out_bias: Traced, mask: Any = None, need_weights: bool = True, average: bool = True, mask_type: Any = None,
) -> Any:  # fmt: skip
    if need_weights or mask is not None or not q is k is v:
        raise c.refuse("weights, masks, or keys that are no queries")
    return self_attention(c, q.symbol, q.shape, heads, (weight, bias, out, out_bias)), None


@rule("_transformer_encoder_layer_fwd.default")
def _encoder_layer(
    c: Rewriter, x: Traced, features: int, heads: int, weight: Traced, bias: Traced, out: Traced, out_bias: Traced,
    use_gelu: bool, norm_first: bool, eps: float, scale1: Traced, shift1: Traced, scale2: Traced, shift2: Traced,
    up: Traced, up_bias: Traced, down: Traced, down_bias: Traced, mask: Any = None, mask_type: Any = None,
) -> Any:  # fmt: skip
    """Attention and two products, each with a residual: ATen native/transformers/transformer.cpp."""
    if mask is not None:
        raise c.refuse("masks")

    def normed(y: Any, scale: Traced, shift: Traced) -> Any:
        return c.apply("LayerNormalization", y, scale, shift, axis=-1, epsilon=float(eps))

    def attended(y: Any) -> Any:
        return self_attention(c, y, x.shape, heads, (weight, bias, out, out_bias))

    def widened(y: Any) -> Any:
        inner = c.apply("Gelu" if use_gelu else "Relu", product(c, y, up, up_bias))
        return product(c, inner, down, down_bias)

    y = x.symbol
    if norm_first:
        y = c.apply("Add", y, attended(normed(y, scale1, shift1)))
        return c.apply("Add", y, widened(normed(y, scale2, shift2)))
    y = normed(c.apply("Add", y, attended(y)), scale1, shift1)
    return normed(c.apply("Add", y, widened(y)), scale2, shift2)


def product(c: Rewriter, x: Any, weight: Traced, bias: Traced) -> Any:
    return c.apply("Add", c.apply("MatMul", x, transposed(c, weight)), bias)


def self_attention(
    c: Rewriter, x: Any, shape: tuple[int, ...], heads: int, weights: tuple[Traced, Traced, Traced, Traced]
) -> Any:
    """Of x (batch, length, features), with q, k and v in one product.  weights: of it and its bias, and of the last."""
    batch, length, features = shape
    weight, bias, out, out_bias = weights
    joint = c.apply("Split", product(c, x, weight, bias), axis=2, num_outputs=3, results=3)
    q, k, v = (
        c.apply("Transpose", c.reshape(part, (batch, length, heads, features // heads)), perm=[0, 2, 1, 3])
        for part in joint
    )
    found = c.apply("Attention", q, k, v, scale=float(np.float32(features // heads) ** -0.5))
    return product(c, c.reshape(c.apply("Transpose", found, perm=[0, 2, 1, 3]), shape), out, out_bias)
