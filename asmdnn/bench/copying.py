"""The speed of copying as a measure: a call that reads and writes as many bytes as another one moves.

It is timed between the calls that it measures, so that it meets the same clock, and of their size, so that its data
live in the same level of cache.  The kernel is generated: rows of 8 KiB in whole vectors, streaming stores where the
copy is larger than the cache, on as many threads.  (A shuffle of an axis of one element is this copy.)
"""

from collections.abc import Callable

import asmdnn as dnn

FILL = 0x3C


def copy_call(moved_bytes: int, threads: int) -> Callable[[], object]:
    """A call that reads half of so many bytes and writes the other half."""
    desc = dnn.MemoryDesc((1, max(1, moved_bytes // 2)), dnn.u8, "ab")
    src, dst = dnn.Memory(desc), dnn.Memory(desc)
    src.array[:] = FILL  # pages that were never written are all the same one
    dst.array[:] = FILL
    pd = dnn.primitive_desc(dnn.Shuffle(desc, desc, axis=0, group_size=1), engine=dnn.Engine(threads=threads))
    return dnn.Primitive(pd).bind(src=src, dst=dst)
