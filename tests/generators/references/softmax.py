"""What softmax kernels compute, written from the generators' docstrings, and data for them."""

import numpy as np

from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.postops import PostOp
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.generators.functions.softmax_counted import CountedSoftmaxSpec
from asmdnn.generators.functions.softmax_counted_long import CountedLongSoftmaxSpec
from asmdnn.generators.functions.softmax_lanes import SoftmaxLanesSpec
from asmdnn.generators.functions.softmax_parts import SoftmaxPartsSpec
from asmdnn.isa.vectors import lanes_of
from asmdnn.types import DATA_TYPES, bf16
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import Memory, operand
from tests.support import functions
from tests.support.arena import Doubles, buffer_of, constant_buffer, elements

ROUNDOFF = {"f32": 0.0, "bf16": 2.0**-8, "f16": 2.0**-11}  # of a result that is stored, beside what f32 does
POLYNOMIAL = 2.0**-13.5  # its relative error
ROUNDINGS = 32  # of a result of the corpus, beside that of x - max x, which e^x takes over


def softmax_case(
    spec: SoftmaxSpec | SoftmaxLanesSpec | CountedSoftmaxSpec | CountedLongSoftmaxSpec,
    random: np.random.Generator,
    integers: bool,
) -> Case:
    """Within the rounding of differences, and some more, of the largest number that a result is made of."""
    kinds = dict(zip(("src", "dst"), spec.types, strict=True))
    memory = {name: elements(random, integers, DATA_TYPES[kinds.get(name, "f32")]) for name in spec.frame}
    rows = [memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)]
    x = np.array([chained(spec.before, row, r, memory) for r, row in enumerate(rows)])
    axis = 0 if isinstance(spec, SoftmaxLanesSpec) else 1
    differences = x - x.max(axis, keepdims=True)
    powers = np.exp(differences)
    total = powers.sum(axis, keepdims=True)
    values = differences - np.log(total) if spec.log else powers / total
    results = np.array([chained(spec.after, row, r, memory) for r, row in enumerate(values)])
    for r, row in enumerate(results):
        memory["dst"].store(r * spec.dst_row_bytes, row)
        if isinstance(spec, CountedSoftmaxSpec | CountedLongSoftmaxSpec):
            rest = spec.vectors * lanes_of(spec.isa) - spec.elements
            memory["src"].load(r * spec.src_row_bytes + 4 * spec.elements, rest)
            memory["dst"].store(r * spec.dst_row_bytes + 4 * spec.elements, np.zeros(rest))
    bounds, left = dict[str, float](), spec.logsumexp
    if left is not None:
        sums = (x.max(axis, keepdims=True) + np.log(total)).reshape(-1)
        for r, number in enumerate(sums):
            memory["logsumexp"].store(r * left.row_bytes, np.array([number]))
        bounds["logsumexp"] = UNIT_ROUNDOFF * ROUNDINGS * max(1.0, np.abs(x).max(), np.abs(sums).max())
    size = np.abs(np.concatenate([found.initial for found in memory.values()])).max()
    bound = UNIT_ROUNDOFF * (ROUNDINGS + 2 * np.abs(differences).max()) * max(1.0, np.abs(results).max(), size)
    bound += ROUNDOFF[spec.types[1]] * np.abs(results).max()
    buffers = {name: buffer_of(memory[name]) for name in memory}
    if isinstance(spec, CountedSoftmaxSpec | CountedLongSoftmaxSpec):
        buffers["words"] = constant_buffer(np.array(spec.numbers, np.int64))
    return Case(spec, buffers, bounds | {"dst": bound})


def parts_case(spec: SoftmaxPartsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Powers are up to 1, and rounded to 8 bits; those, and sums of them, share the error of a polynomial."""
    kinds = {"dst": bf16}
    memory = {name: elements(random, integers, kinds.get(name, DATA_TYPES["f32"])) for name in spec.frame}
    rows = [memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)]
    x = np.array([chained(spec.masks, spec.scale * row, r, memory) for r, row in enumerate(rows)])
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    for r, row in enumerate(powers):
        memory["dst"].store(r * spec.dst_row_bytes, row)
    factors = 1 / powers.sum(axis=1)
    memory["factors"].store(0, factors)
    if spec.logsumexp is not None:
        for r, (row, factor) in enumerate(zip(x, factors, strict=True)):
            memory["logsumexp"].store(r * spec.logsumexp.row_bytes, np.array([row.max() - np.log(factor)]))
    error = POLYNOMIAL + UNIT_ROUNDOFF * (ROUNDINGS + 4 * np.abs(x).max())
    bounds = {"dst": error + 2.0**-9, "factors": error * factors.max()}
    if spec.logsumexp is not None:
        bounds["logsumexp"] = error + UNIT_ROUNDOFF * ROUNDINGS * max(1.0, np.abs(x).max())
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, bounds)


def chained(chain: tuple[PostOp, ...], x: Doubles, row: int, memory: Memory) -> Doubles:
    found = {o: operand(o, row, 0, len(x), len(x), memory) for o in operands_read(chain) if o is not None}
    return functions.apply(chain, x, None, found)


REFERENCES = {
    **{
        kind: Reference(softmax_case, rounds=True)
        for kind in (SoftmaxSpec, SoftmaxLanesSpec, CountedSoftmaxSpec, CountedLongSoftmaxSpec)
    },
    SoftmaxPartsSpec: Reference(parts_case, rounds=True),
}
