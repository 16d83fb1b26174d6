"""Regions of images whose places are data, sampled as in sampling.py: RoiAlign, DeformConv."""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.looked_at import within
from asmdnn.network.decompositions.sampling import (
    INT32,
    SampleTap,
    channels_second,
    clipped,
    image_of,
    inside,
    sampled,
    taps_of,
    weighted,
)
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import FLOAT, INT, INTS, Attributes, one_of
from asmdnn.network.operators.geometry import window_of

HALF_PIXELS = 16  # the operator set since which boxes are shifted, unless an attribute says otherwise


def roi_align(w: Decomposer, node: Node, x: str, rois: str, images: str) -> tuple[str, ...]:
    """The mean or the largest of some samples of each bin of each box, which are linear in both axes."""
    (_, c, height, width), count = w.shape(x), w.shape(rois)[0]
    ratio, bins = node.get("sampling_ratio", 0), (node.get("output_height", 1), node.get("output_width", 1))
    if ratio < 1:
        raise Unimplemented(f"{node} takes as many samples as the size of a box says: only a sampling_ratio is known")
    half, scale = is_half_pixel(node), node.get("spatial_scale", 1)
    image = image_of(w, x)
    taps = []
    for axis, size in enumerate((height, width)):
        corner = 1 - axis  # boxes are x1, y1, x2, y2
        start, end = (w.mul(w.part(rois, 1, i, i + 1), float(scale)) for i in (corner, corner + 2))
        if half:
            start, end = w.sub(start, 0.5), w.sub(end, 0.5)
        length = w.sub(end, start)
        length = length if half else w("Max", length, w.constant(1.0))
        step = (np.arange(bins[axis] * ratio) + 0.5) / (bins[axis] * ratio)
        at = w.add(start, w("Mul", length, w.constant(step[None])))
        taps.append([box_tap(w, at, size, i) for i in (0, 1)])
    rows, columns = bins[0] * ratio, bins[1] * ratio
    dims = (count, rows, columns)
    spread = [
        [SampleTap(*(w.expanded(w.reshaped(x, *shape), *dims) for x in tap)) for tap in some]
        for some, shape in zip(taps, ((count, rows, 1), (count, 1, columns)), strict=True)
    ]
    which = w("Cast", within(w, images, 0, w.shape(x)[0], axis=0), to=INT32)
    number = w("Mul", which, w.constant(height * width, np.int32))
    base = w.expanded(w.reshaped(number, count, 1, 1), *dims)
    is_mean = node.get("mode", "avg") == "avg"
    samples = (weighted if is_mean else largest)(w, image.rows, spread, (width, 1), base)
    split = w.reshaped(samples, *(count, bins[0], ratio, bins[1], ratio, c))
    return (channels_second(w, w.reduced("ReduceMean" if is_mean else "ReduceMax", split, 2, 4, keepdims=False)),)


def is_half_pixel(node: Node) -> bool:
    """Whether corners lie half an element before their numbers.  They did not before there was an attribute."""
    by_default = "half_pixel" if node.opset >= HALF_PIXELS else "output_half_pixel"
    return bool(node.get("coordinate_transformation_mode", by_default) == "half_pixel")


def largest(w: Decomposer, rows: str, taps: Sequence[Sequence[SampleTap]], steps: Sequence[int], base: str) -> str:
    """The largest weighted element, not the largest sample: ONNX's meaning of a maximum."""
    every = [weighted(w, rows, [[tap] for tap in chosen], steps, base) for chosen in product(*taps)]
    return w("Max", *every)


def box_tap(w: Decomposer, at: str, size: int, step: int) -> SampleTap:
    """Places from -1 to size are those of the image; others weigh nothing."""
    held = w("Clip", at, w.constant(0.0), w.constant(size - 1.0))
    first = w("Floor", held)
    after = w.sub(held, first)
    share = after if step else w.sub(w.constant(1.0), after)
    return SampleTap(
        clipped(w, w.add(first, float(step)) if step else first, size),
        w.where(inside(w, at, -1.0, float(size)), share, 0.0),
    )


def deform_conv(w: Decomposer, node: Node, x: str, k: str, offset: str, bias: str, mask: str) -> tuple[str, ...]:
    """A convolution whose kernel positions each read where an offset says, linear between elements, 0 outside."""
    (n, c, *size), (made, per_group, *kernel) = w.shape(x), w.shape(k)
    groups, parts = node.get("group", 1), node.get("offset_group", 1)
    window = window_of(node, tuple(size), tuple(kernel))
    out, taps = window.outputs(tuple(size)), prod(kernel)
    axes, places = len(size), (n * parts, taps, *out)
    moved = w.reshaped(offset, n * parts, taps, axes, *out)
    image = image_of(w, w.reshaped(x, n * parts, c // parts, *size))
    spread = []
    for axis in range(axes):
        step = np.arange(out[axis]) * window.strides[axis] - window.before[axis]
        along = [-1 if i == axis else 1 for i in range(axes)]
        tap = np.indices(kernel)[axis].reshape(1, taps, *[1] * axes) * window.dilations[axis]
        own = w.reshaped(w.part(moved, 2, axis, axis + 1), *places)
        at = w.add(own, w.constant(np.broadcast_to(tap + step.reshape(1, 1, *along), (1, *places[1:]))))
        spread.append(taps_of(w, image, axis, at, "linear"))
    rows = sampled(w, image, spread, places)
    if mask != NOTHING:
        rows = w.mul(rows, w.lifted(w.reshaped(mask, *places), len(places)))
    across = w.reshaped(rows, n, parts, taps, prod(out), c // parts)
    columns = w.reshaped(w.turned(across, 0, 1, 4, 2, 3), n, groups, per_group * taps, prod(out))
    found = w("MatMul", w.reshaped(k, 1, groups, made // groups, per_group * taps), columns)
    y = w.reshaped(found, n, made, *out)
    return (y if bias == NOTHING else w.add(y, w.reshaped(bias, 1, made, *[1] * axes)),)


BOXES: Attributes = {
    "coordinate_transformation_mode": one_of("half_pixel", "output_half_pixel"), "mode": one_of("avg", "max"),
    "output_height": INT, "output_width": INT, "sampling_ratio": INT, "spatial_scale": FLOAT,
}  # fmt: skip
DEFORMED: Attributes = {
    "dilations": INTS, "group": INT, "kernel_shape": INTS, "offset_group": INT, "pads": INTS, "strides": INTS,
}  # fmt: skip
DECOMPOSITIONS = {
    "RoiAlign": ForeignOperator(roi_align, "xxx", 1, BOXES),
    "DeformConv": ForeignOperator(deform_conv, "xxx??", 1, DEFORMED),
}
