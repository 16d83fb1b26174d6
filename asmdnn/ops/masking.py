"""What is random of arrays: dropout, and rounding."""

from operator import index
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.ops.arguments import F32, AnyArray, AnyDataType, as_f32
from asmdnn.ops.moves import delivered, memory_of, run, target
from asmdnn.ops.typed import numpy_type, result_type
from asmdnn.primitives.attributes.numbers import finite
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.dropout.dropout import Dropout
from asmdnn.primitives.stochastic_rounding.stochastic_rounding import StochasticRounding
from asmdnn.types import f32, u8

SEEDS = 2**31


def checked_seed(seed: Any) -> int:
    """As an integer.  Raises InvalidArguments."""
    try:
        number = None if isinstance(seed, bool) else index(seed)
    except Exception:  # whatever the caller's object does
        number = None
    if number is None or not -SEEDS <= number < SEEDS:
        raise InvalidArguments(f"seed must be an integer from -2**31 to 2**31 - 1, not {shown(seed)}")
    return number


def dropout(
    x: Any, probability: float = 0.5, *, seed: int, out: Any = None, engine: Engine | None = None
) -> tuple[AnyArray, AnyArray]:
    """(x / (1 - probability) where mask, else 0; mask), of an array: each element is zeroed with that probability.

    mask: uint8, 1 where an element stays.  seed: from -2^31 to 2^31 - 1; equal seeds give equal masks for arrays of as
    many elements.  out: for the result, x itself too.  Raises InvalidArguments.
    """
    memory = memory_of("x", x)
    p, number = finite("probability", probability), checked_seed(seed)
    result = target(memory.desc.dims, memory.desc, out)
    mask = Memory(MemoryDesc(memory.desc.dims, u8, LETTERS[: memory.desc.ndims]))
    numbers = {"probability": np.array([p], F32), "seed": np.array([number], np.int32)}
    sources = {"src": memory, "mask": mask} | {name: Memory.from_array(array) for name, array in numbers.items()}
    run(Dropout(memory.desc, result.desc, mask.desc), sources, result, engine)
    return delivered(result, out, x), mask.view()


def stochastic_rounding(x: Any, dtype: AnyDataType, *, seed: int, engine: Engine | None = None) -> AnyArray:
    """Numbers of another type: each of x becomes one of its two neighbours there at random, the nearer the likelier, so
    that the mean is x.

    x: float32.  dtype: bf16, f16, f8_e5m2, f8_e4m3, s8 or u8.  seed: as of `dropout`; equal seeds give equal results
    for arrays of as many elements.  Raises InvalidArguments.
    """
    source, number, kind = memory_of("x", as_f32("x", x)), checked_seed(seed), result_type(dtype, None, f32)
    result = Memory(MemoryDesc(source.desc.dims, kind, LETTERS[: source.desc.ndims]))
    desc = StochasticRounding(source.desc, result.desc)
    run(desc, {"src": source, "seed": Memory.from_array(np.array([number], np.int32))}, result, engine)
    return result.view().view(numpy_type(kind, ()))
