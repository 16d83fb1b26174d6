"""Post-ops as a pass of their own after a primitive whose kernels cannot apply them to registers."""

from collections.abc import Mapping

from asmdnn.generators.functions.postops import EltwiseOp
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.types import f32

IDENTITY = EltwiseOp("linear", 1.0, 0.0, 1.0)


def separate_post_ops(name: str, first: Plan, passed: Mapping[str, MemoryDesc], attr: Attr, engine: Engine) -> Plan:
    """`first`, whose dst is f32 of dst's format, into scratch, and from there into dst by an element-wise pass, which
    converts to dst's type.  passed: all tensors, as a caller passes them.  name: of the primitive."""
    dst = passed["dst"]
    before, made = of_type(dst, f32), f"{name} before post-ops"
    second = schedule(Request(name, (made, before), ("dst", dst), {}, lambda _: IDENTITY), attr, engine)
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.add_plan(first, {"dst": View(made)})
    assembly.add_plan(second, {})
    assembly.scratch[made] = before.size_bytes
    return assembly.plan(first.implementation, dict(passed), first.outputs)
