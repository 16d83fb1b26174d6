"""What gradients that need sums over a row compute, written from row_programs' docstring, and data for them."""

import numpy as np

from asmdnn.generators.functions.row_gradient import RowGradientSpec
from asmdnn.generators.functions.row_programs import softmax_programs
from asmdnn.generators.functions.row_sums import RowSumsSpec
from asmdnn.types import DATA_TYPES
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import Memory, operand
from tests.support.arena import Doubles, buffer_of, elements

ROUNDOFF = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}  # of what is stored
ROUNDINGS = 64  # of a term, beside those of the sum


def memory_of(spec: RowGradientSpec | RowSumsSpec, random: np.random.Generator, integers: bool) -> Memory:
    """Of the types of the arguments; sums are f32."""
    kinds = dict(zip(spec.frame, spec.types, strict=False))
    return {name: elements(random, integers, DATA_TYPES[kinds.get(name, "f32")]) for name in spec.frame}


def row_case(spec: RowGradientSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each element, in the size of the terms."""
    memory = memory_of(spec, random, integers)
    src = np.array([memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)])
    n = spec.elements
    others = [np.array([operand(o, r, 0, n, n, memory) for r in range(spec.rows)]) for o in spec.operands]
    axis = 1 if spec.along == "rows" else 0
    if spec.what == "softmaxback":
        values, size = of_softmax(src, others[0], axis, spec.sums == softmax_programs(True).sums)
    else:
        values, size = of_norm(src, others, spec.what == "layernormback")
    for r, row in enumerate(values):
        memory["dst"].store(r * spec.dst_row_bytes, row)
    bound = UNIT_ROUNDOFF * (ROUNDINGS + src.shape[axis]) * size + ROUNDOFF[spec.type_of(1)] * np.abs(values).max()
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


def of_softmax(y: Doubles, dy: Doubles, axis: int, log: bool) -> tuple[Doubles, float]:
    """The gradient, and the size of its terms."""
    if log:
        total, sizes = dy.sum(axis, keepdims=True), np.abs(dy).sum(axis, keepdims=True)
        return dy - np.exp(y) * total, float((np.abs(dy) + np.exp(y) * (1 + np.abs(y)) * sizes).max())
    total, sizes = (dy * y).sum(axis, keepdims=True), np.abs(dy * y).sum(axis, keepdims=True)
    return y * (dy - total), float((np.abs(y) * (np.abs(dy) + sizes)).max())


def of_norm(x: Doubles, others: list[Doubles], centred: bool) -> tuple[Doubles, float]:
    dy, *rest = others
    mean = rest.pop(0) if centred else np.zeros_like(x)
    factor = rest.pop(0)
    h, g = (x - mean) * factor, dy * rest.pop(0) if rest else dy
    along = {"axis": 1, "keepdims": True}
    values = factor * (g - centred * g.mean(**along) - h * (g * h).mean(**along))
    sizes = np.abs(g) + np.abs(g).mean(**along) + np.abs(h) * np.abs(g * h).mean(**along)
    return values, float((np.abs(factor) * sizes).max())


def sums_case(spec: RowSumsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each element, in the size of the terms."""
    memory = memory_of(spec, random, integers)
    src = np.array([memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)])
    n = spec.elements
    others = [np.array([operand(o, r, 0, n, n, memory) for r in range(spec.rows)]) for o in spec.operands]
    stored, terms = terms_of(spec, src, *others)
    if spec.place:
        for r, row in enumerate(stored):
            memory["dst"].store(r * spec.place.row_bytes, row)
    tolerances = (
        {"dst": ROUNDOFF[spec.type_of(spec.place.argument)] * np.abs(stored).max()} if spec.place else {}
    )  # fmt: skip
    axis = 1 if spec.along == "rows" else 0
    for i, values in enumerate(terms):
        total, step = values.sum(axis), spec.result_row_bytes
        for at, found in [(r * step, [x]) for r, x in enumerate(total)] if axis else [(0, total)]:
            memory[f"sum{i}"].store(at, np.asarray(found))
        size = np.abs(values).sum(axis).max()
        tolerances[f"sum{i}"] = UNIT_ROUNDOFF * (ROUNDINGS + src.shape[axis]) * size
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, tolerances)


def terms_of(spec: RowSumsSpec, x: Doubles, dy: Doubles, *more: Doubles) -> tuple[Doubles, list[Doubles]]:
    """What is stored, if anything is, and what is summed."""
    if spec.what == "merged":
        return x, [x, dy]
    if spec.what == "maskedback":
        passed = np.where(more[0] > 0, dy, 0)
        return passed, [passed, passed * (x - more[1])]
    if spec.what == "preluback":
        return np.where(x > 0, dy, more[0] * dy), [np.where(x > 0, 0, x * dy)]
    if spec.what == "batchnormback":
        return x, [dy, dy * (x - more[0])]
    *mean, factor = more
    products = dy * ((x - mean[0] if mean else x) * factor)
    return x, [products, dy][: len(spec.program.results)]


REFERENCES = {RowGradientSpec: Reference(row_case, rounds=True), RowSumsSpec: Reference(sums_case, rounds=True)}
