"""torch's whole attention and encoder layers, which its modules take where no gradient is required."""

from typing import Any

import numpy as np

from asmdnn.aten.layer_rules import transposed
from asmdnn.aten.values import Context, Value, rule


@rule("_native_multi_head_attention.default")
def _multi_head(
    c: Context, q: Value, k: Value, v: Value, features: int, heads: int, weight: Value, bias: Value, out: Value,
    out_bias: Value, mask: Any = None, need_weights: bool = True, average: bool = True, mask_type: Any = None,
) -> Any:  # fmt: skip
    if need_weights or mask is not None or not q is k is v:
        raise c.refuse("weights, masks, or keys that are no queries")
    return self_attention(c, q.symbol, q.shape, heads, weight, bias, out, out_bias), None


@rule("_transformer_encoder_layer_fwd.default")
def _encoder_layer(
    c: Context, x: Value, features: int, heads: int, weight: Value, bias: Value, out: Value, out_bias: Value,
    use_gelu: bool, norm_first: bool, eps: float, scale1: Value, shift1: Value, scale2: Value, shift2: Value,
    up: Value, up_bias: Value, down: Value, down_bias: Value, mask: Any = None, mask_type: Any = None,
) -> Any:  # fmt: skip
    """Attention and two products, each with a residual: ATen native/transformers/transformer.cpp."""
    if mask is not None:
        raise c.refuse("masks")

    def normed(y: Any, scale: Value, shift: Value) -> Any:
        return c.apply("LayerNormalization", y, scale, shift, axis=-1, epsilon=float(eps))

    def attended(y: Any) -> Any:
        return self_attention(c, y, x.shape, heads, weight, bias, out, out_bias)

    def widened(y: Any) -> Any:
        inner = c.apply("Gelu" if use_gelu else "Relu", product(c, y, up, up_bias))
        return product(c, inner, down, down_bias)

    y = x.symbol
    if norm_first:
        y = c.apply("Add", y, attended(normed(y, scale1, shift1)))
        return c.apply("Add", y, widened(normed(y, scale2, shift2)))
    y = normed(c.apply("Add", y, attended(y)), scale1, shift1)
    return normed(c.apply("Add", y, widened(y)), scale2, shift2)


def product(c: Context, x: Any, weight: Value, bias: Value) -> Any:
    return c.apply("Add", c.apply("MatMul", x, transposed(c, weight)), bias)


def self_attention(
    c: Context, x: Any, shape: tuple[int, ...], heads: int, weight: Value, bias: Value, out: Value, out_bias: Value
) -> Any:
    """Of x (batch, length, features), with q, k and v in one product."""
    batch, length, features = shape
    joint = c.apply("Split", product(c, x, weight, bias), axis=2, num_outputs=3, results=3)
    q, k, v = (
        c.apply("Transpose", c.reshape(part, (batch, length, heads, features // heads)), perm=[0, 2, 1, 3])
        for part in joint
    )
    found = c.apply("Attention", q, k, v, scale=float(np.float32(features // heads) ** -0.5))
    return product(c, c.reshape(c.apply("Transpose", found, perm=[0, 2, 1, 3]), shape), out, out_bias)
