"""Dropout of arrays."""

from operator import index
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import F32, AnyArray
from asmdnn.ops.moves import delivered, memory_of, run, target
from asmdnn.primitives.attributes.numbers import finite
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.dropout.dropout import Dropout
from asmdnn.types import u8

SEEDS = 2**31


def dropout(
    x: Any, probability: float = 0.5, *, seed: int, out: Any = None, engine: Engine | None = None
) -> tuple[AnyArray, AnyArray]:
    """(x / (1 - probability) where mask, else 0; mask), of an array: each element is zeroed with that probability.

    mask: uint8, 1 where an element stays.  seed: from -2^31 to 2^31 - 1; equal seeds give equal masks for arrays of as
    many elements.  out: for the result, x itself too.  Raises InvalidArguments.
    """
    memory = memory_of("x", x)
    p = finite("probability", probability)
    try:
        number = None if isinstance(seed, bool) else index(seed)
    except Exception:  # whatever the caller's object does
        number = None
    if number is None or not -SEEDS <= number < SEEDS:
        raise InvalidArguments(f"seed must be an integer from -2**31 to 2**31 - 1, not {shown(seed)}")
    result = target(memory.desc.dims, memory.desc, out)
    mask = Memory(MemoryDesc(memory.desc.dims, u8, LETTERS[: memory.desc.ndims]))
    numbers = {"probability": np.array([p], F32), "seed": np.array([number], np.int32)}
    sources = {"src": memory, "mask": mask} | {name: Memory.from_array(array) for name, array in numbers.items()}
    run(Dropout(memory.desc, result.desc, mask.desc), sources, result, engine)
    return delivered(result, out, x), mask.view()
