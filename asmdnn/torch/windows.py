"""Layers of windows of images, (n, c, ...): maxima, means, and interpolation between pixels."""

from collections.abc import Sequence
from typing import Any

from asmdnn import ops
from asmdnn.errors import InvalidArguments, shown
from asmdnn.torch.differentiated import Differentiable, applied
from asmdnn.torch.images import Sizes

MODES: dict[str, dict[str, Any]] = {
    "nearest": {"mode": "nearest", "coordinates": "asymmetric", "rounding": "floor"},
    "nearest-exact": {"mode": "nearest"},
    "linear": {"mode": "linear"},
    "bilinear": {"mode": "linear"},
    "trilinear": {"mode": "linear"},
    "bicubic": {"mode": "cubic"},
}


def max_pool1d(
    input: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """torch.nn.functional.max_pool1d, with its gradient: to the first of equal numbers.  Raises InvalidArguments."""
    return maxima(input, kernel_size, ceil_mode, {"stride": stride, "padding": padding, "dilation": dilation})


def max_pool2d(
    input: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """torch.nn.functional.max_pool2d, with its gradient: to the first of equal numbers.  Raises InvalidArguments."""
    return maxima(input, kernel_size, ceil_mode, {"stride": stride, "padding": padding, "dilation": dilation})


def max_pool3d(
    input: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Any:  # fmt: skip
    """torch.nn.functional.max_pool3d, with its gradient: to the first of equal numbers.  Raises InvalidArguments."""
    return maxima(input, kernel_size, ceil_mode, {"stride": stride, "padding": padding, "dilation": dilation})


def maxima(input: Any, kernel: Sizes, ceil_mode: bool, fields: dict[str, Any]) -> Any:
    def backward(dy: Any, operands: Sequence[Any], y: Any, places: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        return (ops.max_pool_gradient(dy, places, tuple(operands[0].shape), kernel, **fields),)

    layer = Differentiable(
        lambda x: ops.max_pool(x, kernel, ceil_mode=ceil_mode, return_indices=True, **fields), backward
    )
    return applied(layer, input=input)


def avg_pool1d(
    input: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """torch.nn.functional.avg_pool1d, with its gradient.  Raises InvalidArguments."""
    fields = {"stride": stride, "padding": padding, "count_include_pad": count_include_pad}
    return means(input, kernel_size, ceil_mode, fields)


def avg_pool2d(
    input: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """torch.nn.functional.avg_pool2d without divisor_override, with its gradient.  Raises InvalidArguments."""
    fields = {"stride": stride, "padding": padding, "count_include_pad": count_include_pad}
    return means(input, kernel_size, ceil_mode, fields)


def avg_pool3d(
    input: Any, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """torch.nn.functional.avg_pool3d without divisor_override, with its gradient.  Raises InvalidArguments."""
    fields = {"stride": stride, "padding": padding, "count_include_pad": count_include_pad}
    return means(input, kernel_size, ceil_mode, fields)


def means(input: Any, kernel: Sizes, ceil_mode: bool, fields: dict[str, Any]) -> Any:
    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        return (ops.avg_pool_gradient(dy, tuple(operands[0].shape), kernel, **fields),)

    layer = Differentiable(lambda x: (ops.avg_pool(x, kernel, ceil_mode=ceil_mode, **fields), None), backward)
    return applied(layer, input=input)


def adaptive_avg_pool1d(input: Any, output_size: Sizes) -> Any:
    """torch.nn.functional.adaptive_avg_pool1d, with its gradient.  Raises InvalidArguments."""
    return adaptive_means(input, output_size)


def adaptive_avg_pool2d(input: Any, output_size: Sizes) -> Any:
    """torch.nn.functional.adaptive_avg_pool2d, with its gradient.  Raises InvalidArguments."""
    return adaptive_means(input, output_size)


def adaptive_avg_pool3d(input: Any, output_size: Sizes) -> Any:
    """torch.nn.functional.adaptive_avg_pool3d, with its gradient.  Raises InvalidArguments."""
    return adaptive_means(input, output_size)


def adaptive_means(input: Any, size: Sizes) -> Any:
    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        return (ops.adaptive_avg_pool_gradient(dy, tuple(operands[0].shape)),)

    return applied(Differentiable(lambda x: (ops.adaptive_avg_pool(x, size), None), backward), input=input)


def interpolate(
    input: Any, size: Sizes | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """torch.nn.functional.interpolate of all modes but "area", without antialiasing, with its gradient.

    Raises InvalidArguments.
    """
    if mode not in MODES:
        raise InvalidArguments(f"mode must be one of {', '.join(MODES)}, not {shown(mode)}")
    words = MODES[mode] | ({"coordinates": "align_corners"} if align_corners else {})

    def backward(dy: Any, operands: Sequence[Any], y: Any, kept: Any, wanted: Sequence[bool]) -> Sequence[Any]:
        return (ops.resize_gradient(dy, tuple(operands[0].shape), factor=scale_factor, **words),)

    layer = Differentiable(lambda x: (ops.resize(x, size, factor=scale_factor, **words), None), backward)
    return applied(layer, input=input)
