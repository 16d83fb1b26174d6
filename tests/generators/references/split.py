"""What the kernel of sums of two computes, written from the table in its docstring: bit for bit, of numbers that are
not denormal."""

import ml_dtypes
import numpy as np

from asmdnn.generators.functions.split import SplitSpec
from asmdnn.types import bf16, f32
from tests.generators.case import Case, Reference
from tests.support.arena import Doubles, buffer_of, elements


def nearest(values: Doubles) -> Doubles:
    return np.float64(values.astype(np.float32).astype(ml_dtypes.bfloat16))


def split_case(spec: SplitSpec, random: np.random.Generator, integers: bool) -> Case:
    kinds = {name: f32 if name == "src" else bf16 for name in spec.frame}
    memory = {name: elements(random, integers, kind) for name, kind in kinds.items()}
    for r in range(spec.rows):
        x = memory["src"].load(r * spec.src_row_bytes, spec.elements)
        high = nearest(x)
        for name, part in (("high", high), ("again", high), ("low", nearest(x - high))):
            memory[name].store(r * spec.dst_row_bytes, part)
    return Case(spec, {name: buffer_of(x) for name, x in memory.items()}, {})


REFERENCES = {SplitSpec: Reference(split_case, rounds=True)}
