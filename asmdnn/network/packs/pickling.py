"""Networks in other processes: what pickle writes of a native one of fixed dims, which is its pack.

Others are written as what they were made of, the model with its arrays, and are planned again.
"""

import os

from asmdnn.errors import InvalidArguments, shown
from asmdnn.jit.image_file import map_image
from asmdnn.network.packs.saved import PackedNetwork, saved
from asmdnn.runtime.threads import check_thread_count

NAME = "in a pickle"


def found_in(image: bytes, threads: int) -> PackedNetwork:
    """The network in a pack's bytes, mapped from memory.  Raises InvalidArguments for those of another version,
    Unimplemented for a level that the CPU lacks."""
    if not isinstance(image, bytes | bytearray):
        raise InvalidArguments(f"image must be the bytes of a network's pack, not {shown(image)}")
    check_thread_count(threads)
    fd = os.memfd_create("asmdnn network")
    try:
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(image)
        return saved(map_image(fd, NAME), NAME, threads)
    finally:
        os.close(fd)
