"""What local response normalization computes, written from the generator's docstring, and data for it."""

import numpy as np

from asmdnn.corpus.conv import LANES
from asmdnn.generators.functions.lrn import LrnSpec
from asmdnn.generators.functions.lrn_gradient import LrnGradientSpec
from asmdnn.generators.functions.tap_rows import TapRows
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.support.arena import Doubles, Elements, buffer_of, elements

ROUNDINGS = 16  # of the power, the product and the base
LARGEST = 16  # of elements


def lrn_case(spec: LrnSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each square, which the power makes smaller, and some more."""
    memory = {name: elements(random, integers) for name in spec.frame}
    src = memory["src"]
    for r in range(spec.rows):
        x, sums = src.load(r * spec.src_row_bytes, spec.elements), sums_of(spec, src, r, 2)
        base = spec.k + spec.factor * sums
        if spec.has_workspace:
            memory["workspace"].store(r * spec.dst_row_bytes, base)
        memory["dst"].store(r * spec.dst_row_bytes, x * base**-spec.beta)
    size = {name: np.abs(memory[name].values).max() for name in spec.frame}
    bounds = {name: UNIT_ROUNDOFF * (ROUNDINGS + len(spec.taps)) * size[name] for name in spec.frame[1:]}
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, bounds)


def sums_of(spec: TapRows, src: Elements, r: int, power: int) -> Doubles:
    """Of powers of what the taps of a row's elements have; all that the kernel may read is loaded."""
    sums, places = np.zeros(spec.elements), np.arange(spec.elements)
    for tap in spec.taps:
        has = (places % spec.piece >= tap.first) & (places % spec.piece < tap.last)
        together = LANES[spec.isa] if tap.whole else 1  # vectors of which some lanes have the tap are loaded whole
        for e in places[np.isin(places // together, places[has] // together)]:
            value = src.load(r * spec.src_row_bytes + tap.offset_bytes + 4 * int(e), 1)[0] ** power
            sums[e] += value if has[e] else 0
    return sums


def gradient_case(spec: LrnGradientSpec, random: np.random.Generator, integers: bool) -> Case:
    """Within a rounding for each term, in the size of all."""
    memory, size = {name: elements(random, integers) for name in spec.frame}, 0.0
    for r in range(spec.rows):
        at = r * spec.dst_row_bytes
        memory["src"].load(r * spec.src_row_bytes, spec.elements)
        x, q = (memory[name].load(at, spec.elements) for name in ("x", "dst"))
        total = sums_of(spec, memory["src"], r, 1)
        memory["dst"].store(at, q - spec.factor * x * total)
        size = max(size, np.abs(q).max() + spec.factor * np.abs(x).max() * len(spec.taps) * LARGEST)
    bound = UNIT_ROUNDOFF * (ROUNDINGS + len(spec.taps)) * size
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


REFERENCES = {LrnSpec: Reference(lrn_case, rounds=True), LrnGradientSpec: Reference(gradient_case, rounds=True)}
