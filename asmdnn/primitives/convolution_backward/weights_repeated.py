"""Gradients of weights of groups with several results of each channel, or several channels of each result:

    diff_weights[g, r * n + o, i] is that of n results by n channels, for each repetition r of the channels of group g

So what is less is repeated, in a copy with channels last, until groups have as many channels in as out, which kernels
of groups take.  16 groups of 1 to 3 channels were three vectors by 16 channels before, of which a 16th was a gradient.
"""

from collections.abc import Iterator
from math import prod

from asmdnn.isa.dot import f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution_backward import grouped_weights
from asmdnn.primitives.convolution_backward.data import AdjointConvolution
from asmdnn.primitives.convolution_backward.description import BackwardWeights
from asmdnn.primitives.convolution_backward.weights import (
    check,
    convolution_of,
    groups_together,
    renamed,
)
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.records import dataclass
from asmdnn.types import f32

NAME = "repeated"
REPEATED, APART = "repeated channels", "gradients of repetitions"  # scratch


@dataclass(frozen=True, slots=True)
class Repetition:
    """which: the tensor that is repeated.  groups: of the convolution; times: how often each one's channels; channels:
    of a repetition, in and out."""

    which: str
    groups: int
    times: int
    channels: int


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan, or why there is none; nothing for groups with as many channels in as out."""
    p, names = convolution_of(desc)
    each = [tensor.dims[1] // max(1, p.groups) for tensor in (p.src, p.dst)]
    if p.groups == 1 or each[0] == each[1]:
        return
    engine = at_level(engine, f32_dot_level(engine.isa))
    try:
        check(desc, attr)
        repetition = repetition_of(p, lanes_of(engine.isa), engine.l2_bytes)
        yield with_bias(renamed(planned(p, repetition, engine), names), desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(f"{NAME}:{engine.isa}", str(reason))


def repetition_of(p: AdjointConvolution, lanes: int, l2_bytes: int) -> Repetition:
    """Raises Refused where one or two groups fill vectors, and the copy is not near; and where kernels of groups do not
    take what comes of it."""
    into, out = p.src.dims[1] // p.groups, p.dst.dims[1] // p.groups
    less, more = sorted((into, out))
    if not p.src.nelems() or not p.dst.nelems() or out % lanes == 0:
        raise Refused("there are no elements, or output channels of a group fill vectors")
    read = p.src if into < out else p.dst
    if groups_together(p, lanes) == 2 and read.nelems() * f32.size_bytes * (more // less) > l2_bytes:
        raise Refused("two groups fill vectors, and a copy of repeated channels would exceed L2")
    if more % less or less & less - 1 or less > lanes or p.groups * more < lanes:
        said = f"{p.groups} groups of {into} channels in and {out} out"
        raise Refused(f"{said}: what is less must be a power of two up to {lanes} and divide the rest, a vector in all")
    return Repetition("src" if into < out else "dst", p.groups, more // less, less)


def planned(p: AdjointConvolution, repetition: Repetition, engine: Engine) -> Plan:
    """Between reorders of what is not plain.  Raises Refused."""
    which, groups, times, channels = repetition.which, repetition.groups, repetition.times, repetition.channels
    read = getattr(p, which)
    own = MemoryDesc(read.dims, f32, "axb") if read.is_any or read.inner_blocks else read
    images, _, *pixels = read.dims
    whole = MemoryDesc((images, groups * times * channels, *pixels), f32, "axb")
    kernel = p.weights.dims[3:]
    dims = (groups * times, channels, channels, *kernel)
    other = "dst" if which == "src" else "src"
    weights = MemoryDesc(dims, f32, LETTERS[: len(dims)])
    inner = grouped_weights.planned(p.with_formats({which: whole, "weights": weights}), engine)
    assembly = Assembly(engine.tuning, engine.isa)
    copied = whole.reshape((images, groups, times, channels, *pixels))
    source = repeated(own, repetition)
    add_reorder(assembly, Reordering(which, source, assembly.room(REPEATED, whole.size_bytes), copied), "copied")
    result = MemoryDesc(p.weights.dims, f32, LETTERS[: p.weights.ndims])
    places = {which: View(REPEATED)}
    if which == "src":
        assembly.add_plan(inner, places)
    else:
        assembly.add_plan(inner, places | {"weights": View(assembly.room(APART, weights.size_bytes))})
        each = (channels, channels, prod(kernel))
        sums = MemoryDesc((groups, times, *each), f32, "abcde").permute_axes((0, 2, 1, 3, 4))
        add_reorder(assembly, Reordering(APART, sums, "weights", MemoryDesc(sums.dims, f32, "abcde")), "weights")
    found = {which: own, other: inner.tensors[other], "weights": result}
    tensors = {name: found[name] for name in ("src", "weights", "dst")}
    plan = assembly.plan(f"{NAME}:{engine.isa}", tensors, ("weights",))
    given = {name: tensor for name, tensor in p.tensors().items() if not tensor.is_any}
    return between_reorders(plan, given, engine.tuning, isa=engine.isa)


def repeated(tensor: MemoryDesc, repetition: Repetition) -> MemoryDesc:
    """The channels of each group so many times, as a view."""
    images, channel, *pixels = tensor.strides
    strides = (images, repetition.channels * channel, 0, channel, *pixels)
    dims = (tensor.dims[0], repetition.groups, repetition.times, repetition.channels, *tensor.dims[2:])
    return MemoryDesc(dims, f32, strides=strides, offset0=tensor.offset0)
