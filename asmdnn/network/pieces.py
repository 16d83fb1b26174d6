"""Where networks from files have their weights, and their kernels in memory."""

from collections.abc import Sequence
from weakref import WeakValueDictionary

from asmdnn.jit.image_file import Image
from asmdnn.jit.kernels import Fetched, LoadedKernel, mapped


class NetworkPieces:
    """Each network its own."""

    def weights(self, image: Image) -> memoryview:
        """Raises KeyError where there are none."""
        return image.sections["weights"]

    def kernels(self, fetched: Sequence[Fetched]) -> list[LoadedKernel]:
        """In executable memory, in this order."""
        return mapped(fetched)


EACH_ITS_OWN = NetworkPieces()


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
