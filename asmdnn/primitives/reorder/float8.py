"""Products and convolutions of floats of 8 bits: bf16 holds them all, so src and weights become that, exactly.

Weights that are `any` are packed as bf16, once; others are widened in every call, and so is src, to f32 where pairs
of bf16 are not multiplied, or slowly.  dst, and a bias, of 8 bits are f32 inside: the sum is rounded once, by a phase
after.
"""

from collections.abc import Iterator
from typing import Any

from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, Planner, try_all
from asmdnn.primitives.core.widening import fast_pairs
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import replace
from asmdnn.types import FLOATS8, UPPER_FLOATS, DataType, f32

NAME = "f8"
FACTORS = ("src", "weights")
NARROW = UPPER_FLOATS[0]  # that has all numbers of 8 bits


def answers(planners: tuple[Planner[Any], ...], desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """What planners make of wider tensors."""
    small = {name: tensor for name, tensor in desc.tensors().items() if tensor.dtype in FLOATS8}
    wide_src = NARROW if fast_pairs((NARROW,), engine) else f32
    wanted = {name: widened(name, tensor, wide_src) for name, tensor in small.items()}
    for answer in try_all(planners, desc.with_formats(wanted), attr.strict, engine):
        name = f"{NAME}+{answer.implementation}"
        if isinstance(answer, Refusal):
            yield Refusal(name, answer.reason)
        else:
            yield replace(as_passed(answer, small, attr, engine), implementation=name)


def widened(name: str, tensor: MemoryDesc, wide_src: DataType) -> MemoryDesc:
    """What is asked for instead: factors in any format, as they are copied; others as they are."""
    if name in FACTORS:
        return MemoryDesc(tensor.dims, NARROW if name == "weights" else wide_src, "any")
    return MemoryDesc(tensor.dims, f32, "any") if tensor.is_any else of_type(tensor, f32)


def as_passed(plan: Plan, small: dict[str, MemoryDesc], attr: Attr, engine: Engine) -> Plan:
    """The plan between what widens and what rounds; weights whose format is open stay as the plan has them."""
    passed = {}
    for name, given in small.items():
        if not given.is_any:
            passed[name] = given
        elif name != "weights":
            passed[name] = of_type(plan.tensors[name], given.dtype)
    reads = ("dst",) if attr.reads_dst() else ()
    return between_reorders(plan, passed, engine.tuning, reads, isa=engine.isa)
