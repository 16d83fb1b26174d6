"""Transforms of signals: DFT and STFT are products with constant matrices, and the tables that these are used with.

    X[k] = sum over n of x[n] (cos(2 pi n k / N) - i sin(2 pi n k / N)), the inverse with + and divided by N

Complex numbers have a last axis of two.  A matrix of all N lines makes all frequencies at once, in the kernels of
products; lengths beyond LONGEST would make it too large.
"""

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.arrays import Array
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.words import FLOAT, Decomposer
from asmdnn.network.element_types import element_type
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import AXIS, INT, Attributes
from asmdnn.network.operators.definition import bounded, normal, number
from asmdnn.network.splitting import DecidedByData

LONGEST = 4096
AXIS_AS_INPUT = 20  # the operator set since which the axis of a DFT is one
COSINES = {  # of windows, from 0 to 1 of their length: the weights of 1, cos(2 pi t), cos(4 pi t)
    "HannWindow": (0.5, -0.5), "HammingWindow": (25 / 46, -21 / 46), "BlackmanWindow": (0.42, -0.5, 0.08),
}  # fmt: skip


def constant_number(w: Decomposer, node: Node, name: str, default: float | None = None) -> float:
    """Of an input that is one.  Raises Unimplemented for data."""
    if name == NOTHING and default is not None:
        return default
    data = w.data(name)
    if data is None:
        raise DecidedByData(
            f"{node} has dims that depend on the data of {shown(name)}: pass it in constants=, or load the model with "
            "fallback='numpy'",
            value=name,
        )
    return float(number(data))


def lines(count: int, kept: int, length: int, sign: int) -> Array:
    """f64[count, 2, kept, 2]: what the parts of an element add to those of each frequency."""
    angle = 2 * np.pi * (np.arange(count)[:, None] * np.arange(kept) % length) / length
    c, s = np.cos(angle), sign * np.sin(angle)
    return np.stack([np.stack([c, s], -1), np.stack([-s, c], -1)], 1)


def mirrored(count: int, length: int) -> Array:
    """f64[count, 2, length, 1]: real numbers out of half of their frequencies, as an inverse has them."""
    half: Array = lines(count, length, length, 1)[..., :1] / length
    twice = np.full(count, 2.0)
    twice[0] = 1
    if length % 2 == 0 and count > length // 2:
        twice[length // 2] = 1
    return np.asarray(half * twice[:, None, None, None])


def matrix_of(count: int, parts: int, length: int, inverse: bool, onesided: bool) -> Array:
    """f64[count parts, made, ...] for elements of an axis and their parts, 1 or 2."""
    used = min(count, length)
    if inverse and onesided:
        found = mirrored(min(count, length // 2 + 1), length)
    else:
        kept = length // 2 + 1 if onesided else length
        found = lines(used, kept, length, 1 if inverse else -1) / (length if inverse else 1)
    padded = np.zeros((count, *found.shape[1:]))
    padded[: len(found)] = found
    return padded[:, :parts].reshape(count * parts, -1)


def transformed(w: Decomposer, node: Node, x: str, axis: int, length: int, windowed: Array | None = None) -> str:
    """x (..., count, ..., parts) along an axis.  windowed: factors of its elements."""
    inverse, onesided = bool(node.get("inverse", 0)), bool(node.get("onesided", node.op == "STFT"))
    dims = w.shape(x)
    if dims[-1] not in (1, 2) or not 1 <= length <= LONGEST or dims[axis] > LONGEST:
        raise Unimplemented(f"{node} is of dims {dims} and length {length}: up to {LONGEST} complex numbers are known")
    matrix = matrix_of(dims[axis], dims[-1], length, inverse, onesided)
    if windowed is not None:
        matrix = matrix * np.repeat(windowed, dims[-1])[:, None]
    parts = 1 if inverse and onesided else 2
    order = [i for i in range(len(dims) - 1) if i != axis]
    moved = w.turned(x, *order, axis, len(dims) - 1) if order != list(range(axis)) else x
    rows = w.reshaped(moved, *[dims[i] for i in order], dims[axis] * dims[-1])
    made = w("MatMul", rows, w.constant(matrix))
    split = w.reshaped(made, *[dims[i] for i in order], matrix.shape[1] // parts, parts)
    back = [*range(axis), len(order), *range(axis, len(order)), len(order) + 1]
    return split if back == sorted(back) else w.turned(split, *back)


def dft(w: Decomposer, node: Node, x: str, length: str, place: str) -> tuple[str, ...]:
    """The axis is an input since operator set 20, an attribute before."""
    ndim = len(w.shape(x))
    by_input = node.opset >= AXIS_AS_INPUT
    axis = normal(int(constant_number(w, node, place, -2)) if by_input else node.get("axis", 1), ndim)
    if axis == ndim - 1:
        raise InvalidArguments(f"{node} has the axis {axis}, which is that of the parts of complex numbers")
    count = w.shape(x)[axis]
    default = 2 * (count - 1) if node.get("inverse", 0) and node.get("onesided", 0) else count
    return (transformed(w, node, x, axis, int(constant_number(w, node, length, default))),)


def stft(w: Decomposer, node: Node, x: str, step: str, window: str, length: str) -> tuple[str, ...]:
    """Frames of a signal (n, samples, parts), each weighted and transformed; of real ones without parts, too."""
    if len(w.shape(x)) == 2:
        x = w.reshaped(x, *w.shape(x), 1)
    dims, hop = w.shape(x), int(constant_number(w, node, step))
    known = w.shape(window)[0] if window != NOTHING else dims[1]
    size = int(constant_number(w, node, length, known))
    frames = 1 + (dims[1] - size) // max(1, hop)
    if hop < 1 or not 1 <= size <= dims[1] or (window != NOTHING and w.shape(window) != (size,)):
        raise InvalidArguments(f"{node} has frames of {size} samples every {hop} of {dims[1]}, or another window")
    places = np.arange(bounded((frames, size))[0])[:, None] * hop + np.arange(size)
    cut = w("Gather", x, w.constant(places, np.int64), axis=1)
    factors = w.data(window)
    if window != NOTHING and factors is None:
        cut = w.mul(cut, w.reshaped(window, size, 1))
    return (transformed(w, node, cut, 2, size, None if factors is None else factors.astype(float)),)


def cosine_window(w: Decomposer, node: Node, size: str) -> tuple[str, ...]:
    count = bounded((int(constant_number(w, node, size)),))[0]
    period = count if node.get("periodic", 1) else max(1, count - 1)
    t = np.arange(count) / period
    found = sum(a * np.cos(2 * np.pi * k * t) for k, a in enumerate(COSINES[node.op]))
    return (w.constant(found, element_type(node.get("output_datatype", FLOAT), node.op)),)


def mel_weights(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    """Triangles over the frequencies of a transform, whose corners lie evenly on the mel scale."""
    bins, length, rate, lowest, highest = (constant_number(w, node, name) for name in inputs)
    ends = [2595 * np.log10(1 + edge / 700) for edge in (lowest, highest)]
    mels = ends[0] + np.arange(int(bins) + 2) * (ends[1] - ends[0]) / (int(bins) + 2)
    corners = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(int)
    place = np.arange(bounded((int(length) // 2 + 1, int(bins)))[0])[:, None]
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    with np.errstate(all="ignore"):
        rising = np.where(left == middle, place == middle, (place - left) / (middle - left))
        falling = (right - place) / (right - middle)
    on_left, on_right = (place >= left) & (place <= middle), (place >= middle) & (place < right)
    found = np.where(on_right, falling, np.where(on_left, rising, 0.0))
    return (w.constant(found, element_type(node.get("output_datatype", FLOAT), node.op)),)


WINDOW: Attributes = {"output_datatype": INT, "periodic": INT}
DECOMPOSITIONS = {
    "DFT": ForeignOperator(dft, "x??", 1, {**AXIS, "inverse": INT, "onesided": INT}),
    "STFT": ForeignOperator(stft, "xx??", 1, {"onesided": INT}),
    **dict.fromkeys(COSINES, ForeignOperator(cosine_window, "x", 1, WINDOW, of_integers=True)),
    "MelWeightMatrix": ForeignOperator(mel_weights, "xxxxx", 1, {"output_datatype": INT}, of_integers=True),
}
