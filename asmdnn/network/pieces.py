"""Where networks from files have their weights, and their kernels in memory."""

from collections.abc import Sequence
from weakref import WeakValueDictionary

from asmdnn.jit.image_file import Image
from asmdnn.jit.kernels import Fetched, LoadedKernel, mapped
from asmdnn.runtime.byte_sums import byte_sum


class NetworkPieces:
    """Each network its own."""

    def weights(self, image: Image) -> memoryview:
        """Raises KeyError where there are none, ValueError where they are damaged."""
        return proved(image, image.text["sum"]) if image.text.get("sum") else image.sections["weights"]

    def kernels(self, fetched: Sequence[Fetched]) -> list[LoadedKernel]:
        """In executable memory, in this order."""
        return mapped(fetched)


EACH_ITS_OWN = NetworkPieces()


def proved(image: Image, wanted: str) -> memoryview:
    """What lies apart in an image, if it has this sum, in hexadecimal.  Raises ValueError."""
    if byte_sum(image.apart).hex() != wanted:
        raise ValueError("the weights are damaged: their sum does not hold")
    return image.apart


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
