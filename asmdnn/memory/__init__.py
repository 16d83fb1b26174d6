"""Memory formats: what lies where (MemoryDesc, tags) and the storage itself (Memory)."""

from asmdnn.memory.desc import MemoryDesc
from asmdnn.memory.storage import Memory
from asmdnn.memory.tags import alias_of

__all__ = ["Memory", "MemoryDesc", "alias_of"]
