"""Parts of a torch graph as networks, where torch calls them."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final

from asmdnn.aten.module import array_of, tensors_of
from asmdnn.aten.options import CompileOptions
from asmdnn.aten.translation import name_of
from asmdnn.aten.whole_graph import narrow_inputs, translated
from asmdnn.errors import InvalidArguments
from asmdnn.network.network import Network

LEAST_NODES: Final = 3  # of a part that is worth a call of its own, unless one of its nodes is
HEAVY: Final = (
    "conv", "linear", "matmul", "mm", "bmm", "addmm", "lstm", "gru", "scaled_dot_product_attention", "_transformer",
    "_native_multi_head",
)  # fmt: skip


def worth(partition: Any) -> bool:
    """Whether a part computes enough; one product or convolution is enough."""
    names = [name_of(node.target) for node in partition.nodes]
    return len(names) >= LEAST_NODES or any(name.startswith(HEAVY) for name in names)


class TorchPart:
    """A network in the place of some nodes.

    Networks hold integers of 24 bits, and look-ups within range: torch computes others, or raises its error.
    """

    def __init__(
        self, part: Any, names: Mapping[str, str], bound: dict[str, Any], options: CompileOptions, keeps: bool
    ) -> None:
        """part: a graph module; names: what its placeholders are called in `bound`, tensors that are data."""
        inside = [node for node in part.graph.nodes if node.op == "placeholder"]
        data = {name: bound[outside] for name, outside in names.items() if outside in bound}
        self._part = part
        self._passed = [i for i, node in enumerate(inside) if node.name not in data]
        self.network, self._outputs, self._is_single = translated_part(part, data, options, keeps)
        self._names, self._narrow = list(self.network.inputs), narrow_inputs(part.graph, data)

    def __call__(self, *arguments: Any) -> Any:
        given = [arguments[i] for i in self._passed]
        try:
            feeds = {name: array_of(name, x, self._narrow) for name, x in zip(self._names, given, strict=True)}
            found = self.network.run(feeds)
        except InvalidArguments:
            return self._part(*arguments)
        results = tensors_of(self._outputs, found)
        return results[0] if self._is_single else tuple(results)


def as_module(part: TorchPart) -> Any:
    return _module_type()(part)


@cache
def _module_type() -> Any:
    import torch

    class NativeModule(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        """A TorchPart where torch wants a module."""

        def __init__(self, part: TorchPart) -> None:
            super().__init__()
            self.part = part

        def forward(self, *arguments: Any) -> Any:
            return self.part(*arguments)

    return NativeModule


def inside_names(part: Any, call: Any) -> dict[str, str]:
    """The placeholders of a submodule that get placeholders or attributes of the graph that calls it, and these."""
    inside = [node for node in part.graph.nodes if node.op == "placeholder"]
    pairs = zip(inside, call.args, strict=True)
    return {node.name: outside.name for node, outside in pairs if outside.op in ("placeholder", "get_attr")}


def is_whole(graph: Any, nodes: Collection[Any], bound: Collection[str]) -> bool:
    """Whether nodes are all that a graph computes, of all inputs; then nothing has to be cut out."""
    (end,) = (node for node in graph.nodes if node.op == "output")
    made = all(not hasattr(x, "op") or x.op == "call_function" for x in end.args[0])
    calls = all(node in nodes for node in graph.nodes if node.op == "call_function")
    given = (node for node in graph.nodes if node.op == "placeholder" and node.name not in bound)
    return made and calls and all(node.users for node in given)


def translated_part(
    part: Any, data: dict[str, Any], options: CompileOptions, keeps: bool
) -> tuple[Network, list[Any], bool]:
    """Of a submodule: the network, its outputs, and whether there is one that stands alone."""
    (end,) = (node for node in part.graph.nodes if node.op == "output")
    network, outputs = translated("graph", part.graph, data, options, holds=True, keeps=keeps)
    return network, outputs, not isinstance(end.args[0], list | tuple)
