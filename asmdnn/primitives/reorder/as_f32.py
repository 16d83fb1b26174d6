"""Plans of f32 for tensors of bf16 and f16: phases before them widen what is read, phases after round results once."""

from collections.abc import Iterator
from typing import Any

from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, try_all
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.types import HALF_FLOATS, f32


def as_f32(*planners: Planner[Any]) -> tuple[Planner[Any], ...]:
    """The planners, and in front of them one that asks them for f32 where tensors are bf16 or f16.

    Formats of these are left to the planners, since they are copied anyway.
    """

    def widened(desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        halves = {name: tensor for name, tensor in desc.tensors().items() if tensor.dtype in HALF_FLOATS}
        if not halves:
            return
        wide = desc.with_formats({name: MemoryDesc(tensor.dims, f32, "any") for name, tensor in halves.items()})
        for answer in try_all(planners, wide, attr, engine):
            if not isinstance(answer, Plan):
                yield answer
                continue
            if overlapping := next((name for name in answer.outputs if desc.tensors()[name].may_overlap), ""):
                yield Refusal(answer.implementation, f"elements of {overlapping} overlap")
                continue
            passed = {
                name: of_type(answer.tensors[name], tensor.dtype) if tensor.is_any else tensor
                for name, tensor in halves.items()
            }
            yield between_reorders(answer, passed, engine.tuning, isa=engine.isa)

    return widened, *planners
