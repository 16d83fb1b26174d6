"""Where networks from files have their weights, and their kernels in memory."""

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from asmdnn.jit.image_file import Image
from asmdnn.jit.kernels import Fetched, LoadedKernel, mapped
from asmdnn.network.arrays import Array
from asmdnn.network.calls.weights import WeightPieces, checked_piece, in_one
from asmdnn.runtime.byte_sums import byte_sum


class NetworkPieces:
    """Each network its own."""

    def weights(self, image: Image, part: Mapping[str, Any]) -> WeightPieces:
        """Of a native part, by its text.  Raises KeyError where there are none, ValueError where they are damaged."""
        if not part.get("sum"):
            return in_one(checked_piece(octets(image.sections["weights"]), *part["weights"]).data)
        found = checked_piece(octets(image.apart), *part["apart"])
        proved(found.data.data, part["sum"])
        return in_one(found.data)

    def kernels(self, fetched: Sequence[Fetched]) -> list[LoadedKernel]:
        """In executable memory, in this order."""
        return mapped(fetched)


EACH_ITS_OWN = NetworkPieces()


def octets(data: memoryview) -> Array:
    """u8[bytes], read-only."""
    return np.frombuffer(data, np.uint8)


def proved(weights: memoryview, wanted: str) -> memoryview:
    """Weights that lie apart in an image, if they have this sum, in hexadecimal.  Raises ValueError."""
    if byte_sum(weights).hex() != wanted:
        raise ValueError("the weights are damaged: their sum does not hold")
    return weights


class SharedKernels(NetworkPieces):
    """Kernels of equal code are mapped once for several networks, as long as one of them has them."""

    def __init__(self) -> None:
        self._kernels: WeakValueDictionary[Fetched, LoadedKernel] = WeakValueDictionary()

    def kernels(self, fetched: Sequence[Fetched]) -> list[LoadedKernel]:
        own = dict.fromkeys(fetched)
        found = {kernel: loaded for kernel in own if (loaded := self._kernels.get(kernel))}
        new = [kernel for kernel in own if kernel not in found]
        for kernel, loaded in zip(new, mapped(new) if new else [], strict=True):
            found[kernel] = self._kernels.setdefault(kernel, loaded)
        return [found[kernel] for kernel in fetched]
