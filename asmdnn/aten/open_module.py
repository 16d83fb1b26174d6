"""A torch module as networks, one for each shape of its inputs."""

import copy
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from asmdnn.aten.module import TorchNetwork, module_at, torch_or_refusal
from asmdnn.aten.options import CompileOptions
from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.network import Network

MOST_SHAPES: Final = 32  # the one that was not used for longest is dropped

Shapes = tuple[tuple[tuple[int, ...], str], ...]


class OpenTorchNetwork(TorchNetwork):
    """A module of torch as networks: call it with tensors of any shapes that the module takes.

    Where shapes come first, the module is traced again, which takes torch.export's time, and planned; MOST_SHAPES of
    them are kept.  Weights are those that the module had when this was made: it is copied.  Any thread may call it.
    `network` is that of the shapes that came last.
    """

    def __init__(self, module: Any, example_inputs: tuple[Any, ...], options: CompileOptions) -> None:
        self._module, self._options, self._lock = copy.deepcopy(module), options, threading.Lock()
        self._found: OrderedDict[Shapes, TorchNetwork] = OrderedDict()
        self.at(example_inputs)

    def __repr__(self) -> str:
        return f"<OpenTorchNetwork {type(self._module).__name__}: {len(self.shapes)} shapes>"

    @property
    def shapes(self) -> list[tuple[tuple[int, ...], ...]]:
        """Dims of the inputs that networks are kept for, the latest last."""
        with self._lock:
            return [tuple(dims for dims, _ in key) for key in self._found]

    @property
    def network(self) -> Network:
        """What runs for the shapes that came last, without torch."""
        with self._lock:
            return next(reversed(self._found.values())).network

    def __call__(self, *tensors: Any) -> Any:
        """The module's results, as it nests them.  Raises as `from_torch`."""
        return self.at(tensors)(*tensors)

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        """Results in a row, for tensors in a row.  Raises as `from_torch`."""
        return self.at(tensors).run(tensors)

    def at(self, tensors: Sequence[Any]) -> TorchNetwork:
        """The network for tensors of these shapes and types, traced if they are new."""
        torch = torch_or_refusal()
        if not isinstance(tensors, list | tuple):
            raise InvalidArguments(f"tensors must be a list of tensors, not {shown(tensors)}")
        for i, x in enumerate(tensors):
            if not isinstance(x, torch.Tensor):
                raise InvalidArguments(f"input {i} must be a torch.Tensor, not {shown(x)}")
        key = tuple((tuple(x.shape), str(x.dtype)) for x in tensors)
        with self._lock:
            if key not in self._found:
                self._found[key] = module_at(self._module, tuple(tensors), self._options, keeps=not self._found)
                if len(self._found) > MOST_SHAPES:
                    self._found.popitem(last=False)
            self._found.move_to_end(key)
            return self._found[key]
