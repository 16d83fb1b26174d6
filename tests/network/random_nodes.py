"""Random nodes of ONNX, with attributes that exporters seldom write; what onnxruntime makes of each is the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np

OTHERS = range(1, 5)  # all operands but the first


@dataclass
class RandomNode:
    """op: on operands, of which None is left out, with attributes.  constants: which of them must be known; others
    after the first one may be.  slack: roundings of sums, beside the largest result."""

    op: str
    operands: Sequence[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 13
    outputs: int = 1
    constants: Sequence[int] = ()
    slack: float = 64


class Chance:
    """What the seed chooses."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def number(self, least: int, most: int) -> int:
        return int(self.random.integers(least, most + 1))

    def numbers(self, count: int, least: int, most: int) -> list[int]:
        return [self.number(least, most) for _ in range(count)]

    def one_of(self, *some: Any) -> Any:
        return some[self.number(0, len(some) - 1)]

    def is_so(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def some(self, **attributes: Any) -> dict[str, Any]:
        return {name: value for name, value in attributes.items() if self.is_so(0.7)}

    def array(self, *dims: int, dtype: Any = np.float32) -> np.ndarray:
        if np.dtype(dtype).kind in "iu":
            return self.random.integers(0 if np.dtype(dtype).kind == "u" else -20, 20, dims).astype(dtype)
        return np.asarray(self.random.standard_normal(dims) * 2).astype(dtype)

    def dims(self, least: int = 1, most: int = 4) -> list[int]:
        return self.numbers(self.number(least, most), 1, 6)

    def axis(self, dims: Sequence[int]) -> int:
        return self.number(-len(dims), len(dims) - 1)

    def padding(self, kernel: Sequence[int]) -> dict[str, Any]:
        how = self.one_of("SAME_UPPER", "SAME_LOWER", "VALID", "pads", "pads", "")
        if how == "pads":
            return {"pads": [self.number(0, k // 2) for k in (*kernel, *kernel)]}
        return {"auto_pad": how} if how else {}

    def image(self, kernel: Sequence[int], dilations: Sequence[int], more: int = 8) -> list[int]:
        return [self.number(d * (k - 1) + 1, d * (k - 1) + more) for k, d in zip(kernel, dilations, strict=True)]


def pooling(c: Chance) -> RandomNode:
    """Dilated or padded by a word, but not both, where onnxruntime pads as if it were not dilated."""
    op, axes = c.one_of("MaxPool", "AveragePool", "LpPool"), c.number(1, 3)
    kernel = c.numbers(axes, 1, 4)
    known = {"kernel_shape": kernel, **c.some(strides=c.numbers(axes, 1, 3)), **c.padding(kernel)}
    dilations = [1] * axes
    if known.get("auto_pad", "VALID") == "VALID" and c.is_so():
        dilations = known["dilations"] = c.numbers(axes, 1, 2)
    known |= c.some(ceil_mode=c.number(0, 1)) if "auto_pad" not in known else {}
    known |= {"AveragePool": c.some(count_include_pad=c.number(0, 1)), "LpPool": c.some(p=c.number(1, 4))}.get(op, {})
    x = c.array(c.number(1, 2), c.number(1, 18), *c.image(kernel, dilations))
    if known.get("auto_pad", "").startswith("SAME"):  # padding of less than nothing is refused there
        known["strides"] = [min(s, k) for s, k in zip(known.get("strides", [1] * axes), kernel, strict=True)]
    return RandomNode(op, [x], known, 19)


def convolution(c: Chance) -> RandomNode:
    op, axes, groups = c.one_of("Conv", "ConvTranspose"), c.number(1, 3), c.one_of(1, 1, 2, 3)
    inputs, outputs = groups * c.number(1, 5), groups * c.number(1, 5)
    kernel, dilations = c.numbers(axes, 1, 4), c.numbers(axes, 1, 2)
    padding = c.padding(kernel)
    if padding.get("auto_pad", "").startswith("SAME") or op == "ConvTranspose":
        dilations = [1] * axes
        padding = {} if op == "ConvTranspose" and "auto_pad" in padding else padding
    known = {"group": groups, "dilations": dilations, **c.some(strides=c.numbers(axes, 1, 3)), **padding}
    weights = (outputs, inputs // groups) if op == "Conv" else (inputs, outputs // groups)
    x, w = c.array(c.number(1, 3), inputs, *c.image(kernel, dilations)), c.array(*weights, *kernel)
    return RandomNode(op, [x, w, c.one_of(None, c.array(outputs))], known, c.one_of(7, 11, 13))


def reduction(c: Chance) -> RandomNode:
    op = "Reduce" + c.one_of("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSumExp", "SumSquare")
    dims = c.dims(1, 5)
    axes = [int(a) - c.one_of(0, len(dims)) for a in c.random.permutation(len(dims))[: c.number(0, len(dims))]]
    known = c.some(keepdims=c.number(0, 1), noop_with_empty_axes=c.number(0, 1))
    numbers = np.float32 if op in ("ReduceProd", "ReduceLogSumExp") else np.int32  # integers that fit
    x = c.array(*dims, dtype=c.one_of(np.float32, np.float32, np.float64, numbers))
    return RandomNode(op, [x, c.one_of(None, np.array(axes, np.int64))], known, 18, constants=OTHERS)


def cut(c: Chance) -> RandomNode:
    """Slices, also backwards and from beyond the ends."""
    dims = c.dims(1, 5)
    axes = [int(a) for a in c.random.permutation(len(dims))[: c.number(1, len(dims))]]
    steps = [c.one_of(1, 2, -1, -2, 3) for _ in axes]
    starts = [c.number(-dims[a] - 2, dims[a] + 2) for a in axes]
    far = [2**62 if step > 0 else -(2**62) for step in steps]
    ends = [c.one_of(c.number(-dims[a] - 2, dims[a] + 2), end) for a, end in zip(axes, far, strict=True)]
    axes = [a - c.one_of(0, len(dims)) for a in axes]
    given = (np.array(words, np.int64) for words in (starts, ends, axes, steps))
    x = c.array(*dims, dtype=c.one_of(np.float32, np.int64, np.uint8))
    return RandomNode("Slice", [x, *given], constants=OTHERS)


def by_indices(c: Chance) -> RandomNode:
    op, dims = c.one_of("Gather", "GatherElements", "GatherND"), c.dims(1, 4)
    x, axis = c.array(*dims, dtype=c.one_of(np.float32, np.float32, np.int32, np.uint8)), c.axis(dims)
    if op == "GatherND":
        depth = c.number(1, len(dims))
        count = c.dims(0, 2)
        return RandomNode(op, [x, np.stack([c.random.integers(-n, n, count) for n in dims[:depth]], -1)])
    shape = c.dims(0, 2) if op == "Gather" else [c.number(1, n) for n in dims]
    return RandomNode(op, [x, c.random.integers(-dims[axis], dims[axis], shape)], {"axis": axis})


def put(c: Chance) -> RandomNode:
    """Scatters; without a reduction no place is named twice, as what stays is then nobody's word."""
    op, dims = c.one_of("ScatterElements", "ScatterND"), c.dims(1, 4)
    dtype, axis = c.one_of(np.float32, np.float32, np.int64), c.axis(dims)
    known = {"reduction": c.one_of("none", "add", "mul" if dtype == np.float32 else "add", "max", "min")}
    is_once, size = known["reduction"] == "none", dims[axis]
    if op == "ScatterND":
        depth, count = c.number(1, len(dims)), c.number(1, 6)
        places = prod(dims[:depth])
        numbers = c.random.permutation(places)[:count] if is_once else c.random.integers(0, places, count)
        indices = np.stack(np.unravel_index(numbers, dims[:depth]), -1)
        updates = c.array(len(numbers), *dims[depth:], dtype=dtype)
        return RandomNode(op, [c.array(*dims, dtype=dtype), indices, updates], known, 18, constants=OTHERS)
    shape = [c.number(1, n) for n in dims]
    one_each = np.argsort(c.random.random([size if i == axis else n for i, n in enumerate(shape)]), axis)
    indices = one_each.take(range(shape[axis]), axis) if is_once else c.random.integers(0, size, shape)
    indices = indices - size * (c.random.random(shape) < 0.3)
    given = [c.array(*dims, dtype=dtype), indices, c.array(*shape, dtype=dtype)]
    return RandomNode(op, given, {"axis": axis, **known}, 18, constants=c.one_of((), (1,)))


def chosen(c: Chance) -> RandomNode:
    """With one truth everywhere, or with several."""
    op, dims = c.one_of("Where", "Pow", "Trilu"), c.dims(2, 4)
    parts = [[c.one_of(1, n) for n in dims][c.number(0, 1) :] for _ in range(2)]
    if op == "Where":
        truths = c.one_of(np.full(c.one_of([], parts[0]), c.is_so()), c.random.random(parts[0]) < 0.5)
        constants = c.one_of((0,), (0, 1), ())
        return RandomNode(op, [truths, c.array(*parts[1]), c.array(*dims)], opset=16, constants=constants)
    if op == "Pow":
        exponents = c.one_of(np.float32(c.one_of(0, 1, 2, 0.5, -1)), c.array(*parts[0]))
        return RandomNode(op, [abs(c.array(*dims)), exponents], opset=15, constants=c.one_of((), (1,)))
    dims = c.one_of(dims, [1, 1])
    return RandomNode(op, [c.array(*dims), np.array(c.number(-3, 3))], {"upper": c.number(0, 1)}, 14)


def resizing(c: Chance) -> RandomNode:
    """By whole sizes, since definitions differ in what a factor means that makes none; onnxruntime crops nothing where
    sizes stay."""
    dims, mode = [c.number(1, 2), c.number(1, 4), *c.numbers(2, 2, 8)], c.one_of("nearest", "linear", "cubic")
    sizes = [*dims[:2], *(c.one_of(*range(1, n), *range(n + 1, 14)) for n in dims[2:])]
    known = {"mode": mode, "coordinate_transformation_mode": c.one_of(
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")}  # fmt: skip
    if mode == "nearest" or known["coordinate_transformation_mode"] == "tf_crop_and_resize":
        known["mode"] = "linear" if mode == "nearest" else mode
        roi = np.float32([0, 0, 0.1, 0.2, 1, 1, 1.3, 0.9])
        known |= c.some(extrapolation_value=2.5)
    else:
        roi = None
        known |= c.some(antialias=1)
    known |= c.some(cubic_coeff_a=-0.5, exclude_outside=1) if mode == "cubic" else {}
    return RandomNode("Resize", [c.array(*dims), roi, None, np.array(sizes)], known, 19, constants=OTHERS)


def recurrent(c: Chance) -> RandomNode:
    op, steps, rows, inputs, units = c.one_of("LSTM", "GRU", "RNN"), *c.numbers(4, 1, 5)
    direction = c.one_of("forward", "reverse", "bidirectional")
    count, gates = 2 if direction == "bidirectional" else 1, {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    functions = count * {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
    known = {"hidden_size": units, "direction": direction, **c.some(clip=0.7)}
    if c.is_so():
        names = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "Elu")
        known["activations"] = [c.one_of(*names) for _ in range(functions)]
    known |= {"LSTM": c.some(input_forget=1), "GRU": c.some(linear_before_reset=1)}.get(op, {})
    state, lengths = c.array(count, rows, units), np.array(c.numbers(rows, 1, steps), np.int32)
    weights = c.array(count, gates * units, inputs) / 4, c.array(count, gates * units, units) / 4
    more = [c.one_of(None, c.array(count, 2 * gates * units)), c.one_of(None, lengths), c.one_of(None, state)]
    return RandomNode(op, [c.array(steps, rows, inputs), *weights, *more], known, 14, 3 if op == "LSTM" else 2)


def norm(c: Chance) -> RandomNode:
    dims = c.dims(1, 4)
    axis = c.axis(dims)
    dtype, part = c.one_of(np.float32, np.float16), dims[axis % len(dims) :]
    operands = [c.array(*dims, dtype=dtype), *(c.array(*part, dtype=dtype) for _ in range(2))]
    return RandomNode("LayerNormalization", operands, {"axis": axis}, 17, c.one_of(1, 3), slack=2000)


def compressed(c: Chance) -> RandomNode:
    dims = c.dims()
    axis = c.axis(dims)
    return RandomNode("Compress", [c.array(*dims), c.random.random(dims[axis]) < 0.5], {"axis": axis}, constants=OTHERS)


KINDS: list[Callable[[Chance], RandomNode]] = [
    pooling, convolution, reduction, cut, by_indices, put, chosen, resizing, recurrent, norm, compressed,
]  # fmt: skip


def random_node(seed: int) -> tuple[RandomNode, Callable[[], bool]]:
    """The node, and a coin for operands that may be constants."""
    c = Chance(seed)
    return c.one_of(*KINDS)(c), partial(c.is_so, 0.4)
