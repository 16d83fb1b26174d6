"""Results that are rounded at random: `rounding_mode` of any primitive whose dst may be f32.

The primitive computes f32, in scratch of dst's layout; a phase after it rounds that.  Kernels that round at random
where they store would save this pass over dst, but not the ten rounds of Philox for each element, which take longer.
The index of an element, on which its random number depends, is its place in a dst without gaps, as oneDNN counts;
where there are gaps, that in row-major order.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from asmdnn.generators.functions.stochastic_grid import STEPS
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan, alike
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, plan_of, try_all
from asmdnn.primitives.core.uses import ROUNDING_SEED
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.primitives.stochastic_rounding import stochastic_rounding
from asmdnn.primitives.stochastic_rounding.stochastic_rounding import SEED, StochasticRounding
from asmdnn.records import replace
from asmdnn.types import f32

NAME = "stochastic"
ROOM = "dst before it is rounded"


@cache
def rounding(planners: tuple[Planner[Any], ...]) -> tuple[Planner[Any], ...]:
    """A planner that asks these for f32, and rounds it."""

    def rounded(desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        dst = desc.dst
        if dst.dtype not in STEPS or dst.dtype == f32:
            types = ", ".join(str(each) for each in STEPS if each != f32)
            yield Refusal(f"{NAME}:{f32_level(engine.isa)}", f"dst is {dst.dtype}, rounding_mode takes {types}")
            return
        inner = replace(desc, dst=MemoryDesc(dst.dims, f32, "any") if dst.is_any else of_type(dst, f32))
        for answer in try_all(planners, inner, attr.changed(rounding_mode={}), engine):
            if isinstance(answer, Plan):
                passed = of_type(answer.tensors["dst"], dst.dtype) if dst.is_any else dst
                yield rounded_after(answer, passed, attr, engine)
            else:
                yield Refusal(f"{NAME}+{answer.implementation}", answer.reason)

    return (rounded,)


def rounded_after(plan: Plan, dst: MemoryDesc, attr: Attr, engine: Engine) -> Plan:
    """The plan, and what rounds its dst."""
    made, assembly = plan.tensors["dst"], Assembly(engine.tuning, engine.isa)
    room = assembly.room(ROOM, made.size_bytes)
    if attr.reads_dst():
        add_reorder(assembly, Reordering("dst", dst, room, made))
    assembly.add_plan(plan, {"dst": View(room)})
    if dst.is_dense:
        before, after = (MemoryDesc((made.nelems(),), dtype, "a") for dtype in (f32, dst.dtype))
        desc = StochasticRounding(before, after)
    else:
        desc = StochasticRounding(made, dst)
    last = plan_of((stochastic_rounding.plans,), desc, engine)
    assembly.add_plan(last, {"src": View(room), "seed": View(ROUNDING_SEED)})
    tensors = {**plan.tensors, "dst": dst, ROUNDING_SEED: SEED}
    in_place = alike(tensors, (name for name in plan.tensors if name not in plan.outputs), "dst")
    return assembly.plan(f"{NAME}+{plan.implementation}", tensors, plan.outputs, in_place)
