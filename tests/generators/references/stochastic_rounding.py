"""What stochastic rounding computes, from its definition, and data for it."""

import numpy as np

from asmdnn.generators.functions.stochastic_rounding import StochasticRoundingSpec
from asmdnn.types import DataType, f32, s32
from tests.generators.case import Case, Reference
from tests.support.arena import Doubles, Elements, buffer_of, elements
from tests.support.philox import rounded_to_bf16, stochastic


def rounding_case(spec: StochasticRoundingSpec, random: np.random.Generator, integers: bool) -> Case:
    """Seeds of both signs, indices that count past 2^32."""
    seed, first = int(random.integers(-(2**31), 2**31)), 4 * int(random.integers(2**30 - 4, 2**30))
    memory: dict[str, Elements] = {"src": elements(random, integers), "dst": elements(random, integers, spec.dst)}
    memory |= {name: elements(random, integers, s32) for name in ("seed", "first")}
    for name, number in (("seed", seed), ("first", first - 2**32)):
        memory[name].initial[memory[name].place(0, 1)] = memory[name].values[memory[name].place(0, 1)] = number
        memory[name].load(0, 1)
    src = memory["src"].load(0, spec.count)
    if spec.dst == f32:
        made = rounded_to_bf16(src, first, seed)
    else:
        made = saturated(stochastic(src, spec.dst, first, seed), spec.dst)
    memory["dst"].store(0, made)
    return Case(spec, {name: buffer_of(memory[name]) for name in spec.frame}, {})


def saturated(numbers: Doubles, dtype: DataType) -> Doubles:
    """Of integers what lies beyond their limits as these."""
    if np.dtype(dtype.numpy).kind not in "iu" or dtype.extension:
        return numbers
    limits = np.iinfo(dtype.numpy)
    return np.clip(numbers, limits.min, limits.max)


REFERENCES = {StochasticRoundingSpec: Reference(rounding_case, rounds=False)}
