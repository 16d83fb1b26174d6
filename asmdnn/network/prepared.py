"""Shapes of an open network that were prepared, with their kernels: those stay when schedules are dropped."""

from asmdnn.errors import counted
from asmdnn.jit.kernels import LoadedKernel
from asmdnn.network.held import Key
from asmdnn.network.network import Network


class PreparedShapes:
    """keys: of the shapes.  A kernel is unmapped when nobody has it any more, so this has each of them once."""

    def __init__(self) -> None:
        self.keys = set[Key]()
        self._kernels = set[LoadedKernel]()

    def add(self, key: Key, network: Network) -> None:
        """A network that is ready to run."""
        self.keys.add(key)
        for part in network._runnable.natives:
            self._kernels.update(part.runner.program.kernels)

    def lines(self) -> list[str]:
        """How large the set of kernels is, for `explain`."""
        if not self.keys:
            return []
        kib = sum(kernel.size for kernel in list(self._kernels)) / 1024
        shapes, kernels = counted(len(self.keys), "shape"), counted(len(self._kernels), "kernel")
        return [f"  prepared for {shapes}, which need no other than these {kernels}: {kib:.0f} KiB of code"]
