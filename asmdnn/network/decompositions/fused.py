"""onnxruntime's fused operators of convolutions, products, activations and layer normalisation."""

from typing import Any

from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.sampling import GRID
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import (
    AXIS,
    EPSILON,
    FLOAT,
    FLOATS,
    INT,
    POOLING,
    WINDOW,
    Attributes,
    one_of,
)  # fmt: skip

ACTIVATIONS: dict[str, tuple[str, ...]] = {  # and the attributes that their parameters are
    "Relu": (), "Tanh": (), "Sigmoid": (), "Softplus": (), "Softsign": (), "HardSwish": (), "Gelu": (),
    "LeakyRelu": ("alpha",), "Elu": ("alpha",), "ThresholdedRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"),
    "Selu": ("alpha", "gamma"), "Clip": (),
}  # fmt: skip


def plus(w: Decomposer, x: str, added: str) -> str:
    """The sum with an operand that may be left out."""
    return x if added == NOTHING else w.add(x, added)


def activated(w: Decomposer, node: Node, x: str, parameters: tuple[float, ...]) -> str:
    """The activation that a node names, of its result."""
    name = node.get("activation", "")
    if not name:
        return x
    if name == "Clip":
        return w("Clip", x, *(w.constant(bound) for bound in parameters[:2]))
    given: dict[str, Any] = dict(zip(ACTIVATIONS[name], parameters, strict=False))
    return w(name, x, **given)


def conv(w: Decomposer, node: Node, x: str, weights: str, bias: str, added: str) -> tuple[str, ...]:
    how = {name: value for name, value in node.attributes.items() if not name.startswith("activation")}
    y = w("Conv", x, weights, *[bias] * (bias != NOTHING), **how)
    return (activated(w, node, plus(w, y, added), tuple(node.get("activation_params", ()))),)


def nhwc_conv(w: Decomposer, node: Node, x: str, weights: str, bias: str, added: str = NOTHING) -> tuple[str, ...]:
    """Of images whose channels are last; weights as Conv's."""
    first, last = first_and_last(len(w.shape(x)))
    (y,) = conv(w, node, w.turned(x, *first), weights, bias, NOTHING if added == NOTHING else w.turned(added, *first))
    return (w.turned(y, *last),)


def nhwc_max_pool(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    first, last = first_and_last(len(w.shape(x)))
    return (w.turned(w("MaxPool", w.turned(x, *first), **node.attributes), *last),)


def first_and_last(ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of images whose channels come last, which put them first, and back."""
    axes = range(1, ndim - 1)
    return (0, len(axes) + 1, *axes), (0, *(axis + 1 for axis in axes), 1)


def as_in_onnx(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    """What ONNX has under the same name since."""
    given = [name for i, name in enumerate(inputs) if any(inputs[i:])]
    return (w(node.op, *given, **node.attributes),)


def gemm(w: Decomposer, node: Node, a: str, b: str, c: str) -> tuple[str, ...]:
    how = {name: value for name, value in node.attributes.items() if not name.startswith("activation")}
    y = w("Gemm", a, b, *[c] * (c != NOTHING), **how)
    given = {name: node.get(f"activation_{name}") for name in ("alpha", "beta", "gamma")}
    wanted = ACTIVATIONS.get(node.get("activation", ""), ())
    parameters = tuple(given[name] for name in wanted) if all(given[name] is not None for name in wanted) else ()
    return (activated(w, node, y, parameters),)


def matmul(w: Decomposer, node: Node, a: str, b: str) -> tuple[str, ...]:
    both = (
        turned(w, x, bool(node.get(f"transBatch{name}", 0)), bool(node.get(f"trans{name}", 0)))
        for x, name in ((a, "A"), (b, "B"))
    )
    return (w.mul(w("MatMul", *both), node.get("alpha", 1.0)),)


def turned(w: Decomposer, x: str, batch: bool, matrix: bool) -> str:
    """batch: the first axis goes after those of the batch; matrix: the last two change places, then."""
    ndim = len(w.shape(x))
    order = list(range(ndim))
    if batch and ndim > 2:
        order = [*range(1, ndim - 1), 0, ndim - 1]
    if matrix and ndim > 1:
        order[-2:] = order[:-3:-1]
    return x if order == sorted(order) else w.turned(x, *order)


def biased_gelu(w: Decomposer, node: Node, x: str, bias: str = NOTHING) -> tuple[str, ...]:
    how = "tanh" if node.op == "FastGelu" else "none"
    return (w("Gelu", plus(w, x, bias), approximate=how),)


def quick_gelu(w: Decomposer, node: Node, x: str) -> tuple[str, ...]:
    return (w("Swish", x, alpha=node.get("alpha", 1.702)),)


def bias_split_gelu(w: Decomposer, node: Node, x: str, bias: str) -> tuple[str, ...]:
    """The first half times gelu of the second one."""
    y, axis = w.add(x, bias), len(w.shape(x)) - 1
    half = w.shape(x)[axis] // 2
    return (w.mul(w.part(y, axis, 0, half), w("Gelu", w.part(y, axis, half, 2 * half))),)


def bias_add(w: Decomposer, node: Node, x: str, bias: str, skip: str) -> tuple[str, ...]:
    return (w.add(w.add(x, bias), skip),)


def simplified_norm(w: Decomposer, node: Node, x: str, scale: str) -> tuple[str, ...]:
    how = {"axis": node.get("axis", -1), "epsilon": node.get("epsilon", 1e-5)}
    return normalized(w, "RMSNormalization", x, (scale,), any(node.outputs[1:]), how)


def skip_norm(w: Decomposer, node: Node, x: str, skip: str, scale: str, shift: str, bias: str) -> tuple[str, ...]:
    """(y, mean, 1 / deviation, the sum); skip may be that of one image, or of one row."""
    total = plus(w, w.add(x, skip), bias)
    how = {"axis": -1, "epsilon": node.get("epsilon", 1e-12)}
    scales = (scale, shift) if shift != NOTHING else (scale,)
    return (*with_moments(w, total, scales, any(node.outputs[1:3]), how), total)


def with_moments(w: Decomposer, x: str, scales: tuple[str, ...], asked: bool, how: dict[str, Any]) -> tuple[str, ...]:
    """LayerNormalization's results; without the moments names that nobody reads."""
    if asked:
        return w.results("LayerNormalization", (x, *scales), 3, **how)
    return w("LayerNormalization", x, *scales, **how), NOTHING, NOTHING


def skip_simplified_norm(w: Decomposer, node: Node, x: str, skip: str, scale: str, bias: str) -> tuple[str, ...]:
    total = plus(w, w.add(x, skip), bias)
    how = {"axis": -1, "epsilon": node.get("epsilon", 1e-12)}
    y, inverse = (*normalized(w, "RMSNormalization", total, (scale,), any(node.outputs[1:3]), how), NOTHING)[:2]
    return y, NOTHING, inverse, total


def normalized(
    w: Decomposer, op: str, x: str, scales: tuple[str, ...], asked: bool, how: dict[str, Any]
) -> tuple[str, ...]:
    """(y, 1 / root of the mean square), the latter if it is asked for."""
    y = w(op, x, *scales, **how)
    if not asked:
        return (y,)
    ndim = len(w.shape(x))
    axes = range(how["axis"] % ndim, ndim)
    mean = w.reduced("ReduceMean", w.mul(x, x), *axes)
    return y, w("Reciprocal", w("Sqrt", w.add(mean, how["epsilon"])))


ACTIVATION: Attributes = {"activation": one_of("", *ACTIVATIONS)}
PARAMETERS: Attributes = {f"activation_{name}": FLOAT for name in ("alpha", "beta", "gamma")}
TURNED: Attributes = dict.fromkeys(("transA", "transB", "transBatchA", "transBatchB"), INT)
GEMM: Attributes = {"alpha": FLOAT, "beta": FLOAT, "transA": INT, "transB": INT}
NORM: Attributes = {**AXIS, **EPSILON, "stash_type": INT}
FUSED_CONV: Attributes = {**WINDOW, "group": INT, **ACTIVATION, "activation_params": FLOATS}
DECOMPOSITIONS = {
    "FusedConv": ForeignOperator(conv, "xx??", 1, FUSED_CONV),
    "NhwcConv": ForeignOperator(nhwc_conv, "xx?", 1, {**WINDOW, "group": INT}),
    "NhwcFusedConv": ForeignOperator(nhwc_conv, "xx??", 1, FUSED_CONV),
    "NhwcMaxPool": ForeignOperator(nhwc_max_pool, "x", 1, POOLING, of_integers=True),
    "Trilu": ForeignOperator(as_in_onnx, "x?", 1, {"upper": INT}, of_integers=True),
    "Pad": ForeignOperator(as_in_onnx, "xx?", 1, {"mode": one_of("constant", "reflect", "edge")}, of_integers=True),
    "GridSample": ForeignOperator(as_in_onnx, "xx", 1, GRID),
    "FusedGemm": ForeignOperator(gemm, "xx?", 1, {**GEMM, **ACTIVATION, **PARAMETERS}),
    "FusedMatMul": ForeignOperator(matmul, "xx", 1, {"alpha": FLOAT, **TURNED}),
    "TransposeMatMul": ForeignOperator(matmul, "xx", 1, {"alpha": FLOAT, **TURNED}),
    "Gelu": ForeignOperator(biased_gelu, "x"),
    "FastGelu": ForeignOperator(biased_gelu, "x?"),
    "BiasGelu": ForeignOperator(biased_gelu, "xx"),
    "QuickGelu": ForeignOperator(quick_gelu, "x", 1, {"alpha": FLOAT}),
    "BiasSplitGelu": ForeignOperator(bias_split_gelu, "xx"),
    "BiasAdd": ForeignOperator(bias_add, "xxx"),
    "SimplifiedLayerNormalization": ForeignOperator(simplified_norm, "xx", 2, NORM),
    "SkipLayerNormalization": ForeignOperator(skip_norm, "xxx??", 4, EPSILON),
    "SkipSimplifiedLayerNormalization": ForeignOperator(skip_simplified_norm, "xxx?", 4, EPSILON),
}
