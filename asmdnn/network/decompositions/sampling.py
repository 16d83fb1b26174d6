"""Elements at places that are data: GridSample, AffineGrid.

A tensor (n, c, d1, d2, ...) is read as rows of channels; each sample is a weighted sum of some of them, whose numbers
are sums of places along the axes:

    dst[n, :, o] = sum over taps t of w(t, n, o) src[n, :, place(t, n, o)]

Places are clipped to the tensor, so no look-up is out of range; what lies outside has the weight 0, the border's
element, or that of its mirror image, as the padding says.
"""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import INT, Attributes, one_of
from asmdnn.network.operators.definition import bounded, ints
from asmdnn.network.splitting import decided_by_data

INT32 = 6  # ONNX's number of the type of places
CUBIC = -0.75  # Keys' coefficient, as torch has it
TAPS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}
MODES = {"bilinear": "linear", "bicubic": "cubic"}  # their names up to operator set 19


class SampledImage(NamedTuple):
    """rows: (n * places, c); size: the places of each axis; padding: zeros, border or reflection; edges: where
    reflection mirrors, below and above each axis."""

    rows: str
    size: tuple[int, ...]
    padding: str
    edges: tuple[tuple[float, float], ...]


class SampleTap(NamedTuple):
    """place: integers along an axis, which lie in it; weight: NOTHING for 1."""

    place: str
    weight: str


def image_of(w: Decomposer, x: str, padding: str = "zeros", align: bool = False) -> SampledImage:
    n, c, *size = w.shape(x)
    last = w.turned(x, 0, *range(2, len(size) + 2), 1)
    edges = tuple((0.0, d - 1.0) if align else (-0.5, d - 0.5) for d in size)
    return SampledImage(w.reshaped(last, n * prod(size), c), tuple(size), padding, edges)


def grid_sample(w: Decomposer, node: Node, x: str, grid: str) -> tuple[str, ...]:
    dims, places = w.shape(x), w.shape(grid)
    axes = len(dims) - 2
    if axes < 1 or len(places) != len(dims) or places[0] != dims[0] or places[-1] != axes:
        raise InvalidArguments(
            f"{node} has a grid of dims {places} for dims {dims}, it must have {axes} numbers a place"
        )
    mode, align = str(node.get("mode", "linear")), bool(node.get("align_corners", 0))
    image = image_of(w, x, str(node.get("padding_mode", "zeros")), align)
    taps = []
    for axis, size in enumerate(image.size):
        number = w.part(grid, len(places) - 1, axes - 1 - axis, axes - axis)  # the last axis comes first
        whole = w.add(w.reshaped(number, *places[:-1]), 1.0)
        at = w.mul(whole, (size - 1) / 2) if align else w.sub(w.mul(whole, size / 2), 0.5)
        taps.append(taps_of(w, image, axis, at, MODES.get(mode, mode)))
    return (channels_second(w, sampled(w, image, taps, places[:-1])),)


def taps_of(w: Decomposer, image: SampledImage, axis: int, at: str, mode: str) -> list[SampleTap]:
    """What is read along an axis for places between elements."""
    at = within_edges(w, image, axis, w("Round", at) if mode == "nearest" else at, mode)
    first = at if mode == "nearest" else w("Floor", at)
    shares = shares_of(w, w.sub(at, first), mode)
    found = []
    for step, share in zip(TAPS[mode], shares, strict=True):
        tap = w.add(first, float(step)) if step else first
        size = image.size[axis]
        if image.padding == "zeros":
            share = w.where(inside(w, tap, 0.0, size - 1.0), share if share != NOTHING else 1.0, 0.0)
        elif image.padding == "reflection":
            tap = within_edges(w, image, axis, tap, mode)
        found.append(SampleTap(clipped(w, tap, size), share))
    return found


def shares_of(w: Decomposer, t: str, mode: str) -> list[str]:
    """The weights of the taps for a place that far (0 to 1) after the one at 0."""
    if mode == "nearest":
        return [NOTHING]
    rest = w.sub(w.constant(1.0), t)
    if mode == "linear":
        return [rest, t]
    return [far(w, t), near(w, t), near(w, rest), far(w, rest)]


def near(w: Decomposer, t: str) -> str:
    """Keys' cubic at a distance t up to 1: ((a + 2) t - (a + 3)) t t + 1."""
    return w.add(w.mul(w.mul(w.sub(w.mul(t, CUBIC + 2), CUBIC + 3), t), t), 1.0)


def far(w: Decomposer, t: str) -> str:
    """At the distance t + 1: a t^3 - 2 a t^2 + a t."""
    return w.mul(w.mul(w.add(w.mul(w.sub(t, 2.0), t), 1.0), t), CUBIC)


def within_edges(w: Decomposer, image: SampledImage, axis: int, at: str, mode: str) -> str:
    """Places outside as the padding brings them in; zeros leave them, and so does a border those of a cubic, whose taps
    are clipped one by one, as torch and onnxruntime do it."""
    least, most = image.edges[axis]
    if image.padding == "border":
        return at if mode == "cubic" else w("Clip", at, w.constant(0.0), w.constant(image.size[axis] - 1.0))
    if image.padding == "zeros":
        return at
    if most == least:
        return w.mul(at, 0.0)
    length = most - least
    way = w("Mod", w("Abs", w.sub(at, least)), w.constant(2 * length), fmod=1)
    return w.add(w("Min", way, w.sub(w.constant(2 * length), way)), least)


def inside(w: Decomposer, at: str, least: float, most: float) -> str:
    return w("And", w("GreaterOrEqual", at, w.constant(least)), w("LessOrEqual", at, w.constant(most)))


def clipped(w: Decomposer, at: str, size: int) -> str:
    """Integers from 0 to size - 1."""
    held = w("Clip", at, w.constant(0.0), w.constant(size - 1.0))
    return w("Clip", w("Cast", held, to=INT32), w.constant(0, np.int32), w.constant(size - 1, np.int32))


def sampled(w: Decomposer, image: SampledImage, taps: Sequence[Sequence[SampleTap]], dims: Sequence[int]) -> str:
    """Weighted sums of rows, (*dims, c); dims: those of places, whose first axis is the image's."""
    steps = [prod(image.size[i + 1 :]) for i in range(len(image.size))]
    base = w.constant(np.arange(dims[0]).reshape(-1, *[1] * (len(dims) - 1)) * prod(image.size), np.int32)
    return weighted(w, image.rows, taps, steps, w.expanded(base, *dims))


def weighted(w: Decomposer, rows: str, taps: Sequence[Sequence[SampleTap]], steps: Sequence[int], base: str) -> str:
    """The sum over all combinations of the axes' taps."""
    total = NOTHING
    for chosen in product(*taps):
        place = base
        for tap, step in zip(chosen, steps, strict=True):
            place = w("Add", place, tap.place if step == 1 else w("Mul", tap.place, w.constant(step, np.int32)))
        row = w("Gather", rows, place, axis=0)
        for tap in chosen:
            if tap.weight != NOTHING:
                row = w.mul(row, w.lifted(tap.weight, len(w.shape(tap.weight))))
        total = row if total == NOTHING else w.add(total, row)
    return total


def channels_second(w: Decomposer, x: str) -> str:
    ndim = len(w.shape(x))
    return w.turned(x, 0, ndim - 1, *range(1, ndim - 1))


def affine_grid(w: Decomposer, node: Node, theta: str, size: str) -> tuple[str, ...]:
    """theta (n, k, k + 1) times the places of the result, from -1 to 1, and 1."""
    known = w.data(size)
    if known is None:
        raise decided_by_data(node, size)
    n, _, *dims = bounded(ints(known))
    axes = []
    for d in reversed(dims):
        own = np.linspace(-1, 1, d) if node.get("align_corners", 0) else (2 * np.arange(d) + 1) / d - 1
        axes.append(own)
    places = [np.broadcast_to(a.reshape([-1 if i == len(dims) - 1 - k else 1 for i in range(len(dims))]), dims)
              for k, a in enumerate(axes)]  # fmt: skip
    base = np.stack([*(p.ravel() for p in places), np.ones(prod(dims))])
    found = w.turned(w("MatMul", theta, w.constant(base)), 0, 2, 1)
    return (w.reshaped(found, n, *dims, len(dims)),)


GRID: Attributes = {
    "align_corners": INT, "mode": one_of("linear", "nearest", "cubic", "bilinear", "bicubic"),
    "padding_mode": one_of("zeros", "border", "reflection"),
}  # fmt: skip
DECOMPOSITIONS = {
    "GridSample": ForeignOperator(grid_sample, "xx", 1, GRID),
    "AffineGrid": ForeignOperator(affine_grid, "xx", 1, {"align_corners": INT}),
}
