"""ATen's windows: pooling, adaptive pooling, windows as columns."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from asmdnn.aten.layer_rules import batched
from asmdnn.aten.values import Rewriter, Traced, repeated, rule

MOST_WINDOWS: Final = 128  # of different sizes, or positions in a window: so many nodes


@rule("max_pool1d.default", "max_pool2d.default", "max_pool3d.default", "max_pool2d_with_indices.default")
def _max_pool(
    c: Rewriter, x: Traced, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    axes = int(c.name[len("max_pool")])
    sizes = repeated(kernel, axes)
    found = c.apply(
        "MaxPool", batched(c, x, axes), kernel_shape=sizes, strides=repeated(stride or sizes, axes),
        pads=repeated(padding, axes) * 2, dilations=repeated(dilation, axes), ceil_mode=int(ceil_mode),
    )  # fmt: skip
    found = found if x.rank == axes + 2 else c.reshape(found, c.shape)
    return (found, None) if "indices" in c.name else found


@rule("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def _avg_pool(
    c: Rewriter, x: Traced, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: Any = None,
) -> Any:  # fmt: skip
    axes = int(c.name[len("avg_pool")])
    sizes = repeated(kernel, axes)
    if divisor is not None:
        raise c.refuse(f"divisor_override {divisor}")
    found = c.apply(
        "AveragePool", batched(c, x, axes), kernel_shape=sizes, strides=repeated(stride or sizes, axes),
        pads=repeated(padding, axes) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
    )  # fmt: skip
    return found if x.rank == axes + 2 else c.reshape(found, c.shape)


@rule(
    "adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default",
    "_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default",
)  # fmt: skip
def _adaptive_avg_pool(c: Rewriter, x: Traced, size: Any) -> Any:
    return _adaptive(c, x, "Average")


@rule("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def _adaptive_max_pool(c: Rewriter, x: Traced, size: Any) -> Any:
    return _adaptive(c, x, "Max"), None


def _adaptive(c: Rewriter, x: Traced, kind: str) -> Any:
    """Equal windows by one pooling, as ONNX knows no others; different ones axis by axis."""
    axes = next(int(letter) for letter in c.name if letter.isdigit())
    before, after = x.shape[-axes:], c.shape[-axes:]
    if x.rank == axes + 2 and set(after) == {1}:
        return c.apply(f"Global{kind}Pool", x)
    if all(n and m and n % m == 0 for n, m in zip(before, after, strict=True)):
        sizes = [n // m for n, m in zip(before, after, strict=True)]
        found = c.apply(f"{kind}Pool", batched(c, x, axes), kernel_shape=sizes, strides=sizes)
        return c.reshape(found, c.shape)
    if sum(after) > MOST_WINDOWS or not prod(before + after):
        raise c.refuse(f"windows of different sizes, from {before} to {after}")
    reduce = {"Average": "ReduceMean", "Max": "ReduceMax"}[kind]
    found = c.operand(x)
    for axis, (n, m) in enumerate(zip(before, after, strict=True), x.rank - axes):
        if n != m:
            found = _of_different_sizes(c, found, reduce, axis, n, m)
    return found


def _of_different_sizes(c: Rewriter, x: Any, reduce: str, axis: int, n: int, m: int) -> Any:
    """Window i of m has the elements from i n / m, rounded down, to (i + 1) n / m, rounded up."""
    at = np.array([axis], np.int64)
    parts = [_part(c, x, axis, i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
    parts = [c.apply(reduce, part, at, keepdims=1) for part in parts]
    return c.apply("Concat", *parts, axis=axis) if m > 1 else parts[0]


def _part(c: Rewriter, x: Any, axis: int, start: int, end: int, step: int = 1) -> Any:
    return c.apply("Slice", x, *(np.array([n], np.int64) for n in (start, end, axis, step)))


@rule("im2col.default")
def _columns(
    c: Rewriter,
    x: Traced,
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    """A row of windows for each channel and each position in a window."""
    if prod(kernel) > MOST_WINDOWS:
        raise c.refuse(f"windows of {kernel}")
    around = [0, 0, *padding] * 2
    image = c.apply("Pad", batched(c, x, 2), np.array(around, np.int64), np.float32(0), mode="constant")
    batch, channels, *sizes = (*(1,) * (4 - x.rank), *x.shape)
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(sizes, kernel, dilation, padding, stride, strict=True)
    ]
    rows = []
    for position in product(*map(range, kernel)):
        part = image
        for axis, (at, d, s, count) in enumerate(zip(position, dilation, stride, counts, strict=True), 2):
            part = _part(c, part, axis, at * d, at * d + s * (count - 1) + 1, s)
        rows.append(c.reshape(part, (batch, channels, 1, prod(counts))))
    return c.reshape(c.apply("Concat", *rows, axis=2) if len(rows) > 1 else rows[0], c.shape)
