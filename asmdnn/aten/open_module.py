"""A torch module as networks, one for each shape of its inputs."""

import copy
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from asmdnn.aten.module import TorchNetwork, check_in_a_row, torch_or_refusal
from asmdnn.aten.options import CompileOptions
from asmdnn.aten.traced_module import State, TracedModule, traced
from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.network import Network

MOST_SHAPES: Final = 32  # the one that was not used for longest is dropped

Shapes = tuple[tuple[tuple[int, ...], str], ...]


class OpenTorchNetwork(TorchNetwork):
    """A module of torch as networks: call it with tensors of any shapes that the module takes.

    Where shapes come first, the module is traced again, which takes torch.export's time, and planned; MOST_SHAPES of
    them are kept.  Weights are those that the module had when this was made, as it is copied, or what `load_state_dict`
    has brought since: then shapes are planned again when they come, and not traced.  Any thread may call it.  `network`
    is that of the shapes that came last.
    """

    def __init__(self, module: Any, example_inputs: tuple[Any, ...], options: CompileOptions) -> None:
        self._module, self._options, self._lock = copy.deepcopy(module), options, threading.Lock()
        self._graphs: OrderedDict[Shapes, TracedModule] = OrderedDict()
        self._found: dict[Shapes, TorchNetwork] = {}  # with the state as it is now; of the latest shapes always
        self._state: State = {}  # the copy's own tensors
        self.at(example_inputs)

    def __repr__(self) -> str:
        return f"<OpenTorchNetwork {type(self._module).__name__}: {len(self.shapes)} shapes>"

    @property
    def shapes(self) -> list[tuple[tuple[int, ...], ...]]:
        """Dims of the inputs that networks are kept for, the latest last."""
        with self._lock:
            return [tuple(dims for dims, _ in key) for key in self._graphs]

    @property
    def network(self) -> Network:
        """What runs for the shapes that came last, without torch."""
        with self._lock:
            return self._found[next(reversed(self._graphs))].network

    def __call__(self, /, *tensors: Any, **named: Any) -> Any:
        """The module's results, as it nests them.  Raises as `from_torch`."""
        check_in_a_row(named)
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
                is_first, graph = not self._graphs, self._graphs.get(key)
                if graph is None:
                    graph, self._state = traced(self._module, tuple(tensors))
                self._found[key] = TorchNetwork(graph, self._state, self._options, holds=True, keeps=is_first)
                self._graphs[key] = graph
                if len(self._graphs) > MOST_SHAPES:
                    self._found.pop(self._graphs.popitem(last=False)[0], None)
            self._graphs.move_to_end(key)
            return self._found[key]

    def load_state_dict(self, state: State) -> None:
        """As that of TorchNetwork, for all shapes: the latest are planned now, others when they come again."""
        torch_or_refusal()
        with self._lock:
            key, graph = next(reversed(self._graphs.items()))
            own = graph.copied(state)
            self._found = {key: TorchNetwork(graph, own, self._options, holds=True)}
            for name, tensor in self._state.items():
                tensor.data = own[name]  # planned networks have the elements before
