"""Gradients of poolings, as a kind of primitive."""

from asmdnn.isa.vectors import f32_level
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.pooling.kind import words as forward_words
from asmdnn.primitives.pooling_backward import maxima, means, scattered, spread
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.types import FLOAT_NAMES, FLOATS


def request_of(desc: PoolingBackward, attr: Attr, engine: Engine) -> tuple[PoolingBackward, Engine]:
    """What both ways are asked.  Raises Refused for attributes that change anything, and for types."""
    refuse_attr(attr, "a gradient")
    for name, tensor in (("diff_src", desc.diff_src), ("diff_dst", desc.diff_dst)):
        if tensor.dtype not in FLOATS:
            raise Refused(f"{name} is {tensor.dtype}, only {', '.join(FLOAT_NAMES)} is implemented")
    refuse_overlap(diff_src=desc.diff_src)
    return desc, engine


WAYS = {way.NAME: way.plan for way in (scattered, maxima, spread, means)}
plans = implementations_of(request_of, WAYS, f32_level)


def words(desc: PoolingBackward) -> Words:
    forward = forward_words(desc.forward())
    return Words(forward.primitive, forward.auxiliary, forward.problem, desc.prop_kind.value)


KINDS = (Kind(PoolingBackward, (plans,), words, any_batch_refusal=by_rows),)
