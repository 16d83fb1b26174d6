"""What dropouts compute, from their definition, and data for them."""

import numpy as np

from asmdnn.generators.functions.dropout import DropoutSpec
from asmdnn.types import s32, u8
from tests.generators.case import Case, Reference
from tests.support.arena import Elements, buffer_of, elements
from tests.support.philox import dropped, kept

PROBABILITIES = (0.5, 0.0, 1.0, 0.1, 1e-9, 0.25)


def dropout_case(spec: DropoutSpec, random: np.random.Generator, integers: bool) -> Case:
    """Probabilities of all sizes, seeds of both signs, indices that count past 2^32."""
    probability = PROBABILITIES[spec.count % len(PROBABILITIES)]
    seed, first = int(random.integers(-(2**31), 2**31)), 4 * int(random.integers(2**30 - 4, 2**30))
    memory: dict[str, Elements] = {name: elements(random, integers) for name in ("src", "dst", "probability")}
    memory |= {name: elements(random, integers, kind) for name, kind in (("mask", u8), ("seed", s32), ("first", s32))}
    for name, number in (("probability", float(np.float32(probability))), ("seed", seed), ("first", first - 2**32)):
        memory[name].initial[memory[name].place(0, 1)] = memory[name].values[memory[name].place(0, 1)] = number
        memory[name].load(0, 1)
    src = memory["src"].load(0, spec.count)
    memory["dst"].store(0, dropped(src, first, probability, seed))
    memory["mask"].store(0, kept(first, spec.count, probability, seed).astype(np.float64))
    return Case(spec, {name: buffer_of(memory[name]) for name in spec.frame}, {})


REFERENCES = {DropoutSpec: Reference(dropout_case, rounds=False)}
