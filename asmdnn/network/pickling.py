"""Networks in other processes: what pickle writes of one, and makes of that again.

A native network of fixed dims is written as its pack: plan, kernels and packed weights.  Others are written as what
they were made of, the model with its arrays, and are planned again.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from asmdnn.forking import importing
from asmdnn.jit.image_file import map_image
from asmdnn.network.saved import saved
from asmdnn.primitives.engine import Engine

if TYPE_CHECKING:
    from asmdnn.network.network import Network

NAME = "in a pickle"
Pieces = tuple[Callable[..., Any], tuple[Any, ...]]


def pieces_of(net: "Network") -> Pieces:
    """What `__reduce__` returns.  Generates kernels and packs weights that do not exist yet."""
    if not net.is_open and net.is_native:
        with importing():
            from asmdnn.network.saving import image_of

        return from_image, (image_of(net.source), net.engine.threads)
    return from_origin, net.origin


def from_image(image: bytes, threads: int) -> "Network":
    """The network in a pack's bytes.  Raises InvalidArguments for those of another version, Unimplemented for a level
    that the CPU lacks."""
    with importing():
        from asmdnn.network.network import Network

    fd = os.memfd_create("asmdnn network")
    try:
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(image)
        found = saved(map_image(fd, NAME), NAME, threads)
    finally:
        os.close(fd)
    return Network(partial(Engine, isa=found.runnable.isa, threads=threads), found)  # type: ignore[arg-type]


def from_origin(*origin: Any) -> "Network":
    """The network that is made of the arguments of `network_of`."""
    with importing():
        from asmdnn.network.open import network_of

    return network_of(*origin)
