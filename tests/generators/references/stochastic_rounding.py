"""What stochastic rounding computes, from its definition, and data for it."""

import numpy as np

from asmdnn.generators.functions.stochastic_rounding import StochasticRoundingSpec
from asmdnn.types import s32
from tests.generators.case import Case, Reference
from tests.support.arena import Elements, buffer_of, elements
from tests.support.philox import rounded_to_bf16


def rounding_case(spec: StochasticRoundingSpec, random: np.random.Generator, integers: bool) -> Case:
    """Seeds of both signs, indices that count past 2^32."""
    seed, first = int(random.integers(-(2**31), 2**31)), 4 * int(random.integers(2**30 - 4, 2**30))
    memory: dict[str, Elements] = {name: elements(random, integers) for name in ("src", "dst")}
    memory |= {name: elements(random, integers, s32) for name in ("seed", "first")}
    for name, number in (("seed", seed), ("first", first - 2**32)):
        memory[name].initial[memory[name].place(0, 1)] = memory[name].values[memory[name].place(0, 1)] = number
        memory[name].load(0, 1)
    src = memory["src"].load(0, spec.count)
    memory["dst"].store(0, rounded_to_bf16(src, first, seed))
    return Case(spec, {name: buffer_of(memory[name]) for name in spec.frame}, {})


REFERENCES = {StochasticRoundingSpec: Reference(rounding_case, rounds=False)}
