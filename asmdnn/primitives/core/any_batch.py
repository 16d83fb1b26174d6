"""`Attr(deterministic="batch")`: bits of a row or an image that depend on neither its neighbours nor their number.

Every sum is then taken in one order, which is the same for any number of rows.  What splits sums by that number is left
out by numbers of the tuning that no product reaches; kinds say what else would differ, and refuse it.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import f32

BATCH: Final = "batch"
NEVER: Final = 1 << 60  # elements, rows or cycles, more than a product has
ONLY: Final = "it is built for matmul, forward inner products and direct forward convolutions"


def no_any_batch(desc: object, attr: Attr) -> str:
    """Of kinds for which nobody has looked."""
    return f"{type(desc).__name__} has no plans for deterministic='batch': {ONLY}"


def of_f32(tensors: Iterable[tuple[str, MemoryDesc]], attr: Attr) -> str:
    """Why a product or convolution of these tensors is refused, "" if it is not."""
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
