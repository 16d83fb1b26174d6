"""What kernels of random numbers compute, from their definition, and data for them."""

import numpy as np

from asmdnn.definitions.random_numbers import NORMAL_ERROR
from asmdnn.generators.functions.random_numbers import RandomNumbersSpec
from asmdnn.types import s32
from tests.generators.case import Case, Reference
from tests.support.arena import Doubles, Elements, buffer_of, elements
from tests.support.philox import words


def key_of(seed: int) -> int:
    """SplitMix64's finalizer, in integers of Python; its lower word, the first bit turned over."""
    z = seed % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        z = (z ^ z >> shift) * factor % 2**64
    return z % 2**32 ^ 2**31


def numbers_of(spec: RandomNumbersSpec, first: int, key: int) -> Doubles:
    bits = words(first, spec.count + spec.count % 2, key)
    if spec.distribution == "uniform":
        return (bits // np.uint64(2**8)).astype(np.float64)[: spec.count] / 2**24
    a, b = ((bits[i::2].astype(np.longdouble) + 0.5) / 2**32 for i in range(2))
    radius, angle = np.sqrt(-2 * np.log(a)), b * 2 * np.longdouble("3.14159265358979323846")
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[: spec.count].astype(np.float64)


def random_numbers_case(spec: RandomNumbersSpec, random: np.random.Generator, integers: bool) -> Case:
    """Seeds and streams of both signs, indices that count past 2^32."""
    seed, stream = (int(random.integers(-(2**63), 2**63)) for _ in range(2))
    first = 4 * int(random.integers(2**30 - 4, 2**30))
    memory: dict[str, Elements] = {"dst": elements(random, integers)}
    for name, number, count in (("seed", seed, 2), ("stream", stream, 2), ("first", first - 2**32, 1)):
        memory[name] = one = elements(random, integers, s32)
        parts = np.array([number], np.int64).view(np.int32)[:count]
        one.initial[one.place(0, count)] = one.values[one.place(0, count)] = parts
        one.load(0, count)
    values = numbers_of(spec, first, key_of(seed + stream))
    memory["dst"].store(0, values)
    error = NORMAL_ERROR * np.abs(values).max() if spec.distribution == "normal" else 0.0
    return Case(spec, {name: buffer_of(memory[name]) for name in spec.frame}, {"dst": error})


REFERENCES = {RandomNumbersSpec: Reference(random_numbers_case, rounds=True)}
