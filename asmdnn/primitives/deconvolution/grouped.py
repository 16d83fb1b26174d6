"""Deconvolution in groups with few channels, depthwise first of all: rows of the parts of dst, vector by vector."""

from collections.abc import Iterator
from functools import partial
from itertools import product

from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.primitives.convolution import channel_planes, grouped
from asmdnn.primitives.convolution.description import DeconvolutionForward, channels_of_group
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.reordered import plans_between_reorders
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.deconvolution.parts import part_of
from asmdnn.primitives.elementwise.around_kernels import separate_post_ops
from asmdnn.types import f32


def parts_of(desc: DeconvolutionForward, src: ImageLayout, dst: ImageLayout) -> list[ConvGeometry]:
    """The convolutions of three axes, one for each place in a cell of strides; without products where nothing reaches
    it."""
    g = grouped.make_geometry(desc, src, dst)
    return [part_of(g, places) for places in product(*(range(min(axis.s, axis.o)) for axis in g.axes))]


def planned(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Plan:
    """Plan `desc` for tensors as they are.  Post-ops that read pixels are a pass after parts of several strides, whose
    pixels lie apart.  Raises Refused."""
    chain = post_ops_of(attr)
    reads_pixels = any(max(tensor.dims[2:]) > 1 for link in chain.links for tensor in link.op.tensors.values())
    whole = max(desc.strides) == 1 or attr.quantizes or attr.reads_dst() or not f32_only(desc)
    if whole or not reads_pixels:
        return grouped.planned_parts(desc, attr, engine, parts_of)
    inner = grouped.planned_parts(desc, Attr(denormals=attr.denormals), engine, parts_of)
    passed = {**inner.tensors, **chain.operands(inner.tensors["dst"])}
    return separate_post_ops(grouped.name_of(desc), inner, passed, attr, engine)


def f32_only(desc: DeconvolutionForward) -> bool:
    return all(tensor.dtype == f32 for tensor in desc.tensors().values())


def plans(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plans of a deconvolution with groups, best first; nothing for one without."""
    if channel_planes.sums_channels(desc):
        padding = channels_of_group(desc, "src") - 1
        sums = partial(channel_planes.planned, depthwise=grouped.planned_parts, parts=parts_of, padding=padding)
        yield from plans_between_reorders(channel_planes.NAME, desc, attr, engine, sums)
    elif desc.groups > 1:
        yield from plans_between_reorders(grouped.name_of(desc), desc, attr, engine, planned)
