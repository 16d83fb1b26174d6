"""Post-ops as a pass of their own behind a primitive whose kernels cannot apply them to registers."""

from collections.abc import Mapping

from asmdnn.generators.functions.postops import EltwiseOp
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.engine import Engine
from asmdnn.types import f32

IDENTITY = EltwiseOp("linear", 1.0, 0.0, 1.0)


def with_pass_behind(name: str, first: Plan, passed: Mapping[str, MemoryDesc], attr: Attr, engine: Engine) -> Plan:
    """`first` into scratch, and from there into dst by an element-wise pass.  passed: all tensors, as a caller passes
    them.  name: of the primitive.  Raises Refused where dst is not f32."""
    dst = passed["dst"]
    if dst.dtype != f32:
        raise Refused(f"dst is {dst.dtype}, with post-ops only f32 is implemented")
    made = f"{name} before post-ops"
    second = schedule(Request(name, (made, dst), ("dst", dst), {}, lambda _: IDENTITY), attr, engine)
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.add_plan(first, {"dst": View(made)})
    assembly.add_plan(second, {})
    assembly.scratch[made] = dst.size_bytes
    return assembly.plan(first.implementation, dict(passed), first.outputs)
