"""Graphs as exporters write them: blocks of published networks, small, with random weights, by onnx.helper."""

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Names = list[str]


class Exported:
    """An ONNX model as it is written down: `net("Relu", x)` is a node, arrays are initialisers."""

    def __init__(self, opset: int = 17) -> None:
        self.opset = opset
        self.random = np.random.default_rng(3)
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.initializers: list[Any] = []

    def input(self, name: str, *dims: int) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        return name

    def weights(self, *dims: int) -> np.ndarray:
        """Of such a size that values stay near 1."""
        fan = np.prod(dims[:-1]) if len(dims) == 2 else np.prod(dims[1:])
        return (self.random.standard_normal(dims) / np.sqrt(max(1, fan))).astype(np.float32)

    def __call__(self, op: str, *operands: Any, results: int = 1, **attributes: Any) -> Any:
        names = [self.operand(x) for x in operands]
        outputs = [f"{op}_{len(self.nodes)}_{i}" for i in range(results)]
        self.nodes.append(helper.make_node(op, names, outputs, name=f"/{op}_{len(self.nodes)}", **attributes))
        return outputs[0] if results == 1 else outputs

    def operand(self, x: Any) -> str:
        if isinstance(x, str):
            return x
        array = np.asarray(x)
        name = f"onnx::{len(self.initializers)}"
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        return self("Add", self.weights(outputs), self("MatMul", x, self.weights(inputs, outputs)))

    def conv(self, x: str, inputs: int, outputs: int, kernel: int, **attributes: Any) -> str:
        weights = self.weights(outputs, inputs // attributes.get("group", 1), kernel, kernel)
        return self("Conv", x, weights, self.weights(outputs), kernel_shape=[kernel] * 2, **attributes)

    def silu(self, x: str) -> str:
        return self("Mul", x, self("Sigmoid", x))

    def gelu(self, x: str) -> str:
        """By Erf, as torch's exporter writes it."""
        bell = self("Add", self("Erf", self("Div", x, np.float32(2**0.5))), np.float32(1))
        return self("Mul", self("Mul", x, bell), np.float32(0.5))

    def norm(self, x: str, size: int) -> str:
        """Layer normalisation, of several nodes before operator set 17."""
        scale, shift = self.weights(size), self.weights(size)
        if self.opset >= 17:
            return self("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)
        d = self("Sub", x, self("ReduceMean", x, axes=[-1]))
        variance = self("ReduceMean", self("Pow", d, np.float32(2)), axes=[-1])
        return self(
            "Add", self("Mul", self("Div", d, self("Sqrt", self("Add", variance, np.float32(1e-5)))), scale), shift
        )

    def reshape(self, x: str, *dims: int) -> str:
        return self("Reshape", x, np.array(dims, np.int64))

    def transpose(self, x: str, *order: int) -> str:
        return self("Transpose", x, perm=list(order))

    def model(self, *outputs: str) -> bytes:
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "exported", self.inputs, values, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        data: bytes = model.SerializeToString()
        return data


def heads_of(net: Exported, x: str, tokens: int, heads: int, size: int, *order: int) -> str:
    return net.transpose(net.reshape(x, 1, tokens, heads, size), *(order or (0, 2, 1, 3)))


def merged(net: Exported, x: str, tokens: int, width: int) -> str:
    return net.reshape(net.transpose(x, 0, 2, 1, 3), 1, tokens, width)


def vit() -> bytes:
    """Patches, a class token, a block of attention whose q, k, v are one product."""
    net, width, heads, tokens = Exported(), 32, 4, 17
    x = net.conv(net.input("x", 1, 3, 32, 32), 3, width, 8, strides=[8, 8])
    x = net.transpose(net.reshape(x, 1, width, 16), 0, 2, 1)
    x = net("Add", net("Concat", net.weights(1, 1, width), x, axis=1), net.weights(1, tokens, width))
    qkv = net.linear(net.norm(x, width), width, 3 * width)
    qkv = net.transpose(net.reshape(qkv, 1, tokens, 3, heads, width // heads), 2, 0, 3, 1, 4)
    q, k, v = (net("Gather", qkv, np.int64(i), axis=0) for i in range(3))
    scores = net("MatMul", net("Mul", q, np.float32(0.35)), net.transpose(k, 0, 1, 3, 2))
    y = merged(net, net("MatMul", net("Softmax", scores, axis=-1), v), tokens, width)
    x = net("Add", x, net.linear(y, width, width))
    x = net("Add", x, net.linear(net.gelu(net.linear(net.norm(x, width), width, 64)), 64, width))
    first = net("Gather", net.norm(x, width), np.int64(0), axis=1)
    return net.model(net("Gemm", first, net.weights(10, width), net.weights(10), transB=1))


def bert() -> bytes:
    """Operator set 12: layer normalisation of several nodes, a mask that is an input."""
    net, width, heads, tokens = Exported(12), 48, 3, 13
    x, mask = net.input("x", 1, tokens, width), net.input("mask", 1, tokens)
    mask = net("Unsqueeze", net("Unsqueeze", mask, axes=[1]), axes=[2])
    mask = net("Mul", net("Sub", np.float32(1), mask), np.float32(-10000))
    x = net.norm(x, width)
    q, k, v = (net.linear(x, width, width) for _ in range(3))
    keys = heads_of(net, k, tokens, heads, 16, 0, 2, 3, 1)
    scores = net("Div", net("MatMul", heads_of(net, q, tokens, heads, 16), keys), np.float32(4))
    p = net("Softmax", net("Add", scores, mask), axis=3)
    y = merged(net, net("MatMul", p, heads_of(net, v, tokens, heads, 16)), tokens, width)
    x = net.norm(net("Add", net.linear(y, width, width), x), width)
    x = net.norm(net("Add", net.linear(net.gelu(net.linear(x, width, 96)), 96, width), x), width)
    first = net("Gather", x, np.int64(0), axis=1)
    return net.model(x, net("Tanh", net("Gemm", first, net.weights(width, width), net.weights(width), transB=1)))


def unet() -> bytes:
    """Pooling down, deconvolution up, a skip by Concat."""
    net, pads = Exported(13), [1, 1, 1, 1]
    x = net("Relu", net.conv(net.input("x", 1, 3, 32, 32), 3, 16, 3, pads=pads))
    low = net("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    low = net("Relu", net.conv(low, 16, 32, 3, pads=pads))
    up = net("ConvTranspose", low, net.weights(32, 16, 2, 2), net.weights(16), kernel_shape=[2, 2], strides=[2, 2])
    y = net("Relu", net.conv(net("Concat", x, up, axis=1), 32, 16, 3, pads=pads))
    return net.model(net("Sigmoid", net.conv(y, 16, 1, 1)))


def mobilenet_v3() -> bytes:
    """Depthwise convolutions with squeeze-and-excite, hardswish as an operator and written out."""
    net = Exported(14)
    x = net("HardSwish", net.conv(net.input("x", 1, 3, 32, 32), 3, 16, 3, strides=[2, 2], pads=[1, 1, 1, 1]))
    y = net.conv(x, 16, 64, 1)
    y = net(
        "Div", net("Mul", y, net("Clip", net("Add", y, np.float32(3)), np.float32(0), np.float32(6))), np.float32(6)
    )
    y = net("Relu", net.conv(y, 64, 64, 5, group=64, pads=[2, 2, 2, 2]))
    s = net("Relu", net.conv(net("GlobalAveragePool", y), 64, 16, 1))
    s = net("HardSigmoid", net.conv(s, 16, 64, 1), alpha=1 / 6)
    x = net("Add", x, net.conv(net("Mul", s, y), 64, 16, 1))
    y = net("Flatten", net("ReduceMean", x, axes=[2, 3]), axis=1)
    return net.model(net("Gemm", y, net.weights(10, 16), net.weights(10), transB=1))


def yolo() -> bytes:
    """Split and Concat of channels, pooling in a row, Resize, and a head over all cells."""
    net = Exported()
    x = net.silu(net.conv(net.input("x", 1, 3, 64, 64), 3, 16, 3, strides=[2, 2], pads=[1, 1, 1, 1]))
    x = net.silu(net.conv(x, 16, 32, 3, strides=[2, 2], pads=[1, 1, 1, 1]))
    one, two = net("Split", net.silu(net.conv(x, 32, 32, 1)), np.array([16, 16]), axis=1, results=2)
    inner = net.silu(net.conv(net.silu(net.conv(two, 16, 16, 3, pads=[1] * 4)), 16, 16, 3, pads=[1] * 4))
    fine = net.silu(net.conv(net("Concat", one, two, net("Add", two, inner), axis=1), 48, 32, 1))
    low = [net.silu(net.conv(fine, 32, 16, 3, strides=[2, 2], pads=[1] * 4))]
    for _ in range(3):
        low.append(net("MaxPool", low[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    coarse = net.silu(net.conv(net("Concat", *low, axis=1), 64, 32, 1))
    up = net("Resize", coarse, "", np.float32([1, 1, 2, 2]), mode="nearest", nearest_mode="floor",
             coordinate_transformation_mode="asymmetric")  # fmt: skip
    fine = net.silu(net.conv(net("Concat", up, fine, axis=1), 64, 32, 1))
    cells = [net.reshape(net.conv(level, 32, 64 + 5, 1), 1, 69, -1) for level in (fine, coarse)]
    count = 16 * 16 + 8 * 8
    box, classes = net("Split", net("Concat", *cells, axis=2), np.array([64, 5]), axis=1, results=2)
    bins = net("Softmax", net.transpose(net.reshape(box, 1, 4, 16, count), 0, 2, 1, 3), axis=1)
    sides = net("Conv", bins, np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1), kernel_shape=[1, 1])
    sides = net.reshape(sides, 1, 4, count)
    near, far = (net("Slice", sides, np.array([a]), np.array([a + 2]), np.array([1])) for a in (0, 2))
    centres = net.weights(1, 2, count)
    corners = net("Sub", centres, near), net("Add", centres, far)
    middle = net("Div", net("Add", *corners), np.float32(2))
    boxes = net("Mul", net("Concat", middle, net("Sub", corners[1], corners[0]), axis=1), net.weights(1, count))
    return net.model(net("Concat", boxes, net("Sigmoid", classes), axis=1))


def crnn() -> bytes:
    """Columns of an image into a bidirectional LSTM, as torch exports it with the batch first."""
    net = Exported(14)
    x = net("Relu", net.conv(net.input("x", 1, 1, 16, 40), 1, 16, 3, pads=[1] * 4))
    x = net("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net("Relu", net.conv(x, 16, 16, 3, pads=[1] * 4))
    x = net("Squeeze", net("AveragePool", x, kernel_shape=[8, 1], strides=[8, 1]), np.array([2]))
    x = net.transpose(net.transpose(x, 0, 2, 1), 1, 0, 2)
    zero = np.zeros((2, 1, 24), np.float32)
    y, _, _ = net(
        "LSTM", x, net.weights(2, 96, 16), net.weights(2, 96, 24), net.weights(2, 192), "", zero, zero,
        results=3, direction="bidirectional", hidden_size=24,
    )  # fmt: skip
    y = net.transpose(net.reshape(net.transpose(y, 0, 2, 1, 3), 20, 1, 48), 1, 0, 2)
    return net.model(net("LogSoftmax", net.linear(y, 48, 11), axis=2))


def gru() -> bytes:
    """Two layers, one after another, and the last step of the second."""
    net = Exported(14)
    x = net.transpose(net.input("x", 2, 9, 12), 1, 0, 2)
    for inputs in (12, 16):
        zero = np.zeros((1, 2, 16), np.float32)
        given = (net.weights(1, 48, inputs), net.weights(1, 48, 16), net.weights(1, 96), "", zero)
        y, last = net("GRU", x, *given, results=2, hidden_size=16, linear_before_reset=1)
        x = net("Squeeze", y, np.array([1]))
    step = net("Gather", net.transpose(x, 1, 0, 2), np.int64(-1), axis=1)
    return net.model(net("Gemm", step, net.weights(3, 16), net.weights(3), transB=1), last)


def convnext() -> bytes:
    """A depthwise 7x7, layer normalisation over channels by two ways, products of pixels."""
    net = Exported()
    x = net.conv(net.input("x", 1, 3, 32, 32), 3, 24, 4, strides=[4, 4])
    d = net("Sub", x, net("ReduceMean", x, axes=[1], keepdims=1))
    variance = net("ReduceMean", net("Pow", d, np.float32(2)), axes=[1], keepdims=1)
    x = net("Div", d, net("Sqrt", net("Add", variance, np.float32(1e-6))))
    x = net("Add", net("Mul", x, net.weights(24, 1, 1)), net.weights(24, 1, 1))
    y = net.transpose(net.conv(x, 24, 24, 7, group=24, pads=[3] * 4), 0, 2, 3, 1)
    y = net.linear(net.gelu(net.linear(net.norm(y, 24), 24, 96)), 96, 24)
    y = net.transpose(net("Mul", y, net.weights(24)), 0, 3, 1, 2)
    return net.model(net("Add", x, y))


def gpt() -> bytes:
    """A causal mask by Where, q, k, v by Split, gelu by Tanh."""
    net, width, heads, tokens = Exported(14), 32, 2, 11
    x = net.input("x", 1, tokens, width)
    qkv = net.linear(net.norm(x, width), width, 3 * width)
    q, k, v = net("Split", qkv, np.array([width] * 3), axis=2, results=3)
    q, v = (heads_of(net, part, tokens, heads, 16) for part in (q, v))
    scores = net("MatMul", q, heads_of(net, k, tokens, heads, 16, 0, 2, 3, 1))
    seen = np.tril(np.ones((1, 1, tokens, tokens), bool))
    lowest = np.float32(np.finfo(np.float32).min)
    p = net("Softmax", net("Where", seen, net("Div", scores, np.float32(4)), lowest), axis=-1)
    x = net("Add", net.linear(merged(net, net("MatMul", p, v), tokens, width), width, width), x)
    y = net.linear(net.norm(x, width), width, 64)
    cube = net("Mul", net("Pow", y, np.float32(3)), np.float32(0.044715))
    bell = net("Tanh", net("Mul", net("Add", y, cube), np.float32(0.7978846)))
    y = net("Mul", net("Mul", y, np.float32(0.5)), net("Add", bell, np.float32(1)))
    x = net("Add", x, net.linear(y, 64, width))
    return net.model(net("MatMul", net.norm(x, width), net.weights(width, 40)))


def whisper() -> bytes:
    """Convolutions along time with gelu, and attention scaled in front of its product."""
    net, width, heads, tokens = Exported(), 32, 2, 15
    x = net("Conv", net.input("x", 1, 20, 30), net.weights(width, 20, 3), net.weights(width), pads=[1, 1])
    x = net("Conv", net.gelu(x), net.weights(width, width, 3), net.weights(width), pads=[1, 1], strides=[2])
    x = net("Add", net.transpose(net.gelu(x), 0, 2, 1), net.weights(tokens, width))
    y = net.norm(x, width)
    q, v = net("Mul", net.linear(y, width, width), np.float32(0.25)), net.linear(y, width, width)
    k = net("MatMul", y, net.weights(width, width))
    q, k, v = (net.reshape(heads_of(net, part, tokens, heads, 16), heads, tokens, 16) for part in (q, k, v))
    p = net("Softmax", net("MatMul", q, net.transpose(k, 0, 2, 1)), axis=-1)
    y = net.reshape(net("MatMul", p, v), 1, heads, tokens, 16)
    x = net("Add", x, net.linear(merged(net, y, tokens, width), width, width))
    return net.model(net("Add", x, net.linear(net.gelu(net.linear(net.norm(x, width), width, 64)), 64, width)))


def diffusion() -> bytes:
    """Group normalisation as InstanceNormalization of groups, swish, upsampling by Resize with sizes."""
    net = Exported()
    x = net.conv(net.input("x", 1, 4, 16, 16), 4, 32, 3, pads=[1] * 4)
    y = net("InstanceNormalization", net.reshape(x, 1, 8, -1), np.ones(8, np.float32), np.zeros(8, np.float32))
    y = net("Add", net("Mul", net.reshape(y, 1, 32, 16, 16), net.weights(32, 1, 1)), net.weights(32, 1, 1))
    x = net("Add", x, net.conv(net.silu(y), 32, 32, 3, pads=[1] * 4))
    x = net("Resize", x, "", "", np.array([1, 32, 32, 32]), mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric")  # fmt: skip
    return net.model(net.conv(x, 32, 4, 3, pads=[1] * 4))


def super_resolution() -> bytes:
    """Pixels out of channels, padding by mirrors, PRelu."""
    net = Exported(13)
    x = net("Pad", net.input("x", 1, 1, 20, 20), np.array([0, 0, 2, 2, 0, 0, 2, 2]), mode="reflect")
    x = net("PRelu", net.conv(x, 1, 16, 5), net.weights(16, 1, 1))
    x = net.conv(x, 16, 4, 3, pads=[1] * 4)
    return net.model(net("DepthToSpace", x, blocksize=2, mode="CRD"))


def swin() -> bytes:
    """Windows that are shifted by slices, with a bias for each pair of places."""
    net, width, heads = Exported(), 32, 2
    x = net.input("x", 1, 8, 8, width)
    y = net.norm(x, width)
    for axis in (1, 2):
        parts = [net("Slice", y, np.array([a]), np.array([b]), np.array([axis])) for a, b in ((2, 9999), (0, 2))]
        y = net("Concat", *parts, axis=axis)
    y = net.transpose(net.reshape(y, 1, 2, 4, 2, 4, width), 0, 1, 3, 2, 4, 5)
    qkv = net.reshape(net.linear(net.reshape(y, 4, 16, width), width, 3 * width), 4, 16, 3, heads, 16)
    parts = net("Split", net.transpose(qkv, 2, 0, 3, 1, 4), np.array([1, 1, 1]), axis=0, results=3)
    q, k, v = (net("Squeeze", part, np.array([0])) for part in parts)
    scores = net("MatMul", net("Mul", q, np.float32(0.25)), net.transpose(k, 0, 1, 3, 2))
    scores = net("Add", scores, net.weights(1, heads, 16, 16))
    scores = net("Add", net.reshape(scores, 1, 4, heads, 16, 16), net.weights(1, 4, 1, 16, 16))
    p = net("Softmax", net.reshape(scores, 4, heads, 16, 16), axis=-1)
    y = net.reshape(net.transpose(net("MatMul", p, v), 0, 2, 1, 3), 4, 16, width)
    y = net.reshape(net.linear(y, width, width), 1, 2, 2, 4, 4, width)
    y = net.reshape(net.transpose(y, 0, 1, 3, 2, 4, 5), 1, 8, 8, width)
    return net.model(net("Add", x, y))


GRAPHS = {
    build.__name__: build
    for build in (
        vit, bert, unet, mobilenet_v3, yolo, crnn, gru, convnext, gpt, whisper, diffusion, super_resolution, swin,
    )
}  # fmt: skip
