"""What cumulative sums and products compute, written from the generator's docstring, and data for them."""

import numpy as np

from asmdnn.generators.functions.cumulative import CumulativeSumSpec
from asmdnn.types import f32
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.support.arena import REACH_BYTES, Elements, buffer_of, elements


def factors(random: np.random.Generator, integers: bool) -> Elements:
    """Powers of 2, of which all products here are exact; or numbers near 1 and -1."""
    count = 2 * REACH_BYTES // f32.size_bytes
    sizes = random.choice([0.5, 1.0, 2.0], count) if integers else random.uniform(0.75, 1.25, count)
    values = sizes * random.choice([-1, 1], count)
    return Elements(np.float64(np.float32(values)))


def cumulative_case(spec: CumulativeSumSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each number that is added, or multiplied; integers to multiply are powers of 2."""
    memory = {name: elements(random, integers) for name in spec.frame}
    if spec.alg == "mul":
        memory["src"] = factors(random, integers)
    x = np.array([memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)])
    axis = 1 if spec.along == "rows" else 0
    ordered = np.flip(x, axis) if spec.reverse else x
    sums = (np.cumsum if spec.alg == "sum" else np.cumprod)(ordered, axis)
    for r, row in enumerate(np.flip(sums, axis) if spec.reverse else sums):
        memory["dst"].store(r * spec.dst_row_bytes, row)
    size = np.abs(x).sum(axis) if spec.alg == "sum" else 2 * np.abs(sums)
    bound = 0.0 if integers else x.shape[axis] * UNIT_ROUNDOFF * float(size.max())
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


REFERENCES = {CumulativeSumSpec: Reference(cumulative_case, rounds=True)}
