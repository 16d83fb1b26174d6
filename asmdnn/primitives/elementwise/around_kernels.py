"""What comes around the kernels of a primitive: reorders of what they cannot address, post-ops as a pass of their own.

A pass reads further tensors, leaves padding zero, converts, and stands after kernels that apply no post-ops.
"""

from collections.abc import Mapping

from asmdnn.generators.functions.postops import EltwiseOp
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import dataclass
from asmdnn.types import f32

IDENTITY = EltwiseOp("linear", 1.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AroundKernels:
    """name: of the primitive.  passed: all tensors, as a caller passes them.  tensors: those between the reorders and
    the pass, in front of which dst is f32; separate_attr: its post-ops, None where there is no pass.  reads: the
    outputs whose former values count.
    """

    name: str
    passed: Mapping[str, MemoryDesc]
    tensors: Mapping[str, MemoryDesc]
    separate_attr: Attr | None
    engine: Engine
    reads: tuple[str, ...] = ()

    def finished(self, made: Plan) -> Plan:
        """The plan of what is passed, `made` being that of the kernels."""
        plan = between_reorders(made, self.tensors, self.engine.tuning, self.reads, isa=self.engine.isa)
        if self.separate_attr is None:
            return plan
        return separate_post_ops(self.name, plan, self.passed, self.separate_attr, self.engine)


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


class Surrounded:
    """A request whose kernels have others around them: what it takes from these."""

    __slots__ = ()
    around: AroundKernels

    @property
    def engine(self) -> Engine:
        return self.around.engine

    @property
    def tensors(self) -> Mapping[str, MemoryDesc]:
        return self.around.tensors

    @property
    def isa(self) -> str:
        return f32_level(self.engine.isa)
