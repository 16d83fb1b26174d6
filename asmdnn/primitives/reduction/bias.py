"""The gradient of a bias after that of weights: sums of diff_dst over all dims but its channels, of no elements 0."""

import numpy as np

from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.vectors import NARROWEST
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import NOTHING, Phase, View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import plan_of
from asmdnn.primitives.reduction import reduction
from asmdnn.primitives.reduction.description import ReductionForward
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.records import replace


def with_bias(plan: Plan, bias: MemoryDesc | None, engine: Engine) -> Plan:
    """The plan, and after it sums of its diff_dst (n, o, ..) for diff_bias (o,), if that is wanted and it has none.

    Raises Refused.
    """
    if bias is None:
        return plan
    diff_dst = plan.tensors["diff_dst"]
    if bias.inner_blocks:
        raise Refused("diff_bias is blocked, it must be a vector")
    bias = MemoryDesc(bias.dims, bias.dtype, "a") if bias.is_any else bias
    if "diff_bias" in plan.tensors:
        made = between_reorders(plan, {"diff_bias": bias}, engine.tuning, isa=engine.isa)
        return without_needless_barriers(replace(made, implementation=plan.implementation))
    (size,), (step,) = bias.dims, bias.strides
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.add_plan(plan, {})
    if 0 not in diff_dst.dims:
        ones = (1,) * (diff_dst.ndims - 2)
        row = MemoryDesc((1, size, *ones), bias.dtype, strides=(size * step, step, *ones), offset0=bias.offset0)
        sums = plan_of((reduction.plans,), ReductionForward("sum", diff_dst, row), engine)
        assembly.add_plan(sums, {"src": View("diff_dst"), "dst": View("diff_bias")})
    elif size:
        assembly.add([zeros(bias, engine)])
    tensors = {**plan.tensors, "diff_bias": bias}
    whole = assembly.plan(plan.implementation, tensors, ("diff_weights", "diff_bias"))
    return without_needless_barriers(whole)


def zeros(bias: MemoryDesc, engine: Engine) -> Phase:
    """In a vector."""
    (size,), (step,), element = bias.dims, bias.strides, bias.dtype.size_bytes
    rows, row_bytes = (1, size * element) if step == 1 else (size, element)
    spec = RowsSpec(isa=NARROWEST, rows=rows, row_bytes=row_bytes, src_step=0, dst_step=step * element, zero=True)
    cycles = np.array([engine.tuning.elementwise.call_cycles + size], np.int32)
    return Phase((spec,), (NOTHING, View("diff_bias")), np.array([[0, 0, bias.offset0 * element]]), cycles)
