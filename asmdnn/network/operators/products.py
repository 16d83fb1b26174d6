"""Matrix products and convolutions."""

import numpy as np

from asmdnn.definitions.convolution import convolution, deconvolution
from asmdnn.definitions.windows import Sizes, SlidingWindow
from asmdnn.errors import counted
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value, bounded, broadcast_dims
from asmdnn.network.operators.geometry import check_window, window_of


def matmul_types(node: Node, a: Value, b: Value) -> list[Type]:
    left = a.shape if len(a.shape) > 1 else (1, *a.shape)
    right = b.shape if len(b.shape) > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        raise ValueError(f"dims {a.shape} and {b.shape} do not go together")
    batch = broadcast_dims(left[:-2], right[:-2])
    rows, columns = left[-2:-1] * (len(a.shape) > 1), right[-1:] * (len(b.shape) > 1)
    return [((*batch, *rows, *columns), a.dtype)]


def gemm(node: Node, a: Array, b: Array, c: Array | None = None) -> Array:
    a, b = (x.T if node.get(name, 0) else x for name, x in (("transA", a), ("transB", b)))
    result = node.get("alpha", 1.0) * (a @ b)
    beta = node.get("beta", 1.0)
    if c is not None and beta:  # by 0 it is not read, as in BLAS, whatever it holds
        result = result + beta * c
    return np.asarray(result, a.dtype)


def gemm_types(node: Node, a: Value, b: Value, c: Value | None = None) -> list[Type]:
    (m, ka), (kb, n) = (x.shape[::-1] if node.get(name, 0) else x.shape for name, x in (("transA", a), ("transB", b)))
    if ka != kb:
        raise ValueError(f"dims {a.shape} and {b.shape} do not go together")
    if c is not None and broadcast_dims(c.shape, (m, n)) != (m, n):
        raise ValueError(f"dims {c.shape} are not broadcast to {m} x {n}")
    return [((m, n), a.dtype)]


def guarded(x: Array, window: SlidingWindow) -> Array:
    """x, if numpy may make it with the window's padding.  Raises ValueError."""
    pairs = zip(x.shape[2:], window.before, window.after, strict=True)
    bounded((*x.shape[:2], *(n + max(0, a) + max(0, b) for n, a, b in pairs)))
    return x


def conv(node: Node, x: Array, w: Array, bias: Array | None = None) -> Array:
    window = window_of(node, x.shape[2:], w.shape[2:])
    return with_bias(convolution(guarded(x, window), w, window, node.get("group", 1)), bias)


def with_bias(result: Array, bias: Array | None) -> Array:
    return result if bias is None else result + bias.reshape(-1, *[1] * (result.ndim - 2))


def conv_types(node: Node, x: Value, w: Value, bias: Value | None = None) -> list[Type]:
    groups = node.get("group", 1)
    if len(x.shape) != len(w.shape) or len(w.shape) < 3 or groups < 1 or x.shape[1] != w.shape[1] * groups:
        raise ValueError(f"dims {x.shape} and {w.shape} do not go together")
    if w.shape[0] % groups or 0 in w.shape[1:]:
        raise ValueError(f"weights of dims {w.shape} in {counted(groups, 'group')}")
    check_kernel_and_bias(node, w, bias, w.shape[0])
    outputs = window_of(node, x.shape[2:], w.shape[2:]).outputs(x.shape[2:])
    return [((x.shape[0], w.shape[0], *outputs), x.dtype)]


def check_kernel_and_bias(node: Node, w: Value, bias: Value | None, channels: int) -> None:
    """Raise ValueError for a kernel that is said to have other sizes, or a bias that has not a value a channel."""
    if tuple(node.get("kernel_shape", w.shape[2:])) != w.shape[2:]:
        raise ValueError(f"kernel_shape {node.get('kernel_shape')} for weights of dims {w.shape}")
    if bias is not None and bias.shape != (channels,):
        raise ValueError(f"a bias of dims {bias.shape} for {counted(channels, 'channel')}")


def transposed_window(node: Node, sizes: Sizes, kernel: Sizes) -> tuple[SlidingWindow, Sizes]:
    """The window of the convolution that this one undoes, and the sizes of the result."""
    axes = len(sizes)
    if not axes:
        raise ValueError("a convolution has dims after batch and channels")
    strides, dilations = (tuple(node.get(name, (1,) * axes)) for name in ("strides", "dilations"))
    more = tuple(node.get("output_padding", (0,) * axes))
    check_window(kernel, strides, dilations)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    whole = [s * (n - 1) + o + span for n, s, o, span in zip(sizes, strides, more, spans, strict=True)]
    pads, wanted, mode = tuple(node.get("pads", (0,) * 2 * axes)), node.get("output_shape"), node.get("auto_pad")
    if wanted is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(n * s for n, s in zip(sizes, strides, strict=True))
    if wanted is not None:
        totals = [max(0, w - n) for w, n in zip(whole, wanted[-axes:], strict=True)]
        less, rest = [t // 2 for t in totals], [t - t // 2 for t in totals]
        pads = (*less, *rest) if mode == "SAME_UPPER" else (*rest, *less)
        outputs = tuple(wanted[-axes:])
    else:
        outputs = tuple(w - pads[i] - pads[i + axes] for i, w in enumerate(whole))
    return SlidingWindow(tuple(kernel), strides, dilations, pads[:axes], pads[axes:]), outputs


def conv_transpose(node: Node, x: Array, w: Array, bias: Array | None = None) -> Array:
    window, outputs = transposed_window(node, x.shape[2:], w.shape[2:])
    groups, (into, out, *kernel) = node.get("group", 1), w.shape
    spans = [
        max(s * (n - 1) + (k - 1) * d + 1, o + a)
        for n, o, k, s, d, a in zip(x.shape[2:], outputs, *window.fields()[:4], strict=True)
    ]
    bounded((x.shape[0], max(into, out * groups), *spans))
    weights = w.reshape(groups, into // groups, out, *kernel).swapaxes(1, 2).reshape(groups * out, -1, *kernel)
    return with_bias(deconvolution(x, weights, window, outputs, groups), bias)


def conv_transpose_types(node: Node, x: Value, w: Value, bias: Value | None = None) -> list[Type]:
    groups = node.get("group", 1)
    if len(x.shape) != len(w.shape) or groups < 1 or x.shape[1:2] != w.shape[:1] or x.shape[1] % groups:
        raise ValueError(f"dims {x.shape} and {w.shape} in {counted(groups, 'group')} do not go together")
    check_kernel_and_bias(node, w, bias, w.shape[1] * groups)
    outputs = transposed_window(node, x.shape[2:], w.shape[2:])[1]
    if min(outputs) < 0:
        raise ValueError(f"a result of dims {outputs}")
    return [((x.shape[0], w.shape[1] * groups, *outputs), x.dtype)]


OPERATORS = {
    "MatMul": Operator(lambda node, a, b: np.matmul(a, b), matmul_types),
    "Gemm": Operator(gemm, gemm_types),
    "Conv": Operator(conv, conv_types),
    "ConvTranspose": Operator(conv_transpose, conv_transpose_types),
}
