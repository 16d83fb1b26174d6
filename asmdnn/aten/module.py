"""A torch module as a network, by torch.export."""

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from asmdnn.aten.options import CompileOptions
from asmdnn.aten.traced_module import State, TracedModule
from asmdnn.aten.translation import check_tensor, is_narrow, narrowed, widened
from asmdnn.aten.whole_graph import NetworkOutput
from asmdnn.errors import InvalidArguments, Unimplemented, counted, shown
from asmdnn.network.network import Network


class TorchNetwork:
    """A module of torch as a network: call it with tensors as the module.

    Weights are those that the module had when it was translated, or what `load_state_dict` has brought since.
    `network` is the asmdnn.Network, whose inputs are "input 0", "input 1", ... and outputs "output 0", ...: `explain`,
    `check`, `save`, `profile` are its methods.  Tensors are read where they lie; results are new tensors.  No
    gradients.  Any thread may call it.

    traced: the module's graph; state: its parameters and buffers by name; options: how networks are compiled; holds:
    nobody writes to the tensors of the state; keeps: the network is kept in the cache on disk.
    """

    def __init__(
        self, traced: TracedModule, state: State, options: CompileOptions, *, holds: bool = False, keeps: bool = False
    ) -> None:
        self._traced, self._options = traced, options
        self._network, self._outputs = traced.network(state, options, holds=holds, keeps=keeps)
        self._inputs = list(self._network.inputs)

    @property
    def network(self) -> Network:
        """What runs, without torch."""
        return self._network

    def __repr__(self) -> str:
        return f"<TorchNetwork {self.network!r}>"

    def __call__(self, /, *tensors: Any, **named: Any) -> Any:
        """The module's results, as it nests them.  Raises InvalidArguments for tensors of other shapes or types."""
        check_in_a_row(named)
        return self._traced.rebuild(self.run(tensors))

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        """Results in a row, for tensors in a row.  Raises InvalidArguments, Unimplemented where torch is missing."""
        torch_or_refusal()
        if not isinstance(tensors, list | tuple):
            raise InvalidArguments(f"tensors must be a list of tensors, not {shown(tensors)}")
        if len(tensors) != len(self._inputs):
            raise InvalidArguments(f"the network takes {counted(len(self._inputs), 'tensor')}, not {len(tensors)}")
        narrow = self._traced.narrow
        feeds = {name: array_of(name, x, narrow) for name, x in zip(self._inputs, tensors, strict=True)}
        return tensors_of(self._outputs, self._network.run(feeds))

    def load_state_dict(self, state: State) -> None:
        """Go on with these parameters and buffers: tensors by the names of the module's `state_dict()`, all of them.

        Results are those that `from_torch` of the module with this state gives, bit by bit.  The module is not traced
        again, but the network is planned again, and `network` is another one.  Calls of other threads have the weights
        before or those behind it.  Raises InvalidArguments for missing and unexpected names and other dims and types,
        and changes nothing then.
        """
        torch_or_refusal()
        self._network, _ = self._traced.network(self._traced.copied(state), self._options, holds=True)


def check_in_a_row(named: Mapping[str, Any]) -> None:
    """Raise InvalidArguments for tensors with names, which a traced module has not."""
    if named:
        raise InvalidArguments(f"the network takes tensors in a row, not by name ({', '.join(named)}): leave out names")


def tensors_of(outputs: Sequence[Any], found: Mapping[str, Any]) -> list[Any]:
    """A tensor for each output, in its place among constants."""
    return [tensor_of(x, found[x.name]) if isinstance(x, NetworkOutput) else x for x in outputs]


def tensor_of(output: NetworkOutput, array: Any) -> Any:
    import torch

    tensor = torch.from_numpy(np.asarray(array, order="C"))
    return narrowed(tensor) if output.is_narrow else tensor


def array_of(name: str, tensor: Any, narrow: Collection[str] = ()) -> "np.ndarray[Any, Any]":
    """The elements of a tensor, without a copy if they are dense.  narrow: inputs that are bf16, of which f32 is made.
    Raises InvalidArguments."""
    check_tensor(name, tensor)
    if is_narrow(tensor) != (name in narrow):
        raise InvalidArguments(f"{name} is {tensor.dtype}, it must {'' if name in narrow else 'not '}be torch.bfloat16")
    found: np.ndarray[Any, Any] = widened(tensor.detach().contiguous()).numpy()
    return found


def torch_or_refusal() -> Any:
    """The package; Unimplemented says how to get it."""
    if find_spec("torch") is None:
        raise Unimplemented("from_torch needs torch: pip install torch")
    import torch

    return torch
