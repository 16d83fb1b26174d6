"""Integers of 32 bits that become f32 on their way to integers: refused beyond 2^24, where f32 has not all of them."""

from collections.abc import Iterable

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.ops.arguments import AnyArray

WORD = np.dtype(np.int32)
EXACT = 1 << 24


def are_words(given: Iterable[tuple[str, AnyArray]]) -> bool:
    """Whether any of some labelled arrays is of s32."""
    return any(array.dtype == WORD for _, array in given)


def check_words(given: Iterable[tuple[str, AnyArray]], way_out: str) -> None:
    """Raise InvalidArguments for a number of s32 that f32 may not have."""
    for label, array in given:
        if array.dtype != WORD or not array.size:
            continue
        for number in (int(array.max()), int(array.min())):
            if abs(number) > EXACT:
                message = f"{label} holds {number}, and s32 is computed as f32, which is exact from -2^24 to 2^24"
                raise InvalidArguments(f"{message}: {way_out}")
