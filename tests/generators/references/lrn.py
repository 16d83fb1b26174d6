"""What local response normalization computes, written from the generator's docstring, and data for it."""

import numpy as np

from asmdnn.corpus.conv import LANES
from asmdnn.generators.functions.lrn import LrnSpec
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.support.arena import buffer_of, elements

ROUNDINGS = 16  # of the power, the product and the base


def lrn_case(spec: LrnSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each square, which the power makes smaller, and some more."""
    memory = {name: elements(random, integers) for name in spec.frame}
    src = memory["src"]
    for r in range(spec.rows):
        start = r * spec.src_row_bytes
        x, sums = src.load(start, spec.elements), np.zeros(spec.elements)
        for tap in spec.taps:
            places = np.arange(spec.elements)
            has = (places % spec.piece >= tap.first) & (places % spec.piece < tap.last)
            together = LANES[spec.isa] if tap.whole else 1  # vectors of which some lanes have the tap are loaded whole
            for e in places[np.isin(places // together, places[has] // together)]:
                square = src.load(start + tap.offset_bytes + 4 * int(e), 1)[0] ** 2
                sums[e] += square if has[e] else 0
        base = spec.k + spec.factor * sums
        if spec.has_workspace:
            memory["workspace"].store(r * spec.dst_row_bytes, base)
        memory["dst"].store(r * spec.dst_row_bytes, x * base**-spec.beta)
    size = {name: np.abs(memory[name].values).max() for name in spec.frame}
    bounds = {name: UNIT_ROUNDOFF * (ROUNDINGS + len(spec.taps)) * size[name] for name in spec.frame[1:]}
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, bounds)


REFERENCES = {LrnSpec: Reference(lrn_case, rounds=True)}
