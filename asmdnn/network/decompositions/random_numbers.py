"""Operators that draw at random: RandomUniform, RandomNormal, both Like another tensor, Bernoulli, Multinomial.

By the seed that a node has, a number depends on its index alone: all are known when the network is planned, and every
call has the same ones, as nothing changes a network.  Without a seed each call draws others, which numpy does.  Nodes
of domain "asmdnn" have another input, a seed that calls pass (seeded.py), and a `place` beside it; Dropout is one.

    Bernoulli(p) = uniform < p,    Multinomial(x) = how many sums of softmax(x) the uniform number reaches
"""

from math import prod
from typing import Any

import numpy as np

from asmdnn.definitions.random_numbers import normals, uniforms
from asmdnn.errors import InvalidArguments, Unimplemented, counted
from asmdnn.network.decompositions.foreign import Decompose, ForeignOperator
from asmdnn.network.decompositions.words import FLOAT as F32_CODE
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.element_types import CODES, element_type
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import FLOAT, INT, INTS, Attributes, needed
from asmdnn.network.operators.definition import Shape, bounded
from asmdnn.network.operators.own import DRAWN, OWN
from asmdnn.network.passing import is_half

INT32, INT64 = 6, 7  # ONNX's numbers of types
Names = tuple[str, ...]
KINDS = {"Uniform": uniforms, "Normal": normals}


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or is_half(dtype)


def drawn(w: Decomposer, node: Node, kind: str, shape: Shape) -> str:
    """Numbers from 0 to below 1, or of mean 0 and variance 1, as f32."""
    dims = bounded(tuple(map(int, shape)))
    if node.domain == OWN:
        return w(DRAWN, node.inputs[-1], domain=OWN, kind=kind, shape=dims, place=node.get("place"))
    if "seed" not in node.attributes:
        return w(DRAWN, domain=OWN, kind=kind, shape=dims)
    bits = int(np.float32(node.get("seed")).view(np.uint32))
    return w.constant(KINDS[kind](bits, prod(dims)).reshape(dims))


def scaled(w: Decomposer, node: Node, kind: str, shape: Shape, dtype: int) -> Names:
    """In the range, or of the mean and the deviation, that a node says.  Raises InvalidArguments."""
    if not is_float(element_type(dtype, "dtype")):
        raise InvalidArguments(f"{node} draws {element_type(dtype, 'dtype')}, it must be of floats: say its dtype")
    if kind == "Uniform":
        low, high = node.get("low", 0.0), node.get("high", 1.0)
        start, factor = low, high - low
    else:
        start, factor = node.get("mean", 0.0), node.get("scale", 1.0)
    x = w.mul(drawn(w, node, kind, shape), float(factor))
    x = x if start == 0 else w.add(x, float(start))
    return (x if dtype == F32_CODE else w("Cast", x, to=dtype),)


def of_shape(kind: str) -> Decompose:
    def decompose(w: Decomposer, node: Node) -> Names:
        return scaled(w, node, kind, tuple(node.get("shape")), node.get("dtype", F32_CODE))

    return decompose


def like(kind: str) -> Decompose:
    def decompose(w: Decomposer, node: Node, x: str) -> Names:
        value = w.value(x)
        return scaled(w, node, kind, value.shape, node.get("dtype", CODES[value.dtype.name]))

    return decompose


def bernoulli(w: Decomposer, node: Node, p: str) -> Names:
    value = w.value(p)
    if not is_float(value.dtype):
        raise InvalidArguments(f"{node} has chances of {value.dtype}, they must be floats")
    found = w("Less", drawn(w, node, "Uniform", value.shape), w.number(p))
    return (w("Cast", found, to=node.get("dtype", CODES[value.dtype.name])),)


def multinomial(w: Decomposer, node: Node, x: str) -> Names:
    shape, count, dtype = w.shape(x), node.get("sample_size", 1), node.get("dtype", INT32)
    if len(shape) != 2 or not is_float(w.value(x).dtype):
        raise InvalidArguments(f"{node} has logarithms of dims {shape}, they must be floats of [batch, classes]")
    if dtype not in (INT32, INT64) or count < 1:
        raise InvalidArguments(
            f"{node} draws {counted(count, 'number')} of type {dtype}: it must be 1 or more, of 6 or 7"
        )
    batch, classes = shape
    sums = w("CumSum", w("Softmax", w.number(x), axis=1), w.constant(1, np.int64))
    reached = w("Mul", drawn(w, node, "Uniform", (batch, count)), w.part(sums, 1, classes - 1, classes))
    is_reached = w("LessOrEqual", w.lifted(sums, 1), w.lifted(reached, 2))
    places = w.reduced("ReduceSum", w("Cast", is_reached, to=INT64), 2, keepdims=False)
    held = w("Min", places, w.constant(classes - 1, np.int64))  # where the last sum is rounded
    return (held if dtype == INT64 else w("Cast", held, to=dtype),)


def dropout(w: Decomposer, node: Node, x: str, ratio: str, training: str) -> Names:
    """x / (1 - ratio) where the uniform number is ratio or more; and where that is.  Raises InvalidArguments,
    Unimplemented."""
    mode, given = w.data(training), np.array(0.5) if ratio == NOTHING else w.data(ratio)
    if mode is None or given is None:
        raise Unimplemented(f"{node} has a training_mode or a ratio that is data: make it a constant")
    share = float(given.reshape(-1)[0]) if given.size == 1 else np.nan
    if not 0 <= share < 1:
        raise InvalidArguments(f"{node} has the ratio {share:g}, it must be a number from 0 on and less than 1")
    if not np.any(mode) or share == 0:
        return x, w.constant(np.ones(w.shape(x)), np.bool_)
    stays = w("GreaterOrEqual", drawn(w, node, "Uniform", w.shape(x)), w.constant(share))
    return w.where(stays, w.mul(x, float(np.float32(1) / (np.float32(1) - np.float32(share)))), 0.0), stays


def without_seed(decompose: Decompose) -> Decompose:
    """The same of a node whose last input is the seed, which `drawn` takes."""
    return lambda w, node, *inputs: decompose(w, node, *inputs[:-1])


DRAWS: Attributes = {"dtype": INT, "seed": FLOAT}
UNIFORM: Attributes = {**DRAWS, "low": FLOAT, "high": FLOAT}
NORMAL: Attributes = {**DRAWS, "mean": FLOAT, "scale": FLOAT}
SHAPE: Attributes = {"shape": needed(INTS)}
DECOMPOSITIONS = {
    name: ForeignOperator(decompose, inputs, 1, attributes, of_integers=True)
    for name, decompose, inputs, attributes in (
        ("RandomUniform", of_shape("Uniform"), "", {**UNIFORM, **SHAPE}),
        ("RandomNormal", of_shape("Normal"), "", {**NORMAL, **SHAPE}),
        ("RandomUniformLike", like("Uniform"), "x", UNIFORM),
        ("RandomNormalLike", like("Normal"), "x", NORMAL),
        ("Bernoulli", bernoulli, "x", DRAWS),
        ("Multinomial", multinomial, "x", {**DRAWS, "sample_size": INT}),
    )
}
SEEDED = {
    **{
        name: ForeignOperator(
            without_seed(known.decompose), f"{known.inputs}x", 1, {**known.attributes, "place": INT}, of_integers=True
        )
        for name, known in DECOMPOSITIONS.items()
    },
    "Dropout": ForeignOperator(without_seed(dropout), "x??x", 2, {"seed": INT, "place": INT}),
}  # by name, of the domain "asmdnn"
