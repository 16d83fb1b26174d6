"""What kernels of bytes and nibbles compute, written from the generator's docstring."""

import numpy as np

from asmdnn.generators.functions.nibbles import NibblesSpec
from asmdnn.types import s8, u8
from tests.generators.case import Case, Reference
from tests.support.arena import buffer_of, elements


def nibbles_case(spec: NibblesSpec, random: np.random.Generator, integers: bool) -> Case:
    wide = s8 if spec.signed else u8
    memory = {name: elements(random, integers, wide if (name == "src") == spec.packs else u8) for name in spec.frame}
    if spec.packs:
        limits = (-8, 7) if spec.signed else (0, 15)
        numbers = np.clip(memory["src"].load(0, 2 * spec.count), *limits) % 16
        memory["dst"].store(0, numbers[::2] + 16 * numbers[1::2])
    else:
        octets = memory["src"].load(0, spec.count)
        numbers = np.stack((octets % 16, octets // 16), 1).ravel()
        memory["dst"].store(0, np.where(numbers > 7, numbers - 16, numbers) if spec.signed else numbers)
    return Case(spec, {name: buffer_of(memory[name]) for name in memory}, {})


REFERENCES = {NibblesSpec: Reference(nibbles_case, rounds=False)}
