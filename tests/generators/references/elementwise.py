"""What element-wise kernels compute, as a loop written from the generator's docstring, and data for them."""

import numpy as np

from asmdnn.generators.functions.chain import operands_read
from asmdnn.generators.functions.elementwise import (
    ElementwiseSpec,
    SeveralResultsSpec,
    TypedElementwiseSpec,
    TypedResultsSpec,
)
from asmdnn.generators.functions.postops import OLD_DST, BinaryOp, EltwiseOp, GradientOp
from asmdnn.types import DATA_TYPES
from tests.generators.case import MOST_SLOPE, UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import Memory, operand
from tests.support import functions
from tests.support.arena import buffer_of, decode, elements, encode

ONLY_POSITIVE = ("log", "sqrt", "pow", "div", "reciprocal", "rsqrt", "fmod", "mod")


def map_case(spec: ElementwiseSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within some roundings of the result and of what it is a sum of; tests of accuracy are elsewhere."""
    memory = {name: elements(random, integers) for name in spec.frame}
    for name, of_positive in (("src", EltwiseOp), ("operand2", GradientOp | BinaryOp)):
        if any(isinstance(op, of_positive) and op.alg in ONLY_POSITIVE for op in spec.chain):  # type: ignore[arg-type]
            memory[name].initial[:] = memory[name].values[:] = np.abs(memory[name].values) + 1
    mapped(spec, memory)
    buffers = {name: buffer_of(memory[name]) for name in memory}
    tolerances = {}
    for name in spec.frame[1 : 1 + len(spec.results)]:
        dst = buffers[name]
        assert dst is not None
        tolerances[name] = MOST_SLOPE * UNIT_ROUNDOFF * (1 + np.abs(dst.wanted))
    return Case(spec, buffers, tolerances)


def mapped(spec: ElementwiseSpec, memory: Memory) -> None:
    """result[r, c] = chain(src[r, c]) for every result; a sum reads what dst held."""
    read = {o for result in spec.results for o in operands_read(result.chain)}
    for r in range(spec.rows):
        x = np.zeros(spec.elements)
        x[:] = memory["src"].load(r * spec.src.row_bytes, 1 if spec.src.element else spec.elements)
        old = memory["dst"].load(r * spec.dst_row_bytes, spec.elements) if OLD_DST in read else None
        operands = {o: operand(o, r, 0, spec.elements, spec.elements, memory) for o in read if o is not OLD_DST}
        for name, result in zip(spec.frame[1:], spec.results, strict=False):
            memory[name].store(r * result.row_bytes, functions.apply(result.chain, x, old, operands))
            if spec.zeroed:
                row = spec.size_of(result.argument) * spec.elements
                memory[name].store(r * result.row_bytes + row, np.zeros(spec.zeroed))


def typed_case(spec: TypedElementwiseSpec, random: np.random.Generator, _: bool) -> Case:
    """On integers, which the chains of the corpus map to integers; those of dst saturate."""
    kinds = [DATA_TYPES[kind] for kind in spec.types]
    memory = {name: elements(random, True, kind) for name, kind in zip(spec.frame, kinds, strict=True)}
    mapped(spec, memory)
    dst = memory["dst"]
    if kinds[1].extension:  # of few bits, which do not hold all of these integers
        dst.values[dst.written] = decode(encode(dst.values[dst.written], kinds[1]), kinds[1])
    elif kinds[1].numpy[1] in "iu":
        limits = np.iinfo(kinds[1].numpy)
        dst.values[dst.written] = dst.values[dst.written].clip(limits.min, limits.max)
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {})


REFERENCES = {
    **{kind: Reference(typed_case, rounds=False) for kind in (TypedElementwiseSpec, TypedResultsSpec)},
    **{kind: Reference(map_case, rounds=True) for kind in (ElementwiseSpec, SeveralResultsSpec)},
}
