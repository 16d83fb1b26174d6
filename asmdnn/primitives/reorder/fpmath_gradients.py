"""Gradients of f32 whose factors are multiplied as bf16, where `fpmath_mode` allows it and fewer cycles are expected.

The factors of a gradient of weights are src and diff_dst, those of one of data diff_dst and weights.  They are rounded
in front; sums, and the gradient, stay f32.
"""

from collections.abc import Iterator
from typing import Any

from asmdnn.isa.dot import multiplied
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer, try_all
from asmdnn.primitives.core.ways import AsksBelow, Planners
from asmdnn.primitives.core.widening import cycles_of_fma
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.reorder.fpmath import BOTH_BF16, ROUNDINGS
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import replace
from asmdnn.types import f32


def rounded_gradient(*factors: str) -> AsksBelow:
    """The planners below with these tensors as bf16."""

    @AsksBelow
    def rounding(below: Planners, desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
        given = {name: desc.tensors()[name] for name in factors}
        if BOTH_BF16 not in ROUNDINGS.get(attr.fpmath_mode, ()) or {x.dtype for x in given.values()} != {f32}:
            return
        name = f"{BOTH_BF16.word}:{f32_level(engine.isa)}"
        half = BOTH_BF16.src
        if multiplied(half, half, engine.isa).src != half:
            yield Refusal(name, f"isa {engine.isa} multiplies {half} as f32")
            return
        exact = next((x for x in try_all(below, desc, attr.strict, engine) if isinstance(x, Plan)), None)
        wanted = {name: MemoryDesc(x.dims, half, "any") for name, x in given.items()}
        for answer in try_all(below, desc.with_formats(wanted), attr.strict, engine):
            name = f"{BOTH_BF16.word}+{answer.implementation}"
            if isinstance(answer, Refusal):
                yield Refusal(name, answer.reason)
                continue
            passed = {name: of_type(answer.tensors[name], f32) if x.is_any else x for name, x in given.items()}
            plan = replace(between_reorders(answer, passed, engine.tuning, isa=engine.isa), implementation=name)
            cycles = cycles_of_fma(plan, engine)
            if exact and cycles >= exact.cycles:
                yield Refusal(name, f"{cycles} cycles are expected, {exact.cycles} of f32")
            else:
                yield plan

    return rounding
