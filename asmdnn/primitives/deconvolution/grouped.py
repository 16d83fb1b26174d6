"""Deconvolution in groups with few channels, depthwise first of all: rows of the parts of dst, vector by vector."""

from collections.abc import Iterator
from itertools import product

from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution import grouped
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.reordered import plans_between_reorders
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.deconvolution.parts import part_of


def parts_of(desc: DeconvolutionForward, src: ImageLayout, dst: ImageLayout) -> list[ConvGeometry]:
    """The convolutions of three axes, one for each place in a cell of strides.  Raises Refused."""
    g = grouped.make_geometry(desc, src, dst)
    parts = [part_of(g, places) for places in product(*(range(min(axis.s, axis.o)) for axis in g.axes))]
    if not all(part.positions for part in parts):
        raise Refused("a stride is beyond the kernel, so that nothing reaches some pixels")
    return parts


def planned(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Raises Refused."""
    return grouped.planned_parts(desc, attr, engine, parts_of)


def plans(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of a deconvolution with groups, best first; nothing for one without."""
    if desc.groups > 1:
        yield from plans_between_reorders(grouped.name_of(desc), desc, attr, engine, planned)
