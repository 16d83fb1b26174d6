"""Convolutions of images, (n, c, ...)."""

from collections.abc import Sequence
from typing import Any

from asmdnn import ops
from asmdnn.torch.differentiated import Differentiable, applied

Sizes = int | Sequence[int]


def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    """torch.nn.functional.conv1d, with gradients by input, weight and bias.  Raises InvalidArguments, Unimplemented."""
    return convolved(ops.conv1d, input, weight, bias, (stride, padding, dilation, groups))


def conv2d(
    input: Any, weight: Any, bias: Any = None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    """torch.nn.functional.conv2d, with gradients by input, weight and bias.  Raises InvalidArguments, Unimplemented."""
    return convolved(ops.conv2d, input, weight, bias, (stride, padding, dilation, groups))


def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Sizes = 1, padding: Sizes = 0, dilation: Sizes = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    """torch.nn.functional.conv3d, with gradients by input, weight and bias.  Raises InvalidArguments, Unimplemented."""
    return convolved(ops.conv3d, input, weight, bias, (stride, padding, dilation, groups))


def conv_transpose1d(
    input: Any, weight: Any, bias: Any = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, dilation: Sizes = 1,
) -> Any:  # fmt: skip
    """torch.nn.functional.conv_transpose1d, with its gradients.  Raises InvalidArguments, Unimplemented."""
    return transposed(ops.conv_transpose1d, input, weight, bias, (stride, padding, dilation, groups), output_padding)


def conv_transpose2d(
    input: Any, weight: Any, bias: Any = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, dilation: Sizes = 1,
) -> Any:  # fmt: skip
    """torch.nn.functional.conv_transpose2d, with its gradients.  Raises InvalidArguments, Unimplemented."""
    return transposed(ops.conv_transpose2d, input, weight, bias, (stride, padding, dilation, groups), output_padding)


def conv_transpose3d(
    input: Any, weight: Any, bias: Any = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
    groups: int = 1, dilation: Sizes = 1,
) -> Any:  # fmt: skip
    """torch.nn.functional.conv_transpose3d, with its gradients.  Raises InvalidArguments, Unimplemented."""
    return transposed(ops.conv_transpose3d, input, weight, bias, (stride, padding, dilation, groups), output_padding)


Window = tuple[Sizes, Sizes, Sizes, int]


def fields_of(window: Window) -> dict[str, Any]:
    return dict(zip(("stride", "padding", "dilation", "groups"), window, strict=True))


def convolved(function: Any, input: Any, weight: Any, bias: Any, window: Window) -> Any:
    fields = fields_of(window)

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        x, w, _ = operands
        dx = ops.conv_input_gradient(dy, w, tuple(x.shape), **fields) if wanted[0] else None
        dw, db = ops.conv_weight_gradient(x, dy, tuple(w.shape[2:]), **fields) if any(wanted[1:]) else (None, None)
        return dx, dw, db if wanted[2] else None

    layer = Differentiable(lambda x, w, b: (function(x, w, b, **fields), None), backward)
    return applied(layer, input=input, weight=weight, bias=bias)


def transposed(function: Any, input: Any, weight: Any, bias: Any, window: Window, output_padding: Sizes) -> Any:
    fields = fields_of(window)

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        x, w, _ = operands
        dx = ops.conv_transpose_input_gradient(dy, w, **fields) if wanted[0] else None
        kernel = tuple(w.shape[2:])
        dw, db = ops.conv_transpose_weight_gradient(x, dy, kernel, **fields) if any(wanted[1:]) else (None, None)
        return dx, dw, db if wanted[2] else None

    layer = Differentiable(lambda x, w, b: (function(x, w, b, output_padding=output_padding, **fields), None), backward)
    return applied(layer, input=input, weight=weight, bias=bias)
