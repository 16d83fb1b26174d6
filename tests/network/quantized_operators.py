"""Operators between DequantizeLinear and QuantizeLinear, and those whose names begin with QLinear, in orders, types and
attributes that no quantiser writes together."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from tests.network.random_nodes import Chance
from tests.network.random_quantized import MICROSOFT, Bytes, RandomFile


def conv_dims(dims: tuple[int, ...], kernel: list[int], known: dict[str, Any]) -> tuple[int, ...]:
    n = len(kernel)
    pads = known.get("pads", [0] * 2 * n)
    span = [d * (k - 1) + 1 for d, k in zip(known.get("dilations", [1] * n), kernel, strict=True)]
    strides = known.get("strides", [1] * n)
    return tuple((dims[2 + i] + pads[i] + pads[i + n] - span[i]) // strides[i] + 1 for i in range(n))


def window(c: Chance, x: Bytes) -> dict[str, Any]:
    kernel = [c.number(1, min(3, n)) for n in x.dims[2:]]
    strides, pads = c.numbers(len(kernel), 1, 2), [c.number(0, k // 2) for k in kernel * 2]
    return {"kernel_shape": kernel} | c.some(strides=strides, pads=pads)


def convolution(f: RandomFile) -> bool:
    x, c = f.value(lambda x: len(x.dims) in (3, 4)), f.chance
    if x is None:
        return False
    known, channels = window(c, x), x.dims[1]
    kernel = known["kernel_shape"]
    group = c.one_of(1, 1, channels, *(g for g in (2, 4) if channels % g == 0))
    outputs = group * c.number(1, 3 if group > 1 else 20)
    inputs = channels // group
    is_qlinear, terms = c.is_so(), inputs * int(np.prod(kernel))
    w = f.weights((outputs, inputs, *kernel), 0, terms, is_qlinear and x.zero.dtype == np.int8)
    dims = (x.dims[0], outputs, *conv_dims(x.dims, kernel, known))
    known |= {"group": group}
    if not all(n > 0 for n in dims):
        return False
    if is_qlinear:
        scale, zero = f.numbers_like(x, x.largest)
        names = (*f.triple(x), *w.names, *f.names(scale, zero), *([f.bias(x, w, outputs)] if c.is_so() else []))
        return f.add(f.node("QLinearConv", *names, **known), dims, w.gain() * x.error, scale, zero)
    bias = [f.float_bias(x, w, outputs)] if c.is_so() else []
    y = f.node("Conv", f.floats(x), f.node("DequantizeLinear", *w.names, axis=0), *bias, **known)
    return after(f, y, dims, w.gain() * x.error, x.largest)


def product(f: RandomFile) -> bool:
    """MatMul, Gemm and their QLinear words."""
    x, c = f.value(lambda x: len(x.dims) >= 2), f.chance
    if x is None:
        return False
    k, n = x.dims[-1], c.number(1, 20)
    is_gemm = len(x.dims) == 2 and c.is_so()
    transposed = is_gemm and c.is_so()
    is_qlinear = c.is_so()
    axis = 0 if transposed else 1
    w = f.weights((n, k) if transposed else (k, n), axis, k, is_qlinear and x.zero.dtype == np.int8)
    dims = (*x.dims[:-1], n)
    error = w.gain() * x.error
    if is_gemm and is_qlinear:
        scale, zero = f.numbers_like(x, x.largest)
        bias = f.bias(x, w, n) if c.is_so() else ""
        names = (*f.triple(x), *w.names, bias, *f.names(scale, zero))
        return f.add(
            f.node("QGemm", *names, domain=MICROSOFT, transB=int(transposed), alpha=1.0), dims, error, scale, zero
        )
    if is_qlinear:
        scale, zero = f.numbers_like(x, x.largest)
        return f.add(f.node("QLinearMatMul", *f.triple(x), *w.names, *f.names(scale, zero)), dims, error, scale, zero)
    floats, weights = f.floats(x), f.node("DequantizeLinear", *w.names, axis=axis)
    if is_gemm:
        bias = [f.float_bias(x, w, n)] if c.is_so() else []
        known = {"transB": int(transposed)} | c.some(alpha=0.5, beta=2.0)
        y = f.node("Gemm", floats, weights, *bias, **known)
    else:
        y = f.node("MatMul", floats, weights)
    return after(f, y, dims, error, x.largest)


def after(f: RandomFile, y: str, dims: tuple[int, ...], error: float, largest: float) -> bool:
    """Functions of floats, whose slopes are at most 1.8, and bytes."""
    for _ in range(f.chance.one_of(0, 0, 1, 1, 2)):
        op = f.chance.one_of(*MAPS)
        y, error = f.node(op, y, *MAPS[op](f, dims)), 1.8 * error + (op in STEEP)
    return f.quantize(y, dims, error, largest)


def bounds(f: RandomFile, dims: tuple[int, ...]) -> tuple[str, ...]:
    return f.constant(np.float32(f.chance.one_of(0, -1, 0.3))), f.constant(np.float32(f.chance.one_of(1, 6, 2.5)))


def small(f: RandomFile, dims: tuple[int, ...]) -> tuple[str, ...]:
    """One number, or one for each channel or column."""
    along = f.chance.one_of(len(dims), min(1, len(dims) - 1), len(dims) - 1)
    wide = tuple(n if i == along else 1 for i, n in enumerate(dims))
    return (f.constant(np.float32(f.chance.random.uniform(-1, 1, f.chance.one_of(wide, wide[1:])))),)


NONE: Callable[[RandomFile, tuple[int, ...]], tuple[str, ...]] = lambda f, dims: ()  # noqa: E731
MAPS = {
    **dict.fromkeys(("Relu", "HardSwish", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Abs", "Neg", "Elu"), NONE),
    **dict.fromkeys(("Softplus", "Erf", "Mish", "Gelu", "Selu", "ThresholdedRelu", "Celu", "Round"), NONE),
    "Clip": bounds, "Mul": small, "Add": small, "Sub": small, "PRelu": small, "Max": small, "Min": small,
}  # fmt: skip
STEEP = {"ThresholdedRelu", "Round"}  # with jumps


def of_two(f: RandomFile) -> bool:
    x, c = f.value(), f.chance
    assert x is not None
    y = f.value(lambda y: all(1 in (m, n) or m == n for m, n in zip(x.dims[::-1], y.dims[::-1], strict=False)))
    assert y is not None
    op = c.one_of("Add", "Mul", "Sub", "Max", "Min")
    dims = np.broadcast_shapes(x.dims, y.dims)
    error = x.error * y.largest + y.error * x.largest if op == "Mul" else x.error + y.error
    largest = x.largest * y.largest if op == "Mul" else x.largest + y.largest
    if op in ("Add", "Mul") and x.zero.dtype == y.zero.dtype and c.is_so():
        scale, zero = f.numbers_like(x, largest / 2)
        names = (*f.triple(x), *f.triple(y), *f.names(scale, zero))
        return f.add(f.node(f"QLinear{op}", *names, domain=MICROSOFT), dims, error, scale, zero)
    return after(f, f.node(op, f.floats(x), f.floats(y)), dims, error, largest / 2)


def of_one(f: RandomFile) -> bool:
    x, c = f.value(), f.chance
    assert x is not None
    op = c.one_of("Sigmoid", "LeakyRelu", "Softmax", "")
    if not op:
        return after(f, f.floats(x), x.dims, x.error, x.largest)
    known: dict[str, Any] = {"Sigmoid": {}, "LeakyRelu": c.some(alpha=0.3), "Softmax": {"axis": c.axis(x.dims)}}[op]
    largest = x.largest if op == "LeakyRelu" else 1.0
    if not c.is_so():
        return f.quantize(f.node(op, f.floats(x), **known), x.dims, x.error, largest)
    scale, zero = f.numbers_like(x, largest)
    if op == "Softmax":
        known |= {"opset": 13}
    y = f.node(f"QLinear{op}", *f.triple(x), *f.names(scale, zero), domain=MICROSOFT, **known)
    return f.add(y, x.dims, x.error, scale, zero)


def pooling(f: RandomFile) -> bool:
    x, c = f.value(lambda x: len(x.dims) == 4), f.chance
    if x is None:
        return False
    op = c.one_of("MaxPool", "AveragePool", "GlobalAveragePool")
    known = {} if op.startswith("Global") else window(c, x)
    dims = (*x.dims[:2], *((1, 1) if op.startswith("Global") else conv_dims(x.dims, known["kernel_shape"], known)))
    if not all(n > 0 for n in dims):
        return False
    if op == "MaxPool" and c.is_so():
        f.read.add(x.name)
        f.values.append(Bytes(f.node(op, x.name, **known), dims, x.scale, x.zero, x.off))
        return True
    if op != "MaxPool" and c.is_so():
        known |= c.some(count_include_pad=1) if op == "AveragePool" else {}
        scale, zero = f.numbers_like(x, x.largest)
        y = f.node(f"QLinear{op}", *f.triple(x), *f.names(scale, zero), domain=MICROSOFT, **known)
        return f.add(y, dims, x.error, scale, zero)
    return after(f, f.node(op, f.floats(x), **known), dims, x.error, x.largest)


def joined(f: RandomFile) -> bool:
    x, c = f.value(), f.chance
    assert x is not None
    axis = c.number(0, len(x.dims) - 1)
    apart = lambda dims: (*dims[:axis], 0, *dims[axis + 1 :])  # noqa: E731
    others = (f.value(lambda y: apart(y.dims) == apart(x.dims)) for _ in range(c.number(1, 2)))
    parts = [x, *(y for y in others if y is not None)]
    dims = (*x.dims[:axis], sum(y.dims[axis] for y in parts), *x.dims[axis + 1 :])
    error, largest = max(y.error for y in parts), max(y.largest for y in parts)
    if len({y.zero.dtype for y in parts}) == 1 and c.is_so():
        scale, zero = f.numbers_like(x, largest)
        triples = [name for y in parts for name in f.triple(y)]
        y = f.node("QLinearConcat", *f.names(scale, zero), *triples, domain=MICROSOFT, axis=axis)
        return f.add(y, dims, error, scale, zero)
    return after(f, f.node("Concat", *map(f.floats, parts), axis=axis), dims, error, largest)


def moved(f: RandomFile) -> bool:
    """Bytes or their floats elsewhere, or larger images."""
    x, c = f.value(), f.chance
    assert x is not None
    op, rank = c.one_of("Transpose", "Reshape", "Slice", "Resize", "Pad", "ReduceMean"), len(x.dims)
    order = [int(i) for i in c.random.permutation(rank)]
    if op == "Transpose":
        names, known, dims = (), {"perm": order}, tuple(x.dims[i] for i in order)
    elif op == "Reshape":
        dims = c.one_of((*x.dims[:-2], x.dims[-1] * x.dims[-2]), (*x.dims[1:], x.dims[0]), (x.dims[0], 1, *x.dims[1:]))
        names, known = (f.constant(np.array(dims)),), {}
    elif op == "Slice":
        axis = order[0]
        first = c.number(0, x.dims[axis] - 1)
        dims = tuple(n - first if i == axis else n for i, n in enumerate(x.dims))
        names, known = tuple(f.constant(np.array([i])) for i in (first, 2**40, axis)), {}
    elif op == "Resize" and rank == 4:
        dims = (*x.dims[:2], *(c.number(1, 2) * n for n in x.dims[2:]))
        names, known = ("", "", f.constant(np.array(dims))), {"mode": c.one_of("nearest", "linear")}
    elif op == "Pad":
        pads = c.numbers(2 * rank, 0, 1)
        dims = tuple(n + a + b for n, a, b in zip(x.dims, pads[:rank], pads[rank:], strict=True))
        names, known = (f.constant(np.array(pads)),), {"mode": c.one_of("constant", "edge")}
    elif op == "ReduceMean":
        dims = tuple(1 if i in order[:2] else n for i, n in enumerate(x.dims))
        names, known = (f.constant(np.array(order[:2])),), {"keepdims": 1}
    else:
        return False
    if max(dims) > 400 or len(dims) > 5:
        return False
    if op in ("Transpose", "Reshape", "Slice") and c.is_so():
        f.read.add(x.name)
        f.values.append(Bytes(f.node(op, x.name, *names, **known), dims, x.scale, x.zero, x.off))
        return True
    return after(f, f.node(op, f.floats(x), *names, **known), dims, x.error, x.largest)


def transposed(f: RandomFile) -> bool:
    """A transposed convolution, also of one spatial axis."""
    x, c = f.value(lambda x: len(x.dims) in (3, 4)), f.chance
    if x is None:
        return False
    kernel, group = [c.number(1, 3) for _ in x.dims[2:]], c.one_of(1, 1, x.dims[1])
    inputs, outputs = x.dims[1], c.number(1, 6)
    strides = [c.number(1, 2) for _ in kernel]
    w = f.weights((inputs, outputs, *kernel), 0, inputs // group * int(np.prod(kernel)), is_signed=False)
    gain = float(abs(w.exact).sum()) / outputs
    weights = f.node("DequantizeLinear", *w.names, axis=0)
    y = f.node("ConvTranspose", f.floats(x), weights, strides=strides, group=group, kernel_shape=kernel)
    sizes = ((n - 1) * s + k for n, s, k in zip(x.dims[2:], strides, kernel, strict=True))
    return after(f, y, (x.dims[0], group * outputs, *sizes), gain * x.error, x.largest)


def of_data(f: RandomFile) -> bool:
    """A product of two values, the second one with its last axes the other way round."""
    x, c = f.value(lambda x: len(x.dims) >= 2), f.chance
    y = x and f.value(lambda y: y.dims[-1] == x.dims[-1] and y.dims[:-2] in ((), x.dims[:-2]))
    if x is None or y is None:
        return False
    k, n = x.dims[-1], y.dims[-2]
    order = [*range(len(y.dims) - 2), len(y.dims) - 1, len(y.dims) - 2]
    dims, largest = (*x.dims[:-1], n), x.largest * y.largest
    error = k * (x.error * y.largest + y.error * x.largest)
    if x.zero.dtype == y.zero.dtype and c.is_so(0.3):
        name, *numbers = f.triple(y)
        scale, zero = f.numbers_like(x, largest)
        names = (*f.triple(x), f.node("Transpose", name, perm=order), *numbers, *f.names(scale, zero))
        return f.add(f.node("QLinearMatMul", *names), dims, error, scale, zero)
    other = f.node("Transpose", f.floats(y), perm=order)
    return after(f, f.node("MatMul", f.floats(x), other), dims, error, largest)


def normalized(f: RandomFile) -> bool:
    """Of a value that has no error, which small variances would make large."""
    x, c = f.value(lambda x: len(x.dims) in (3, 4) and not x.off and x.dims[-1] > 1), f.chance
    if x is None:
        return False
    op = c.one_of("LayerNormalization", "InstanceNormalization")
    count = x.dims[-1] if op.startswith("Layer") else x.dims[1]
    y = f.node(op, f.floats(x), f.constant(c.array(count)), f.constant(c.array(count)), epsilon=1e-3)
    return after(f, y, x.dims, 0.0, 4.0)


def dynamic(f: RandomFile) -> bool:
    """Floats as bytes of their own range, times integers."""
    x, c = f.value(lambda x: len(x.dims) >= 2 and not x.off), f.chance
    if x is None:
        return False
    k, n = x.dims[-1], c.number(1, 20)
    w = f.weights((k, n), 1, k, is_signed=False)
    integers, scale, zero = w.names
    names = [f"{kind}{len(f.nodes)}" for kind in "qsz"]
    f.nodes.append(onnx.helper.make_node("DynamicQuantizeLinear", [f.floats(x)], names))
    sums = f.node("Cast", f.node("MatMulInteger", names[0], integers, names[2], zero), to=onnx.TensorProto.FLOAT)
    y = f.node("Mul", sums, f.node("Mul", names[1], scale))
    y = f.node("Add", y, f.constant(c.array(n))) if c.is_so() else y
    return after(f, y, (*x.dims[:-1], n), w.gain() * 2 * x.largest / 255, x.largest)


STEPS: list[Callable[[RandomFile], bool]] = [
    convolution, convolution, product, product, of_two, of_one, pooling, joined, moved,
    transposed, of_data, normalized, dynamic,
]  # fmt: skip


def random_file(seed: int, count: int) -> RandomFile:
    """A file of `count` operators on bytes; which ones, on which values, is the seed's."""
    file = RandomFile(seed)
    made = 0
    while made < count:
        made += file.chance.one_of(*STEPS)(file)
    return file
