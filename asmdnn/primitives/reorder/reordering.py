"""`reorder(memory, format)` for callers who want the result and not the primitive; plans are kept."""

from asmdnn.errors import InvalidArguments
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_or_default
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder


def reorder(src: Memory, dst: MemoryDesc | Memory, engine: Engine | None = None) -> Memory:
    """`src` in the format of `dst`: written into `dst` if it is a Memory, else into a new one.

    Raises InvalidArguments if the dims differ, Unimplemented for formats that no kernel takes.
    """
    if not isinstance(src, Memory):
        raise InvalidArguments(f"src must be a Memory, not {type(src).__name__}")
    if not isinstance(dst, Memory | MemoryDesc):
        raise InvalidArguments(f"dst must be a Memory or a MemoryDesc, not {type(dst).__name__}")
    engine = engine_or_default(engine)
    target = dst if isinstance(dst, Memory) else Memory(dst)
    Primitive(primitive_desc(Reorder(src.desc, target.desc), engine=engine)).execute(src=src, dst=target)
    return target
