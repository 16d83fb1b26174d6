"""Weights that are packed once: a reorder into a new Memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.memory.storage import ALIGNMENT_BYTES, placed
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.calls import ArrayCall, calls, layout_of
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.runtime.addresses import address_reader


def pack(
    name: str,
    plain: AnyArray,
    key: tuple[Any, ...],
    wanted: Callable[[], MemoryDesc],
    engine: Engine | None,
    described: MemoryDesc | None = None,
) -> Memory:
    """`plain` in the format that `wanted` says, asked once a key; `described` is how it lies, if not as its array does,
    and dense.  Raises InvalidArguments."""
    call = packing_call(name, plain, key, wanted, engine, described)
    storage, address = aligned(call.target.size_bytes)
    run(call, plain, address)
    return placed(call.target, storage.view(call.target.dtype.numpy), address)


def pack_into(memory: Memory, name: str, plain: AnyArray, key: tuple[Any, ...], engine: Engine | None) -> None:
    """As `pack`, into memory that there is.  Raises InvalidArguments."""
    run(packing_call(name, plain, key, lambda: memory.desc, engine), plain, memory.address)


def packing_call(
    name: str,
    plain: AnyArray,
    key: tuple[Any, ...],
    wanted: Callable[[], MemoryDesc],
    engine: Engine | None,
    described: MemoryDesc | None = None,
) -> ArrayCall:
    """The reorder of `pack`, kept by its key."""
    call = calls.get(key)
    if call is None:
        target = wanted()
        source, is_copied = layout_of(name, plain)
        if described is not None:
            source, is_copied = described, not plain.flags.c_contiguous
        primitive = Primitive(primitive_desc(Reorder(source, target), engine=engine))
        call = ArrayCall(primitive, ("src", "dst"), (name, "packed"), (source, target), [0] * is_copied)
        calls.put(key, call)
    return call


def run(call: ArrayCall, plain: AnyArray, address: int) -> None:
    """Reorder an array to an address."""
    if call.copied:
        plain = allocated(np.ascontiguousarray, plain)
    call.run([*call.addresses_of((plain,)), address])


def aligned(size_bytes: int) -> tuple[npt.NDArray[np.uint8], int]:
    """New bytes that start at a multiple of 64, and their address; what they hold is chance."""
    raw = allocated(np.empty, size_bytes + ALIGNMENT_BYTES, np.uint8)
    (address,) = address_reader()((raw,))
    start = -address % ALIGNMENT_BYTES
    return raw[start : start + size_bytes], address + start
