"""A torch module as a network, by torch.export."""

import operator
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import numpy as np

from asmdnn.aten.constants import constant_nodes, fold
from asmdnn.aten.kept import network_of
from asmdnn.aten.options import CompileOptions
from asmdnn.aten.translation import Translation, is_narrow, is_supported, name_of, narrowed, rules, widened
from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.network import Network

MARKS: Final = ("dynamic", "weak_dynamic", "unbacked", "strict_unbacked")  # of dims, which Dynamo keeps in tensors
MOST_ROUNDS: Final = 4  # of definitions in operators that have definitions
CHECKS: Final = ("_assert_tensor_metadata.default",)  # of what shapes and types say already


class NetworkOutput(NamedTuple):
    """An output by its name, and whether torch has it in bf16."""

    name: str
    is_narrow: bool


class TorchNetwork:
    """A module of torch as a network: call it with tensors as the module.

    Weights are those that the module had when it was translated.  `network` is the asmdnn.Network, whose inputs are
    "input 0", "input 1", ... and outputs "output 0", ...: `explain`, `check`, `save`, `profile` are its methods.
    Tensors are read where they lie; results are new tensors.  No gradients.
    narrow: names of inputs that are bf16.
    """

    def __init__(self, network: Network, outputs: Sequence[Any], rebuild: Any, narrow: Collection[str] = ()) -> None:
        self._network, self._narrow = network, narrow
        self._inputs = list(network.inputs.items())
        self._outputs, self._rebuild = outputs, rebuild

    @property
    def network(self) -> Network:
        """What runs, without torch."""
        return self._network

    def __repr__(self) -> str:
        return f"<TorchNetwork {self.network!r}>"

    def __call__(self, *tensors: Any) -> Any:
        """The module's results, as it nests them.  Raises InvalidArguments for tensors of other shapes or types."""
        return self._rebuild(self.run(tensors))

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        """Results in a row, for tensors in a row.  Raises InvalidArguments, Unimplemented where torch is missing."""
        torch_or_refusal()
        if not isinstance(tensors, list | tuple):
            raise InvalidArguments(f"tensors must be a list of tensors, not {shown(tensors)}")
        if len(tensors) != len(self._inputs):
            raise InvalidArguments(f"the network takes {len(self._inputs)} tensors, not {len(tensors)}")
        feeds = {name: array_of(name, x, self._narrow) for (name, _), x in zip(self._inputs, tensors, strict=True)}
        found = self.network.run(feeds)
        return tensors_of(self._outputs, found)


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
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise InvalidArguments(f"{name} must be a torch.Tensor, not {shown(tensor)}")
    if tensor.device.type != "cpu":
        raise InvalidArguments(f"{name} is on {tensor.device}: move it to the CPU")
    if is_narrow(tensor) != (name in narrow):
        raise InvalidArguments(f"{name} is {tensor.dtype}, it must {'' if name in narrow else 'not '}be torch.bfloat16")
    found: np.ndarray[Any, Any] = widened(tensor.detach().contiguous()).numpy()
    return found


def module_at(
    module: Any, example_inputs: tuple[Any, ...], options: CompileOptions, keeps: bool = True
) -> TorchNetwork:
    """The network for inputs of these shapes.  keeps: in the cache on disk.  Raises Unimplemented."""
    exported = export_of(module, example_inputs)
    signature, bound = exported.graph_signature, own_of(exported)
    changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if changed:
        raise Unimplemented(f"the module writes to {', '.join(changed)}, which a network does not")
    graph_module = exported.graph_module
    bound |= fold(graph_module, bound)
    graph = graph_module.graph
    network, outputs = translated(type(module).__name__, graph, bound, options, keeps=keeps)
    from torch.utils import _pytree as pytree

    spec = exported.call_spec.out_spec
    return TorchNetwork(
        network, outputs, lambda results: pytree.tree_unflatten(results, spec), narrow_inputs(graph, bound)
    )


def torch_or_refusal() -> Any:
    """The package; Unimplemented says how to get it."""
    if find_spec("torch") is None:
        raise Unimplemented("from_torch needs torch: pip install torch")
    import torch

    return torch


def export_of(module: Any, example_inputs: tuple[Any, ...], in_parts: bool = True, weights: Sequence[int] = ()) -> Any:
    """torch's graph of ATen operators, without writes in place, layers kept whole.  Raises Unimplemented.

    Operators without a translation are what torch makes them of; without in_parts only if that leaves none of them.
    weights: which inputs are data.
    """
    import torch

    with torch.no_grad():
        try:
            given = tuple(map(unmarked, example_inputs))
            exported = torch.export.export(module, given, strict=False).run_decompositions({})
            made = decomposed(exported, weights)
            exported = made if in_parts or not unknown_in(made, weights) else exported
        except Exception as error:  # of many classes, none of them public
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise Unimplemented(f"torch.export cannot trace the module: {reason}") from error
    for node in list(exported.graph.nodes):
        if name_of(node.target) in CHECKS and not node.users:
            exported.graph.erase_node(node)
    return exported


def unmarked(x: Any) -> Any:
    """A tensor without what `torch._dynamo.mark_dynamic` says of its dims: torch.export would refuse fixed ones."""
    is_marked = any(hasattr(x, f"_dynamo_{how}_indices") for how in MARKS)
    return x.detach() if is_marked else x


def decomposed(exported: Any, weights: Sequence[int] = ()) -> Any:
    """With torch's own definitions of the operators that have no translation, as far as there are some."""
    import torch

    for _ in range(MOST_ROUNDS):
        unknown = unknown_in(exported, weights)
        known = torch.export.default_decompositions() if unknown else {}
        table = {target: known[target] for target in unknown if target in known}
        if not table:
            break
        exported = exported.run_decompositions(table)
    return exported


def own_of(exported: Any) -> dict[str, Any]:
    """Parameters, buffers and constants of a traced module, by the names of their placeholders."""
    data = {**exported.state_dict, **exported.constants}
    signature = exported.graph_signature
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    names |= signature.inputs_to_lifted_tensor_constants
    return {name: data[target] for name, target in names.items() if target in data}


def unknown_in(exported: Any, weights: Sequence[int] = ()) -> set[Any]:
    """Operators that no rule translates, but for those of constants."""
    graph = exported.graph
    bound = own_of(exported)
    given = [node.name for node in graph.nodes if node.op == "placeholder" and node.name not in bound]
    constant = set(constant_nodes(graph, [*bound, *(given[i] for i in weights)]))
    calls = (node.target for node in graph.nodes if node.op == "call_function" and node not in constant)
    return {target for target in calls if target is not operator.getitem and name_of(target) not in rules()}


def translated(
    name: str,
    graph: Any,
    bound: Mapping[str, Any],
    options: CompileOptions,
    *,
    holds: bool = False,
    keeps: bool = False,
) -> "tuple[Network, list[Any]]":
    """The network of a torch graph, and for each result a NetworkOutput, or the constant that it is.

    bound: placeholders and attributes that are data; holds: nobody writes to them before the network has run; keeps: it
    is taken from the cache on disk, or kept there.  Raises Unimplemented with all nodes that have no translation.
    """
    import torch

    refuse_unknown(graph)
    translation = Translation(name)
    inputs = 0
    outputs: list[Any] = []
    for node in graph.nodes:
        if node.name in bound and node.op in ("placeholder", "get_attr"):
            translation.add_constant(node, bound[node.name])
        elif node.op == "placeholder":
            translation.add_input(node, f"input {inputs}")
            inputs += 1
        elif node.op == "call_function":
            translation.add(node)
        elif node.op == "output":
            outputs = list(node.args[0]) if isinstance(node.args[0], list | tuple) else [node.args[0]]
        else:
            raise Unimplemented(f"{node.op} {node.target} has no translation")
    named: dict[str, Any] = {}
    result: list[Any] = []
    for part in outputs:
        if isinstance(part, torch.fx.Node):
            key = f"output {len(named)}"
            named[key] = translation.symbol(part)
            part = NetworkOutput(key, is_narrow(part.meta["val"]))
        result.append(part)
    return network_of(translation.graph, named, options, holds=holds, keeps=keeps), result


def narrow_inputs(graph: Any, bound: Collection[str]) -> list[str]:
    """The names of inputs that torch has in bf16."""
    given = [node for node in graph.nodes if node.op == "placeholder" and node.name not in bound]
    return [f"input {i}" for i, node in enumerate(given) if is_narrow(node.meta["val"])]


def refuse_unknown(graph: Any) -> None:
    """Raises Unimplemented that names every operator without a translation, with its number of nodes."""
    counts: dict[str, int] = {}
    for node in graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem and not is_supported(node):
            name, example = name_of(node.target), node.meta.get("val")
            of = f" of {example.dtype}" if name in rules() and hasattr(example, "dtype") else ""
            counts[f"aten.{name}{of}"] = counts.get(f"aten.{name}{of}", 0) + 1
    if counts:
        listed = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in counts.items())
        raise Unimplemented(f"no translation is known of {listed}")
