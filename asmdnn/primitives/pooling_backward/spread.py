"""Gradients of means of halves whose windows touch and do not overlap: each element of diff_dst, divided, fills one.

So it is divided and rounded once, and then moved to the nearest elements of diff_src, in words.
"""

from math import prod

import numpy as np

from asmdnn.generators.functions.postops import EltwiseOp
from asmdnn.isa.vectors import f32_level
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import plan_of
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.primitives.resampling import resampling
from asmdnn.primitives.resampling.description import ResamplingForward
from asmdnn.types import HALF_FLOATS

NAME = "spread"
WORDS = "words:"  # of a resampling
DIVIDED = "divided"  # scratch


def plan(request: tuple[PoolingBackward, Engine]) -> Plan:
    """Raises Refused."""
    desc, engine = request
    check(desc)
    factor = float(np.float32(1 / prod(desc.kernel)))
    inner = plan_of((resampling.plans,), ResamplingForward("nearest", desc.diff_dst, desc.diff_src), engine)
    if not inner.implementation.startswith(WORDS):
        raise Refused("channels are not dense in words of four bytes")
    given = inner.tensors["src"]
    divided = Request(DIVIDED, ("diff_dst", given), ("dst", given), {}, lambda _: EltwiseOp("linear", factor, 0.0, 1.0))
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.add_plan(schedule(divided, NO_ATTR, engine), {"dst": View(DIVIDED)})
    assembly.scratch[DIVIDED] = given.size_bytes
    assembly.add_plan(inner, {"src": View(DIVIDED), "dst": View("diff_src")})
    tensors = {"diff_src": inner.tensors["dst"], "diff_dst": given}
    return assembly.plan(f"{NAME}:{f32_level(engine.isa)}", tensors, ("diff_src",))


def check(desc: PoolingBackward) -> None:
    """Raises Refused."""
    if desc.forward().is_max:
        raise Refused("it is of means, alg is max")
    kinds = desc.diff_dst.dtype, desc.diff_src.dtype
    if kinds[0] != kinds[1] or kinds[0] not in HALF_FLOATS:
        raise Refused(f"diff_dst is {kinds[0]} and diff_src {kinds[1]}, it moves halves of one type")
    sizes = zip(desc.diff_src.dims[2:], desc.diff_dst.dims[2:], desc.kernel, strict=True)
    if desc.strides != desc.kernel or any(n != made * k for n, made, k in sizes) or any(desc.dilations):
        raise Refused("windows overlap, or do not fill diff_src")
    if any(desc.padding_l) or not desc.diff_src.nelems():
        raise Refused("windows reach into the padding, or there are none")
