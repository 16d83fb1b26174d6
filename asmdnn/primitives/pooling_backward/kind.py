"""Gradients of poolings, as a kind of primitive."""

from collections.abc import Iterator

from asmdnn.isa.vectors import f32_level
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.pooling.kind import words as forward_words
from asmdnn.primitives.pooling_backward import maxima, means
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.types import f32, s32


def plans(desc: PoolingBackward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """The one way that there is, by the algorithm."""
    way = maxima if desc.forward().is_max else means
    try:
        check(desc, attr)
        yield way.plan(desc, engine)
    except Refused as reason:
        yield Refusal(f"{way.NAME}:{f32_level(engine.isa)}", str(reason))


def check(desc: PoolingBackward, attr: Attr) -> None:
    """Raise Refused for attributes that change anything, and for types."""
    if attr.post_ops or attr.quantizes:
        raise Refused("a gradient has no post-ops, scales or zero points")
    for name, tensor, dtype in (
        ("diff_src", desc.diff_src, f32), ("diff_dst", desc.diff_dst, f32), ("indices", desc.indices, s32)
    ):  # fmt: skip
        if tensor is not None and tensor.dtype != dtype:
            raise Refused(f"{name} is {tensor.dtype}, only {dtype} is implemented")
    if desc.diff_src.may_overlap:
        raise Refused("elements of diff_src overlap")


def words(desc: PoolingBackward) -> Words:
    forward = forward_words(desc.forward())
    return Words(forward.primitive, forward.auxiliary, forward.problem, "backward_data")


KINDS = (Kind(PoolingBackward, (plans,), words),)
