"""What gradients of weights of groups with few channels compute, as a loop written from the generator's docstring."""

from itertools import product

import numpy as np

from asmdnn.generators.dot.grouped_weights import GroupedWeightsSpec
from asmdnn.types import f32
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import LANES, Memory
from tests.support.arena import buffer_of, constant_buffer, elements, magnitudes

ROWS = ((0, 0), (64, 4096), (-2048, 128))  # taps of a call


def weights_case(spec: GroupedWeightsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Sums within the bound of Higham, section 3.1."""
    kinds = {"src": spec.dtype, "diff_dst": spec.dtype, "weights": f32}
    memory = {name: elements(random, integers, kind) for name, kind in kinds.items()}
    rows(spec, memory)
    words = np.array((len(ROWS), *(x for pair in ROWS for x in pair)), np.int64)
    tolerance: np.ndarray | float = 0.0
    if not integers:
        sizes = magnitudes(memory)
        rows(spec, sizes)
        size = buffer_of(sizes["weights"])
        assert size is not None
        terms = 2 + 2 * len(ROWS) * sum(segment.count for segment in spec.segments)
        tolerance = terms * UNIT_ROUNDOFF * np.abs(size.wanted)
    buffers = {name: buffer_of(memory[name]) for name in memory}
    return Case(spec, {**buffers, "taps": constant_buffer(words)}, {"weights": tolerance}, words)


def rows(spec: GroupedWeightsSpec, memory: Memory) -> None:
    """weights[i, l, k] (+)= src * diff_dst, a vector at a time: every lane has input i of its group of src."""
    lanes = LANES[spec.isa]
    seconds = [spec.second_row] if spec.second_row else []
    taps = [(src + more, dst + after) for src, dst in ROWS for more, after in ((0, 0), *seconds)]
    sums = [*enumerate(product(spec.lines, enumerate(spec.positions)))]
    for part, (n, (line, (k, position))) in product(range(spec.group), sums):
        inputs = np.arange(lanes) // spec.group * spec.group + part
        home = part * spec.input_step + n * spec.weights_step
        total = memory["weights"].load(home, lanes) if spec.accumulate else np.zeros(lanes)
        for src, dst in taps:
            for segment in spec.segments:
                for x in range(segment.first, segment.first + segment.count):
                    factor = memory["diff_dst"].load(dst + x * spec.dst_step, lanes)
                    if k in segment.positions:
                        place = src + line + x * spec.src_step + position
                        total = total + memory["src"].load(place, lanes)[inputs] * factor
        memory["weights"].store(home, total)


REFERENCES = {GroupedWeightsSpec: Reference(weights_case, rounds=True)}
