"""What gradients of weights along rows compute, as a loop written from the generator's docstring."""

import numpy as np

from asmdnn.generators.dot.plane_weights import PlaneWeightsSpec
from asmdnn.types import f32
from tests.generators.case import UNIT_ROUNDOFF, Case, Reference
from tests.generators.reference import LANES, Memory
from tests.support.arena import buffer_of, constant_buffer, elements, magnitudes

ROWS = ((0, 0), (64, 8192), (-2048, 128))  # taps of a call


def weights_case(spec: PlaneWeightsSpec, random: np.random.Generator, integers: bool) -> Case:
    """Sums within the bound of Higham, section 3.1."""
    memory = {name: elements(random, integers, f32) for name in ("src", "diff_dst", "weights")}
    rows(spec, memory)
    words = np.array((len(ROWS), *(x for pair in ROWS for x in pair)), np.int64)
    tolerance: np.ndarray | float = 0.0
    if not integers:
        sizes = magnitudes(memory)
        rows(spec, sizes)
        size = buffer_of(sizes["weights"])
        assert size is not None
        terms = 2 + 2 * len(ROWS) * -(-spec.columns // LANES[spec.isa])
        tolerance = terms * UNIT_ROUNDOFF * np.abs(size.wanted)
    buffers = {name: buffer_of(memory[name]) for name in memory}
    return Case(spec, {**buffers, "taps": constant_buffer(words)}, {"weights": tolerance}, words)


def rows(spec: PlaneWeightsSpec, memory: Memory) -> None:
    """weights[o, k, lane] (+)= src * diff_dst, an element at a time."""
    lanes = LANES[spec.isa]
    for o in range(spec.outputs):
        for k, position in enumerate(spec.positions):
            home = o * spec.output_step + 4 * lanes * k
            total = memory["weights"].load(home, lanes) if spec.accumulate else np.zeros(lanes)
            for src, dst in ROWS:
                for x in range(spec.columns):
                    factor = memory["diff_dst"].load(dst + o * spec.plane_step + 4 * x, 1)
                    total[x % lanes] += (memory["src"].load(src + position + 4 * x, 1) * factor)[0]
            memory["weights"].store(home, total)


REFERENCES = {PlaneWeightsSpec: Reference(weights_case, rounds=True)}
