"""What reductions compute, written from the generators' docstrings, and data for them."""

from collections.abc import Callable

import numpy as np

from asmdnn.generators.functions.reduce import ReduceSpec, TypedReduceSpec
from asmdnn.types import DATA_TYPES, DataType, f32, s8, s32, u8
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.references.softmax import ROUNDOFF, chained
from tests.support.arena import Doubles, buffer_of, elements

OPS: dict[str, Callable[..., Doubles]] = {"sum": np.sum, "mul": np.prod, "max": np.max, "min": np.min}


def stored(x: Doubles, kind: DataType) -> Doubles:
    """Integers are rounded and saturated."""
    if kind not in (s8, u8, s32):
        return x
    limits = np.iinfo(kind.numpy)
    return np.rint(x).clip(limits.min, limits.max)


def reduce_case(spec: ReduceSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each element, in the size of what is summed or multiplied."""
    kinds = {"src": DATA_TYPES[spec.src_kind], "dst": DATA_TYPES[spec.dst_kind]}
    memory = {name: elements(random, integers, kinds.get(name, f32)) for name in spec.frame}
    is_rows = spec.along == "rows"
    rows = [memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)]
    x = np.array([chained(spec.before, row, r, memory) for r, row in enumerate(rows)])
    results = OPS[spec.op](x, axis=1 if is_rows else 0)
    sizes = (np.prod if spec.op == "mul" else np.sum)(np.abs(x), axis=1 if is_rows else 0)
    operands = max((np.abs(memory[name].initial).max() for name in spec.frame[2:]), default=0.0)
    bound = 0.0
    if not (integers and not spec.before and not spec.after and spec.op != "mul"):
        bound = 4 * UNIT_ROUNDOFF * x.size * (1 + sizes.max()) * (1 + operands)
    widest = 0.0
    for r, result in enumerate(np.split(results, len(results)) if is_rows else [results]):
        made = stored(chained(spec.after, result, r, memory), kinds["dst"])
        memory["dst"].store(r * spec.dst_row_bytes, made)
        widest = max(widest, float(np.abs(made).max()))
    bound = bound + ROUNDOFF[spec.dst_kind] * widest if spec.dst_kind in ROUNDOFF else float(bound > 0)
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


REFERENCES = {kind: Reference(reduce_case, rounds=True) for kind in (ReduceSpec, TypedReduceSpec)}
