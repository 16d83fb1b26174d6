"""Gradients of weights whose output channels fill no whole vectors: tiles whose vectors are of input channels,

    diff_weights[o, i, r, s] = sum over n, y, x of src[n, i, y, x] * diff_dst[n, o, y + pt - r*dh, x + pl - s*dw]

It is the gradient of a convolution without strides whose source is diff_dst, whose diff_dst is src, and whose positions
go backwards.  So lanes are full of which some are empty where they are output channels, such as half of 16 where there
are 8, and src is read where it lies, also with channels last.
"""

from collections.abc import Iterator

from asmdnn.isa.dot import f32_dot_level
from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.axis import Axis
from asmdnn.primitives.convolution.direct import axes_of
from asmdnn.primitives.convolution_backward import weights, weights_planes
from asmdnn.primitives.convolution_backward.data import AdjointConvolution
from asmdnn.primitives.convolution_backward.description import BackwardWeights
from asmdnn.primitives.convolution_backward.weights import check, convolution_of, renamed
from asmdnn.primitives.convolution_backward.weights_planes import no_blocks
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.primitives.core.implementation import try_all
from asmdnn.primitives.reduction.bias import with_bias
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, between_reorders
from asmdnn.records import replace
from asmdnn.types import f32

NAME = "exchanged"
PACKED = "gradients of exchanged channels"  # scratch


def plans(desc: BackwardWeights, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The plan, where it is expected to take less than those of the other ways; nothing for groups."""
    p, names = convolution_of(desc)
    if p.groups > 1:
        return
    engine = at_level(engine, f32_dot_level(engine.isa))
    name = f"{NAME}:{engine.isa}"
    try:
        check(desc, attr)
        check_channels(p, lanes_of(engine.isa))
        plan = renamed(planned(p, engine), names)
        whole = with_bias(plan, desc.diff_bias, engine)
    except Refused as reason:
        yield Refusal(name, str(reason))
        return
    without = replace(desc, diff_bias=None)  # beside which it takes little
    others = try_all((weights_planes.plans, weights.plans), without, attr, engine)
    other = next((x for x in others if isinstance(x, Plan)), None)
    if other and plan.cycles >= other.cycles:
        yield Refusal(name, f"{plan.cycles} cycles are expected, {other.cycles} of {other.implementation}")
    else:
        yield whole


def check_channels(p: AdjointConvolution, lanes: int) -> None:
    """Raise Refused where vectors of output channels are full, or those of input channels are not."""
    into, out = p.src.dims[1], p.dst.dims[1]
    if not p.src.nelems() or not p.dst.nelems() or not p.weights.nelems():
        raise Refused("there are no elements")
    if into < lanes or out % lanes == 0:
        raise Refused(f"{into} input channels fill no vector of {lanes}, or {out} output channels fill all")
    if out >= into:  # a row for each: 96 to 1000 channels took a Zen 5 2.2 times as long, 32 to 100 up to 2.8
        raise Refused(f"there are {out} output channels, and no more than {into} input channels")


def planned(p: AdjointConvolution, engine: Engine) -> Plan:
    """Between reorders of what tiles cannot read or write.  Raises Refused."""
    if weights.picks_pixels(p):
        return weights.of_picked_pixels(p.with_formats({"src": no_blocks(p.src)}), planned, engine)
    if {*p.strides} != {1}:
        raise Refused(f"strides are {p.strides}, positions go backwards where there are none")
    lanes, (out, into, *kernel) = lanes_of(engine.isa), p.weights.dims
    other = AdjointConvolution(
        src=p.dst, weights=MemoryDesc((into, out, *kernel), f32, "any"), dst=p.src,
        strides=p.strides, dilations=p.dilations, padding_l=p.padding_l, padding_r=p.padding_r,
    )  # fmt: skip
    own = other.with_formats({"src": weights.own_source(other, lanes), "dst": weights.own_result(other, lanes)})
    inner = weights.tiles(own, engine, tuple(map(turned, axes_of(own))))
    packed = inner.tensors["weights"]
    rows = MemoryDesc(p.weights.dims, f32, LETTERS[: p.weights.ndims])
    assembly = Assembly(engine.tuning, engine.isa)
    buffer = assembly.room(PACKED, packed.size_bytes)
    assembly.add_plan(inner, {"src": View("dst"), "dst": View("src"), "weights": View(buffer)})
    turned_back = packed.permute_axes((1, 0, *range(2, packed.ndims)))
    add_reorder(assembly, Reordering(buffer, turned_back, "weights", rows))
    tensors = {"src": inner.tensors["dst"], "weights": rows, "dst": inner.tensors["src"]}
    plan = assembly.plan(f"{NAME}:{engine.isa}", tensors, ("weights",))
    given = {name: tensor for name, tensor in p.tensors().items() if not tensor.is_any}
    return between_reorders(plan, given, engine.tuning, isa=engine.isa)


def turned(axis: Axis) -> Axis:
    """Whose positions go backwards: where the forward pass reads src further on, this one reads diff_dst before."""
    return replace(axis, d=-axis.d, p=-axis.p)
