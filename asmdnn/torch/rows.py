"""Layers of rows: softmax, normalizations, attention."""

from collections.abc import Sequence
from typing import Any

from asmdnn import ops
from asmdnn.errors import InvalidArguments
from asmdnn.torch.differentiated import Differentiable, applied


def softmax(input: Any, dim: int) -> Any:
    """torch.nn.functional.softmax, with its gradient.  Raises InvalidArguments."""
    return of_result(lambda x: ops.softmax(x, dim), lambda dy, y: ops.softmax_gradient(dy, y, dim), input)


def log_softmax(input: Any, dim: int) -> Any:
    """torch.nn.functional.log_softmax, with its gradient.  Raises InvalidArguments."""
    return of_result(lambda x: ops.log_softmax(x, dim), lambda dy, y: ops.log_softmax_gradient(dy, y, dim), input)


def of_result(forward: Any, gradient: Any, input: Any) -> Any:
    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        return (gradient(dy, y),)

    return applied(Differentiable(lambda x: (forward(x), None), backward), input=input)


def layer_norm(input: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None,
               eps: float = 1e-5) -> Any:  # fmt: skip
    """torch.nn.functional.layer_norm over the last dim, with its gradients.  Raises InvalidArguments."""
    check_last(input, normalized_shape)

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        found = ops.layer_norm_gradient(dy, *operands[:2], epsilon=eps)
        return [x if is_wanted else None for x, is_wanted in zip(found, wanted, strict=True)]

    layer = Differentiable(lambda x, scale, shift: (ops.layer_norm(x, scale, shift, epsilon=eps), None), backward)
    return applied(layer, input=input, weight=weight, bias=bias)


def rms_norm(input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float = 2.0**-23) -> Any:
    """torch.nn.functional.rms_norm over the last dim, with its gradients.  Raises InvalidArguments."""
    check_last(input, normalized_shape)

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        found = ops.rms_norm_gradient(dy, *operands, epsilon=eps)
        return [x if is_wanted else None for x, is_wanted in zip(found, wanted, strict=True)]

    layer = Differentiable(lambda x, scale: (ops.rms_norm(x, scale, epsilon=eps), None), backward)
    return applied(layer, input=input, weight=weight)


def check_last(input: Any, normalized_shape: Sequence[int]) -> None:
    """Raise InvalidArguments for other dims than the last one."""
    dims = tuple(getattr(input, "shape", ()))
    if not isinstance(normalized_shape, list | tuple) or tuple(normalized_shape) != dims[-1:]:
        raise InvalidArguments(f"normalized_shape must be the last dim alone, {dims[-1:]}, not {normalized_shape}")


def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, is_causal: bool = False,
                                 scale: float | None = None) -> Any:  # fmt: skip
    """torch.nn.functional.scaled_dot_product_attention of (n, heads, rows, d), without dropout.

    It has gradients by query, key and value.  attn_mask: f32, what is added to scores.  is_causal: of as many rows as
    keys.  Raises InvalidArguments, Unimplemented.
    """
    if attn_mask is not None and getattr(attn_mask, "requires_grad", False):
        raise InvalidArguments("attn_mask requires a gradient, which it has not here: detach it")
    if is_causal and query.shape[-2] != key.shape[-2]:
        raise InvalidArguments(f"is_causal is for as many rows as keys, not {query.shape[-2]} and {key.shape[-2]}")
    words: dict[str, Any] = {"causal": is_causal, "scale": scale}

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        found = ops.attention_gradient(dy, *operands, **words, logsumexp=kept)
        return [*(x if is_wanted else None for x, is_wanted in zip(found, wanted, strict=False)), None]

    keeps = any(getattr(x, "requires_grad", False) for x in (query, key, value))

    def forward(*operands: Any) -> tuple[Any, Any]:
        found = ops.attention(*operands, **words, return_logsumexp=keeps)
        return found if keeps else (found, None)

    layer = Differentiable(forward, backward)
    return applied(layer, query=query, key=key, value=value, attn_mask=attn_mask)
