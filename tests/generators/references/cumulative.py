"""What cumulative sums compute, written from the generator's docstring, and data for them."""

import numpy as np

from asmdnn.generators.functions.cumulative import CumulativeSumSpec
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.support.arena import buffer_of, elements


def cumulative_case(spec: CumulativeSumSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each number that is added."""
    memory = {name: elements(random, integers) for name in spec.frame}
    x = np.array([memory["src"].load(r * spec.src_row_bytes, spec.elements) for r in range(spec.rows)])
    axis = 1 if spec.along == "rows" else 0
    ordered = np.flip(x, axis) if spec.reverse else x
    sums = np.cumsum(ordered, axis)
    for r, row in enumerate(np.flip(sums, axis) if spec.reverse else sums):
        memory["dst"].store(r * spec.dst_row_bytes, row)
    bound = 0.0 if integers else x.shape[axis] * UNIT_ROUNDOFF * float(np.abs(x).sum(axis).max())
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


REFERENCES = {CumulativeSumSpec: Reference(cumulative_case, rounds=True)}
