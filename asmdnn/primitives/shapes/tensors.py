"""Checks of tensors and axes that descriptions and planners of several kinds make."""

from collections.abc import Mapping, Sequence

import numpy as np

from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.memory import MemoryDesc
from asmdnn.planning.refusal import Refused
from asmdnn.types import f32


def check_tensor(name: str, desc: object, dims: tuple[int, ...] | None = None) -> None:
    """Raise InvalidArguments unless it is a descriptor, of these dims."""
    if not isinstance(desc, MemoryDesc):
        raise InvalidArguments(f"{name} must be a MemoryDesc, not {shown(desc)}")
    if dims is not None and desc.dims != dims:
        raise InvalidArguments(f"{name} has dims {desc.dims}, they must be {dims}")


def check_descs(
    description: object, *names: str, optional: tuple[str, ...] = (), dims: tuple[int, ...] | None = None
) -> None:
    """Raise InvalidArguments unless these fields are descriptors, of these dims; the optional ones may be None."""
    for name in (*names, *optional):
        if name in names or getattr(description, name) is not None:
            check_tensor(name, getattr(description, name), dims)


def checked_axis(axis: int, src: MemoryDesc) -> int:
    """From 0 on.  Raises InvalidArguments for an axis that src does not have."""
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise InvalidArguments(f"axis must be an integer, not {shown(axis)}")
    if not -src.ndims <= axis < src.ndims:
        raise InvalidArguments(
            f"axis is {shown(axis)}, src has {counted(src.ndims, 'dim')}: use {-src.ndims} to {src.ndims - 1}"
        )
    return int(axis) % src.ndims


def refuse_overlap(**results: MemoryDesc) -> None:
    """Raise Refused where elements of a result share memory."""
    for name, tensor in results.items():
        if tensor.may_overlap:
            raise Refused(f"elements of {name} overlap")


def check_tensors(tensors: Mapping[str, MemoryDesc], dst: str, types: Sequence[str] = (f32.name,)) -> None:
    """Raise Refused unless these tensors have one of the types and can be addressed."""
    for name, desc in tensors.items():
        if desc.dtype.name not in types:
            raise Refused(f"{name} is {desc.dtype}, only {', '.join(types)} is implemented")
    refuse_overlap(**{dst: tensors[dst]})
