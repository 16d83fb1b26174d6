"""Scales of dst as factors: a division by them for every vector of results is what small sums of bytes wait for.

A phase in front divides 1 by each scale, and results are multiplied by that, as by a tensor of a post-op after all
others.  So a result of bytes has one rounding more before the one to its type, as oneDNN's have.  The phase takes 0.4
us on a Zen 4, which 1,500 vectors of results gain: 1x1 of 64 channels at 56x56 takes 281 us instead of 304.
"""

from collections.abc import Iterator
from typing import Any

from asmdnn.generators.functions import quotient
from asmdnn.generators.functions.quotient import QuotientSpec
from asmdnn.isa.vectors import NARROWEST
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.phase import View, views
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import MAX_POST_OPS, Binary
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, try_all
from asmdnn.primitives.core.ways import AsksBelow, Planners
from asmdnn.types import F32_BYTES, INTEGERS8, f32

LEAST_ELEMENTS = 1 << 16  # of dst
SCALES, FACTORS, RESULT = "dst_scales", "factors of dst", "scales"


@AsksBelow
def reciprocals(below: Planners, desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """The planners below with a post-op that multiplies, where dst of bytes has scales."""
    masks, ndims = dict(attr.scales), desc.dst.ndims
    of_bytes = desc.src.dtype in INTEGERS8 and desc.dst.dtype in INTEGERS8 and desc.dst.nelems() >= LEAST_ELEMENTS
    if "dst" not in masks or not of_bytes or masks["dst"] >> ndims or len(attr.post_ops) == MAX_POST_OPS:
        return
    mask = masks.pop("dst")
    shape = [n if mask >> dim & 1 else 1 for dim, n in enumerate(desc.dst.dims)]
    factors = Binary("mul", MemoryDesc(shape, f32, LETTERS[:ndims]))
    asked = attr.changed(post_ops=(*attr.post_ops, factors), scales=masks)
    for answer in try_all(below, desc, asked, engine):
        if isinstance(answer, Plan):
            answer = after_reciprocals(answer, f"binary_{len(attr.post_ops)}", engine)
        yield answer


def after_reciprocals(plan: Plan, operand: str, engine: Engine) -> Plan:
    """The plan, whose operand is made of scales."""
    tensors = dict(plan.tensors)
    count = tensors.pop(operand).nelems()
    assembly, tuning = Assembly(engine.tuning, engine.isa), engine.tuning
    spec = QuotientSpec(
        isa=NARROWEST, count=count, src_step_bytes=None, dst_step_bytes=F32_BYTES if count > 1 else 0, sum=0.0
    )
    room = assembly.room(FACTORS, spec.result_bytes)
    buffers = {SCALES: SCALES, RESULT: room}
    used = [buffers.get(name, "") for name in quotient.ARGUMENTS]
    once = Call(spec, (0,) * len(used), (), count * tuning.moves.division_cycles)
    assembly.add(phases_of([once], views(used), tuning.phases))
    assembly.add_plan(plan, {operand: View(room)})
    tensors[SCALES] = MemoryDesc((count,), f32, "a")
    in_place = tuple(pair for pair in plan.in_place if pair[0] != operand)
    return assembly.plan(plan.implementation, tensors, plan.outputs, in_place)
