"""A deconvolution as direct convolutions, one for each place of a pixel in a cell of strides.

Along an axis dst[y] is the sum over kernel positions r for which i = (y + p - r*d) / s is a whole number.  For the
pixels y = m*s + a these are always the same positions, a progression with the step s / gcd(s, d), and i is m plus a
number of each.  So every s-th pixel of dst is a convolution of stride 1 with a part of the kernel, from the end; no
product with an inserted zero is computed, and each pixel is stored once.  A 2x2 kernel with stride 2 becomes four 1x1.
"""

from collections.abc import Iterator
from dataclasses import fields
from itertools import accumulate, product
from math import gcd

from asmdnn.primitives.convolution.axis import Axis, AxisSteps, TransposedAxis
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.convolution.direct import axes_of, make_geometry
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.records import replace


def parts_of(desc: ConvolutionDesc, src: ImageLayout, dst: ImageLayout) -> list[ConvGeometry]:
    """The convolutions, that with most kernel positions first."""
    g = make_geometry(desc, src, dst)
    parts = [part_of(g, places) for places in places_of(g.axes)]
    parts.sort(key=lambda part: -part.positions)
    before = accumulate((part.positions for part in parts), initial=0)
    return [replace(part, positions_before=count).flattened() for part, count in zip(parts, before, strict=False)]


def places_of(axes: tuple[Axis, ...]) -> Iterator[tuple[int, ...]]:
    """All places of a pixel in a cell of strides."""
    return product(*(range(min(axis.s, axis.o)) for axis in axes))


def axes_of_parts(desc: ConvolutionDesc) -> list[tuple[Axis, ...]]:
    """Those of all parts."""
    axes = axes_of(desc)
    return [tuple(map(axis_of_part, axes, places)) for places in places_of(axes)]


def whole(desc: ConvolutionDesc, src: ImageLayout, dst: ImageLayout) -> ConvGeometry:
    """All of it at once, for tiles whose pixels need not be reached by the same kernel positions."""
    g = make_geometry(desc, src, dst)
    return replace(g, axes=tuple(TransposedAxis(*(getattr(axis, f.name) for f in fields(axis))) for axis in g.axes))


def part_of(g: ConvGeometry, places: tuple[int, ...]) -> ConvGeometry:
    """The pixels of dst that have these places in their cells."""
    axes = tuple(map(axis_of_part, g.axes, places))
    steps = list(zip(g.axes, places, g.dst.axis_bytes, strict=True))
    start = g.dst.start_bytes + sum(place * step for _, place, step in steps)
    dst = replace(g.dst, start_bytes=start, axis_bytes=tuple(axis.s * step for axis, _, step in steps))
    return replace(g, axes=axes, dst=dst)


def axis_of_part(axis: Axis, place: int) -> Axis:
    """Pixels place, place + s, ... of dst as a convolution of stride 1."""
    pixels = AxisSteps(place, axis.s, axis.o)
    count = len(range(place, axis.o, axis.s))
    found = [r for r in range(axis.k) if (place + axis.p - r * axis.d) % axis.s == 0]
    if not found:  # nothing reaches them
        return Axis(i=axis.i, o=count, k=0, s=1, d=1, p=0, positions=AxisSteps(0, 1, axis.k), pixels=pixels)
    common = gcd(axis.s, axis.d)
    last = found[-1]
    padding = -((place + axis.p - last * axis.d) // axis.s)
    return Axis(
        i=axis.i,
        o=count,
        k=len(found),
        s=1,
        d=axis.d // common,
        p=padding,
        positions=AxisSteps(last, -axis.s // common, axis.k),
        pixels=pixels,
    )
