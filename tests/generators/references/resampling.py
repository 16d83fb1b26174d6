"""What resampling kernels compute, as a loop written from the generator's docstring, and data for them."""

from itertools import product

import numpy as np

from asmdnn.generators.functions.resample import ResampleSpec
from asmdnn.generators.functions.resample_columns import first_result
from asmdnn.generators.functions.resample_rows import ResampleRowsSpec
from asmdnn.generators.functions.resample_rows_typed import TypedResampleRowsSpec
from asmdnn.generators.functions.resample_typed import TypedResampleSpec
from asmdnn.isa.vectors import lanes_of
from asmdnn.types import DATA_TYPES, bf16, f32, u8
from tests.generators.case import MOST_SLOPE, UNIT_ROUNDOFF, Case, Reference
from tests.generators.references.copies import LIMITS
from tests.support import functions
from tests.support.arena import buffer_of, elements

BITS = {"b8": u8, "b16": bf16}  # as what plain bits are moved


def resample_case(spec: ResampleSpec, random: np.random.Generator, integers: bool) -> Case:
    """Real numbers within a rounding of every product and partial sum of numbers up to 1."""
    types = dict(zip(("src", "dst"), map(DATA_TYPES.get, spec.kinds), strict=True))
    memory = {name: elements(random, integers, types.get(name) or f32) for name in spec.frame}
    weighted = [axis for axis, taps in enumerate(spec.taps) if len(taps) > 1]
    for at in product(*(range(loop.times) for loop in spec.loops), range(spec.together)):
        pixel, (src, dst, last) = at[-1], spec.place(at[:-1])
        dst, last = dst + pixel * spec.dst_pixel_bytes, last + 4 * pixel * len(spec.taps[-1])
        starts = {axis: last if axis == len(spec.taps) - 1 else 0 for axis in weighted}
        weights = {a: memory[f"weights{a}"].load(starts[a], len(spec.taps[a])) for a in weighted}
        total = np.zeros(spec.elements)
        for tap in product(*(range(len(taps)) for taps in spec.taps)):
            offset = sum(taps[t] for t, taps in zip(tap, spec.taps, strict=True))
            factor = np.prod([weights[axis][tap[axis]] for axis in weighted])
            total += factor * memory["src"].load(src + offset, spec.elements)
        least, most = LIMITS.get(spec.kinds[1], (-np.inf, np.inf))
        memory["dst"].store(dst, functions.apply(spec.chain, total, None, {}).clip(least, most))
    taps = np.prod([len(each) for each in spec.taps])
    bound = 0.0 if integers else 2 * (taps + 4) * taps * UNIT_ROUNDOFF * (MOST_SLOPE if spec.chain else 1)
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


def resample_rows_case(spec: ResampleRowsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Real numbers within a rounding of every product and partial sum of numbers up to 1."""
    kinds = zip(("src", "dst"), (BITS.get(kind) or DATA_TYPES[kind] for kind in spec.kinds), strict=True)
    types = dict(kinds)
    memory = {name: elements(random, integers, types.get(name) or f32) for name in spec.frame}
    lanes, along, across = lanes_of(spec.isa), len(spec.columns[0]), len(spec.taps)
    for src, dst, weights in spec.steps():
        for r in range(spec.together):
            row = np.zeros(spec.results)
            for vector, column in enumerate(spec.columns):
                first = first_result(vector, spec.results, lanes)
                made = row[first : first + lanes]
                made[:] = 0
                for (tap, pick), (number, offset) in product(enumerate(column), enumerate(spec.taps)):
                    begin = src + offset + pick.bytes
                    for vector_begin in pick.vectors(lanes):  # which is read whole
                        memory["src"].load(begin + spec.sizes[0] * vector_begin, min(lanes, spec.width))
                    x = np.array([memory["src"].load(begin + spec.sizes[0] * lane, 1)[0] for lane in pick.lanes])
                    factor = memory["factors"].load(4 * lanes * (vector * along + tap), lanes) if along > 1 else 1
                    at = weights + 4 * (r * across + number)
                    weight = memory["weights"].load(at, 1) if across > 1 else 1
                    made += (weight * factor * x)[: len(made)]
            least, most = LIMITS.get(spec.kinds[1], (-np.inf, np.inf))
            made = functions.apply(spec.chain, row, None, {}).clip(least, most)
            memory["dst"].store(dst + r * spec.dst_row_bytes, made)
    taps = along * across
    bound = 0.0 if integers else 2 * (taps + 4) * taps * UNIT_ROUNDOFF * (MOST_SLOPE if spec.chain else 1)
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {"dst": bound})


REFERENCES = {
    ResampleSpec: Reference(resample_case, rounds=True),
    TypedResampleSpec: Reference(resample_case, rounds=False),
    ResampleRowsSpec: Reference(resample_rows_case, rounds=True),
    TypedResampleRowsSpec: Reference(resample_rows_case, rounds=False),
}
