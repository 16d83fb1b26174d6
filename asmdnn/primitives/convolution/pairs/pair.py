"""A convolution with a depthwise post-op as two convolutions, each with the post-ops after it."""

from collections.abc import Mapping

from asmdnn.memory import MemoryDesc
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.depthwise import Depthwise
from asmdnn.primitives.attributes.post_ops import AnyPostOp, Sum
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.records import altered, dataclass, replace
from asmdnn.types import f32

MIDDLE = "middle"  # scratch: dst of the first, src of the second


@dataclass(frozen=True, slots=True)
class Pair:
    """Both, with open formats of what is between them; names: of the pair's arguments, by those of the second."""

    first: ConvolutionForward
    first_attr: Attr
    second: ConvolutionForward
    second_attr: Attr
    names: Mapping[str, str]


def is_pair(attr: Attr) -> bool:
    return any(isinstance(op, Depthwise) for op in attr.post_ops)


def pair_of(desc: ConvolutionForward, attr: Attr) -> Pair:
    """Raises Refused for what has no such form, InvalidArguments for a post-op that does not fit."""
    at = [i for i, op in enumerate(attr.post_ops) if isinstance(op, Depthwise)]
    if len(at) > 1:
        raise Refused("two depthwise post-ops in a chain are not implemented")
    if attr.quantizes:
        raise Refused("scales and zero points with a depthwise post-op are not implemented")
    before, op, after = attr.post_ops[: at[0]], attr.post_ops[at[0]], attr.post_ops[at[0] + 1 :]
    assert isinstance(op, Depthwise)
    if any(isinstance(x, Sum) for x in before):
        raise Refused("a sum in front of a depthwise post-op would add to a tensor that no caller has")
    axes = desc.src.ndims - 2
    if len(op.kernel) != axes:
        raise Refused(f"the depthwise post-op has {len(op.kernel)} spatial axes, src has {axes}")
    second = ConvolutionForward(
        src=MemoryDesc(desc.dst.dims, f32, "any"),
        weights=op.weights,
        dst=of_result(desc.dst, op),
        bias=op.bias,
        strides=op.strides,
        dilations=op.dilations,
        padding_l=op.padding_l,
        padding_r=op.padding_r,
        prop_kind=desc.prop_kind,
    )
    first = desc.with_formats({"dst": second.src})
    names = {"weights": f"dw_weights_{at[0]}", "bias": f"dw_bias_{at[0]}"}
    for i, x in enumerate(after):
        names |= {f"{name}_{i}": f"{name}_{at[0] + 1 + i}" for name in x.tensors}
    return Pair(first, replaced(attr, before), second, replaced(attr, after), names)


def replaced(attr: Attr, post_ops: tuple[AnyPostOp, ...]) -> Attr:
    """The attributes with other post-ops; f32 is not rounded here."""
    if attr.quantizes or attr.rounding_mode:
        others = replace(attr, post_ops=post_ops, scales=None, zero_points=None)  # type: ignore[arg-type]  # as __init__
        return others.strict
    found: Attr = altered(attr, post_ops=post_ops, fpmath_mode="strict")
    return found


def of_result(dst: MemoryDesc, op: Depthwise) -> MemoryDesc:
    """dst of the pair: in the format that is asked for, with the dims that the post-op makes."""
    dims = tuple(max(0, size) for size in op.result_dims(dst.dims))
    if dst.is_any and not dst.offset0:
        return MemoryDesc(dims, dst.dtype, "any")
    tag = "any" if dst.is_any else dst.tag
    if tag is None or MemoryDesc(dst.dims, dst.dtype, tag) != dst:
        raise Refused(f"dst {dst} has strides of its own, with a depthwise post-op it must have a tag")
    return MemoryDesc(dims, dst.dtype, tag)
