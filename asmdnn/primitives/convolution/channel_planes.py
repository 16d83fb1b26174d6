"""Groups of several channels whose sum is one channel: depthwise, with the channels of a group along an axis in front.

    dst[n, g, y, x] = bias[g] + sum over c, r, s of weights[g, 0, c, r, s] * src[n, g, c, i, j]

Such are gradients of data of depthwise convolutions with several results of each channel.  Lanes are groups, so src is
copied with those side by side: a plane for each channel of a group.  On a Zen 5 3x3 of 96 groups of 2 at 28x28 take
40 us instead of 245, when tiles had one lane of a vector.
"""

from collections.abc import Callable

from asmdnn.memory import MemoryDesc
from asmdnn.memory.formats import format_of
from asmdnn.planning.plan import Plan, with_tensors
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.description import ConvolutionDesc, Desc, channels_of_group
from asmdnn.primitives.convolution.direct import Parts
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.multiplied import check_f32
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.around_kernels import separate_post_ops
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import replace

NAME = "planes+depthwise"
MOST_AXES = 2  # beside that of channels
CHANNELS = 2  # the dim of that axis
Planned = Callable[[Desc, Attr, Engine, Parts[Desc]], Plan]


def sums_channels(desc: ConvolutionDesc) -> bool:
    """Whether a group has several channels of src and one of dst."""
    return desc.groups > 1 and channels_of_group(desc, "dst") == 1 < channels_of_group(desc, "src")


def planned(desc: Desc, attr: Attr, engine: Engine, depthwise: Planned[Desc], parts: Parts[Desc], padding: int) -> Plan:
    """The plan between copies, and post-ops as a pass after it.  depthwise: plans for parts of dst.  padding: along the
    axis of channels, with which the description has one plane of dst.  Raises Refused."""
    if attr.quantizes or attr.reads_dst():
        raise Refused("sums of groups have no scales, zero points or post-ops that read dst")
    if attr.post_ops:
        inner = planned(desc, Attr(denormals=attr.denormals), engine, depthwise, parts, padding)
        passed = {**inner.tensors, **post_ops_of(attr).operands(inner.tensors["dst"])}
        return separate_post_ops(NAME, inner, passed, attr, engine)
    check_f32(desc.tensors())
    if len(desc.kernel) > MOST_AXES:
        raise Refused(f"src has {len(desc.kernel)} spatial axes, with that of channels there are at most 3")
    if not desc.src.is_any and desc.src.inner_blocks:
        raise Refused(f"src {format_of(desc.src)} is blocked, it must be plain")
    if 0 in desc.src.dims or 0 in desc.dst.dims:
        raise Refused("src or dst has no elements")
    formats = {n: MemoryDesc(d.dims, d.dtype, "axb") for n, d in (("src", desc.src), ("dst", desc.dst)) if d.is_any}
    desc = desc.with_formats(formats)
    given = {"src": in_planes(desc.src, desc.groups), "dst": in_planes(desc.dst, desc.groups)}
    lanes_last = {name: MemoryDesc(d.dims, d.dtype, "axb") for name, d in given.items()}
    apart = not image_of_lanes(desc.dst)
    deep = replace(
        desc,
        src=lanes_last["src"],
        weights=MemoryDesc(with_axis(desc.weights.dims), desc.weights.dtype, "any"),
        dst=lanes_last["dst"] if apart else given["dst"],
        strides=(1, *desc.strides),
        dilations=(0, *desc.dilations),
        padding_l=(padding, *desc.padding_l),
        padding_r=(padding, *desc.padding_r),
    )

    def along_channels(deep: Desc, src: ImageLayout, dst: ImageLayout) -> list[ConvGeometry]:
        return [summing(g, len(deep.kernel)) for g in parts(deep, src, dst)]

    inner = depthwise(deep, attr, engine, along_channels)
    if not desc.weights.is_any:
        given["weights"] = desc.weights.reshape(with_axis(desc.weights.dims))
    plan = between_reorders(inner, given, engine.tuning, isa=engine.isa)
    tensors = {**plan.tensors, **desc.tensors(), "weights": plan.tensors["weights"].reshape(desc.weights.dims)}
    return replace(with_tensors(plan, tensors), implementation=f"{NAME}:{inner.implementation.rpartition(':')[2]}")


def image_of_lanes(dst: MemoryDesc) -> bool:
    """Whether vectors of channels are stored as they are."""
    return bool(dst.inner_blocks) or dst.strides[1] == 1


def summing(g: ConvGeometry, axes: int) -> ConvGeometry:
    """The convolution of a part along the axis of channels, also of a deconvolution: each has weights of its own."""
    place = len(g.axes) - axes
    channels = g.axes[place]
    along = Axis(channels.i, 1, channels.i, 1, 1, 0)
    return replace(g, axes=(*g.axes[:place], along, *g.axes[place + 1 :]))


def in_planes(tensor: MemoryDesc, groups: int) -> MemoryDesc:
    """An activation with the channels of each group along an axis of their own."""
    images, channels, *pixels = tensor.dims
    return tensor.reshape((images, groups, channels // groups, *pixels))


def with_axis(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Of weights (g, 1, c, ...): (g, 1, 1, c, ...)."""
    return (*sizes[:CHANNELS], 1, *sizes[CHANNELS:])
