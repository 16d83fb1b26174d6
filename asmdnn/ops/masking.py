"""What is random of arrays: dropout, and rounding."""

from operator import index
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.ops.applied import Descs, SameDims, compute
from asmdnn.ops.arguments import F32, AnyArray, AnyDataType, as_f32
from asmdnn.ops.moving import array_of, moved
from asmdnn.ops.typed import result_type
from asmdnn.primitives.attributes.numbers import finite
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.dropout.dropout import Dropout, check_probability
from asmdnn.primitives.stochastic_rounding.stochastic_rounding import StochasticRounding
from asmdnn.types import f32

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
    array, p, number = array_of("x", x), finite("probability", probability), checked_seed(seed)
    check_probability(p)
    mask = allocated(np.empty, array.shape, np.uint8)
    given = {"src": ("x", array), "mask": ("mask", mask)}
    given |= {"probability": ("probability", np.array([p], F32)), "seed": ("seed", np.array([number], np.int32))}
    return moved(("dropout",), given, dropout_of, array.shape, out, engine), mask


def dropout_of(descs: Descs, dst: MemoryDesc) -> Dropout:
    return Dropout(descs["src"], dst, descs["mask"])


def stochastic_rounding(x: Any, dtype: AnyDataType, *, seed: int, engine: Engine | None = None) -> AnyArray:
    """Numbers of another type: each of x becomes one of its two neighbours there at random, the nearer the likelier, so
    that the mean is x.

    x: float32.  dtype: bf16, f16, f8_e5m2, f8_e4m3, s8 or u8.  seed: as of `dropout`; equal seeds give equal results
    for arrays of as many elements.  Raises InvalidArguments.
    """
    array, number, kind = array_of("x", as_f32("x", x)), checked_seed(seed), result_type(dtype, None, f32)
    given = {"src": ("x", array), "seed": ("seed", np.array([number], np.int32))}
    return compute(("stochastic_rounding",), given, rounding_of, SameDims("src"), ((), None, engine, kind))


def rounding_of(descs: Descs, dst: MemoryDesc) -> StochasticRounding:
    return StochasticRounding(descs["src"], dst)
