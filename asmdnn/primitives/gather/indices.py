"""Tensors of what goes by indices, and what indices may be, checked before a call."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.primitives.concat.concat import axis_of
from asmdnn.primitives.shapes.tensors import check_descs
from asmdnn.primitives.shapes.windows import MAX_SIZE
from asmdnn.types import s32

UNSIGNED = {np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


class ByIndex(Protocol):
    """What has indices: a gather, a scatter."""

    @property
    def src(self) -> MemoryDesc: ...
    @property
    def indices(self) -> MemoryDesc: ...
    @property
    def limit(self) -> int: ...
    @property
    def axis(self) -> int: ...


def settle(desc: ByIndex, kind: str, tensors: tuple[str, ...], parts: str) -> None:
    """Check the tensors, of which `parts` has what indices choose, and count the axis from the front.

    Raises InvalidArguments.
    """
    check_descs(desc, *tensors)
    src, indices = desc.src, desc.indices
    if indices.dtype != s32:
        raise InvalidArguments(f"indices are {indices.dtype}, they must be s32")
    for name, tensor in ((name, getattr(desc, name)) for name in tensors):
        if tensor.is_any and name != "dst":
            raise InvalidArguments(f"{name} has the format any, a {kind} needs a real one")
        if tensor.dtype != src.dtype and name != "indices":
            raise InvalidArguments(f"{name} is {tensor.dtype}, it must have the type of src, {src.dtype}")
    object.__setattr__(desc, "axis", axis_of(desc.axis, src.ndims))
    wanted = (*src.dims[: desc.axis], *indices.dims, *src.dims[desc.axis + 1 :])
    found = getattr(desc, parts).dims
    if found != wanted:
        raise InvalidArguments(f"{parts} has dims {found}, those of src and indices make it {wanted}")
    if desc.limit > MAX_SIZE:
        reason = f"indices of 32 bits choose from {MAX_SIZE} at most: take a part of it"
        raise InvalidArguments(f"axis {desc.axis} of src has {desc.limit} elements, {reason}")
    if not desc.limit and indices.nelems():
        raise InvalidArguments(f"axis {desc.axis} of src has no elements, indices must have none either")


def limits(desc: ByIndex) -> dict[str, int]:
    """Of the integers of a call, by tensor."""
    return {"indices": desc.limit}


def check_memories(desc: ByIndex, memories: Mapping[str, Memory]) -> None:
    """Raise InvalidArguments, which names the first wrong one, unless all indices are in range.

    Two passes of numpy's, 3 us for few indices.  The kernel bounds each number again, so that indices which another
    thread changes meanwhile may give wrong rows, never a stray access.
    """
    memory = memories["indices"]
    plain = memory.desc.ndims and not memory.desc.inner_blocks
    check_indices("indices", memory.view() if plain else memory.numpy(), desc.limit, desc.axis)


def check_indices(
    name: str, indices: npt.NDArray[Any], limit: int, axis: int, least: int | None = None, ignored: int | None = None
) -> None:
    """Raise InvalidArguments unless all are from `least`, or else -limit, to limit - 1, which NaN of a kernel is not.

    axis: below 0 if they choose nothing; ignored: what they may be besides.
    """
    least = -limit if least is None else least
    if not indices.size:
        return
    unsigned = None if least else UNSIGNED.get(indices.dtype)
    if unsigned is not None:  # one pass: what is below 0 is more than any limit there
        if np.maximum.reduce(indices.view(unsigned), None) < limit:
            return
    elif np.minimum.reduce(indices, None) >= least and np.maximum.reduce(indices, None) < limit:
        return
    is_wrong = ~((indices >= least) & (indices < limit))
    if ignored is not None:
        is_wrong &= indices != ignored
        if not is_wrong.any():
            return
    place = np.argwhere(is_wrong)[0].tolist()
    value = indices[tuple(place)]
    found = int(value) if np.isfinite(value) else value
    bits = f"which is read as an integer of {limit.bit_length()} bits"
    reason = f"axis {axis} of src has {limit}" if axis >= 0 else bits
    besides = "" if ignored is None else f", or {ignored}, which is ignored"
    known = f"use {least} to {limit - 1}{besides}" if limit else "there is nothing to choose"
    raise InvalidArguments(f"{name}{place} is {found}, {reason}: {known}")
