"""Weights that are packed once: a reorder into a new Memory."""

from collections.abc import Callable
from typing import Any

from asmdnn.memory import Memory, MemoryDesc
from asmdnn.ops.arguments import Array
from asmdnn.ops.calls import ArrayCall, calls, layout_of
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder


def pack(
    name: str, plain: Array, key: tuple[Any, ...], wanted: Callable[[], MemoryDesc], engine: Engine | None
) -> Memory:
    """`plain` in the format that `wanted` says, asked once a key.  Raises InvalidArguments."""
    call = calls.get(key)
    if call is None:
        target = wanted()
        source, is_copied = layout_of(name, plain)
        primitive = Primitive(primitive_desc(Reorder(source, target), engine=engine))
        call = ArrayCall(primitive, ("src", "dst"), (name, "packed"), (source, target), [0] * is_copied)
        calls.put(key, call)
    packed = Memory.empty(call.target)
    call([plain], packed.array)
    return packed
