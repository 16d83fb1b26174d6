"""Convolutions of f16 that may be summed in f16, where an instruction adds those at twice the rate of f32.

accumulation_mode "f16" asks direct tiles for such sums (multiplied.py).  "any" allows them: here they are taken where
fewer cycles are expected than of what else there is.
"""

from collections.abc import Iterator
from typing import Any

from asmdnn.isa.dot import run_products
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer
from asmdnn.primitives.core.ways import AsksBelow, Planners
from asmdnn.primitives.core.widening import first


@AsksBelow
def run_sums(below: Planners, desc: Any, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """The planners below with such sums, where attributes allow these."""
    if attr.accumulation_mode != "any" or engine.any_batch:
        return
    types = run_products(desc.src.dtype, desc.weights.dtype, engine.isa)
    if types is None:
        return
    plan = first(below, desc, attr.changed(accumulation_mode=str(types.run)), engine)
    if plan is None:
        return
    other = first(below, desc, attr, engine)
    if other and other.cycles <= plan.cycles:
        reason = f"{plan.cycles} cycles are expected with sums of {types.run}, {other.cycles} of f32"
        yield Refusal(plan.implementation, reason)
    else:
        yield plan
