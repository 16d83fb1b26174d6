"""What kernels of normalizations compute, written from the generators' docstrings, and data for them."""

import numpy as np

from asmdnn.generators.functions.layer_norm import LayerNormSpec
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.references.softmax import chained
from tests.support.arena import Doubles, buffer_of, elements

ROUNDINGS = 64  # of a result, in the size of the largest number that it is made of
LEAST_VARIANCE = 1.0


def layer_norm_case(spec: LayerNormSpec, random: np.random.Generator, integers: bool) -> Case:
    """Data of one row may be all alike, but for which epsilon says how far 1 / sqrt magnifies errors."""
    memory = {name: elements(random, integers) for name in spec.frame}
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
    bounds: dict[str, Doubles | float] = {"dst": bound}
    bounds |= {"mean": ROUNDINGS * UNIT_ROUNDOFF * size, "variance": ROUNDINGS * UNIT_ROUNDOFF * size * size}
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, bounds)


REFERENCES = {LayerNormSpec: Reference(layer_norm_case, rounds=True)}
