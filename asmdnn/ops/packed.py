"""Weights that are packed once: a reorder into a new Memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.storage import ALIGNMENT_BYTES, placed
from asmdnn.ops.arguments import F32, Array
from asmdnn.ops.calls import ArrayCall, address_reader, calls, layout_of
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder


def pack(
    name: str,
    plain: Array,
    key: tuple[Any, ...],
    wanted: Callable[[], MemoryDesc],
    engine: Engine | None,
    described: MemoryDesc | None = None,
) -> Memory:
    """`plain` in the format that `wanted` says, asked once a key; `described` is how it lies, if not as its array does,
    and dense.  Raises InvalidArguments."""
    call = calls.get(key)
    if call is None:
        target = wanted()
        source, is_copied = layout_of(name, plain)
        if described is not None:
            source, is_copied = described, not plain.flags.c_contiguous
        primitive = Primitive(primitive_desc(Reorder(source, target), engine=engine))
        call = ArrayCall(primitive, ("src", "dst"), (name, "packed"), (source, target), [0] * is_copied)
        calls.put(key, call)
    if call.copied:
        plain = np.ascontiguousarray(plain)
    storage, address = aligned(call.target.size_bytes)
    call.run([*call.addresses_of((plain,)), address])
    return placed(call.target, storage.view(F32), address)


def aligned(size_bytes: int) -> tuple[npt.NDArray[np.uint8], int]:
    """New bytes that start at a multiple of 64, and their address; what they hold is chance."""
    raw = np.empty(size_bytes + ALIGNMENT_BYTES, np.uint8)
    (address,) = address_reader()((raw,))
    start = -address % ALIGNMENT_BYTES
    return raw[start : start + size_bytes], address + start
