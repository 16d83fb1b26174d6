"""What indices may be, checked before a call that goes by them."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory

NO_AXIS = 64  # in the place of one: no tensor has so many


class ByIndex(Protocol):
    """What has indices: a gather, a scatter."""

    @property
    def limit(self) -> int: ...
    @property
    def axis(self) -> int: ...


def check_memories(desc: ByIndex, memories: Mapping[str, Memory]) -> None:
    """Raise InvalidArguments, which names the first wrong one, unless all indices are in range.

    Two passes of numpy's, 3 us for few indices.  The kernel bounds each number again, so that indices which another
    thread changes meanwhile may give wrong rows, never a stray access.
    """
    memory = memories["indices"]
    plain = memory.desc.ndims and not memory.desc.inner_blocks
    check_indices("indices", memory.view() if plain else memory.numpy(), desc.limit, desc.axis)


def check_indices(name: str, indices: npt.NDArray[Any], limit: int, axis: int) -> None:
    """Raise InvalidArguments unless all are from -limit to limit - 1, which NaN of a kernel is not.

    axis: NO_AXIS if they choose nothing.
    """
    if not indices.size or (np.minimum.reduce(indices, None) >= -limit and np.maximum.reduce(indices, None) < limit):
        return
    place = np.argwhere(~((indices >= -limit) & (indices < limit)))[0].tolist()
    value = indices[tuple(place)]
    found = int(value) if np.isfinite(value) else value
    bits = f"which is read as an integer of {limit.bit_length()} bits"
    reason = f"axis {axis} of src has {limit}" if axis != NO_AXIS else bits
    raise InvalidArguments(f"{name}{place} is {found}, {reason}: use {-limit} to {limit - 1}")
