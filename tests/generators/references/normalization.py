"""What kernels of normalizations compute, written from the generators' docstrings, and data for them."""

import numpy as np

from asmdnn.generators.functions.layer_norm import LayerNormSpec
from asmdnn.generators.functions.merge_moments import MergeMomentsSpec
from asmdnn.generators.functions.moments import MomentsSpec
from asmdnn.types import DATA_TYPES, f32
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.references.softmax import ROUNDOFF, chained
from tests.support.arena import Doubles, buffer_of, elements

ROUNDINGS = 64  # of a result, in the size of the largest number that it is made of
LEAST_VARIANCE = 1.0


def layer_norm_case(spec: LayerNormSpec, random: np.random.Generator, integers: bool) -> Case:
    """Data of one row may be all alike, but for which epsilon says how far 1 / sqrt magnifies errors."""
    kinds = dict(zip(("src", "dst"), spec.types, strict=True))
    memory = {name: elements(random, integers, DATA_TYPES[kinds.get(name, "f32")]) for name in spec.frame}
    kept = spec.statistics
    if kept:
        variances = memory["variance"]
        variances.initial[:] = variances.values[:] = np.abs(variances.values) + LEAST_VARIANCE
    factors, results = [], []
    for r in range(spec.rows):
        x = memory["src"].load(r * spec.src_row_bytes, spec.elements)
        mean, variance = (x.mean(), x.var()) if spec.centred else (0.0, (x * x).mean())
        if kept and kept.given:
            mean = memory["mean"].load(r * (kept.mean_bytes or 0), 1)[0] if spec.centred else 0.0
            variance = memory["variance"].load(r * kept.variance_bytes, 1)[0]
        elif kept:
            if spec.centred:
                memory["mean"].store(r * (kept.mean_bytes or 0), np.array([mean]))
            memory["variance"].store(r * kept.variance_bytes, np.array([variance]))
        factors.append(1 / np.sqrt(variance + np.float64(np.float32(spec.epsilon))))
        results.append(chained(spec.after, (x - mean) * factors[-1], r, memory))
        memory["dst"].store(r * spec.dst_row_bytes, results[-1])
    size = max(np.abs(found.initial).max() for found in memory.values()) + 1
    bound = ROUNDINGS * UNIT_ROUNDOFF * size * size * max(factors) * (1 + size * max(factors))
    bound += ROUNDOFF[spec.types[1]] * max(np.abs(row).max() for row in results)
    bounds: dict[str, Doubles | float] = {"dst": bound}
    bounds |= {"mean": ROUNDINGS * UNIT_ROUNDOFF * size, "variance": ROUNDINGS * UNIT_ROUNDOFF * size * size}
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, bounds)


def moments_case(spec: MomentsSpec, random: np.random.Generator, integers: bool) -> Case:
    kinds = {"src": DATA_TYPES[spec.kind]}
    memory = {name: elements(random, integers, kinds.get(name, f32)) for name in spec.frame}
    x = np.array([memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)])
    axis = 1 if spec.along == "rows" else 0
    squares = x.var(axis) if spec.divides else x.var(axis) * x.shape[axis]
    for name, values in (("mean", x.mean(axis)), ("m2", squares)):
        for r, part in enumerate(np.split(values, len(values)) if axis else [values]):
            memory[name].store(r * spec.dst_row_bytes, part)
    size = np.abs(x).max()
    bound = ROUNDINGS * UNIT_ROUNDOFF * x.shape[axis] * size
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"mean": bound, "m2": bound * 4 * size})


def merge_case(spec: MergeMomentsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Whatever the chunks were."""
    memory = {name: elements(random, integers) for name in spec.frame}
    means, squares = (
        np.array([memory[name].load(r * spec.row_bytes, spec.elements) for r in range(spec.rows)])
        for name in ("means", "squares")
    )
    counts = np.array([spec.count] * (spec.rows - 1) + [spec.last], np.float64)[:, None]
    mean = (counts * means).sum(0) / counts.sum()
    m2 = (squares + counts * (means - mean) ** 2).sum(0)
    memory["mean"].store(0, mean)
    memory["m2"].store(0, m2 / counts.sum() if spec.divides else m2)
    size = np.abs(means).max() + np.abs(squares).max()
    bound = ROUNDINGS * UNIT_ROUNDOFF * counts.sum() * size
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"mean": bound, "m2": bound * 4 * size})


REFERENCES = {
    LayerNormSpec: Reference(layer_norm_case, rounds=True),
    MomentsSpec: Reference(moments_case, rounds=True),
    MergeMomentsSpec: Reference(merge_case, rounds=True),
}
