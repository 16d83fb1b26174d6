"""`Attr(deterministic="batch")`: the bits of a row or an image do not depend on the rest of the batch or its size.

Every sum is taken in one order, which is the same for any number of rows.  Strategies that would split sums by that
number are switched off by limits in the tuning that no product reaches; kinds refuse whatever else would differ.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import f32

BATCH: Final = "batch"
NEVER: Final = 1 << 60  # elements, rows or cycles: more than any product has
ONLY: Final = "it is built for matmul, forward inner products and direct forward convolutions"


def no_any_batch(desc: object, attr: Attr) -> str:
    """The reason of kinds that have no such plans."""
    return f"{type(desc).__name__} has no plans for deterministic='batch': {ONLY}"


def of_f32(tensors: Iterable[tuple[str, MemoryDesc]], attr: Attr) -> str:
    """The reason to refuse a product or convolution of these tensors, "" if there is none."""
    for name, tensor in tensors:
        if tensor.dtype != f32:
            return f"{name} is {tensor.dtype}, deterministic='batch' takes f32: leave it out for other types"
    if attr.quantizes:
        return "scales and zero points have no plans for deterministic='batch': leave one of the two out"
    return ""


def engine_for(attr: Attr, engine: Engine) -> Engine:
    """The engine that planners get: with "batch", no product is summed in rows, lanes or parts of k."""
    if attr.deterministic != BATCH:
        return engine
    products = replace(engine.tuning.products, vector_rows=NEVER, dot_rows=NEVER, split_cycles=NEVER)
    return replace(engine, tuning=replace(engine.tuning, products=products))
