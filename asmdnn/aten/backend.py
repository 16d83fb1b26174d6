"""`torch.compile(model, backend="asmdnn")`: what Dynamo finds in a model, as networks.

Each graph becomes one native call if all of its operators are known; else its known parts do, and torch computes the
rest.  Parameters and buffers are the networks' weights: they are dropped from calls, and packed again when they have
changed.  Shapes that come are planned when they come first, so symbolic sizes need nothing.
"""

import operator
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from asmdnn.aten import tracing
from asmdnn.aten.constants import fold
from asmdnn.aten.options import CompileOptions, of_options
from asmdnn.aten.parts import TorchPart, as_module, inside_names, is_whole, worth
from asmdnn.aten.translation import is_supported, name_of
from asmdnn.errors import Unimplemented

MOST_SHAPES: Final = 32  # of one graph; the one not used for longest is dropped
_graphs: "weakref.WeakSet[CompiledGraph]" = weakref.WeakSet()


def asmdnn(graph_module: Any, example_inputs: Sequence[Any], *, options: Any = None) -> Callable[..., Any]:
    """The backend of torch.compile, found by its name.  options: a mapping; "engine", "precision" and
    "deterministic" are as of load_onnx.

    Where gradients are required, torch computes, and a warning says so once.
    """
    import torch

    options = of_options(options)
    needs = [x for x in example_inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    if torch.is_grad_enabled() and needs:
        warnings.warn(
            "asmdnn computes no gradients, so torch runs this graph: call the model under torch.no_grad()", stacklevel=2
        )
        eager: Callable[..., Any] = graph_module.forward
        return eager
    return CompiledGraph(graph_module, example_inputs, options)


def explain() -> str:
    """What the graphs that are compiled now consist of, a paragraph each: native parts, and what torch computes."""
    return "\n".join(graph.explain() for graph in _graphs) or "no graph is compiled"


class CompiledGraph:
    """One graph of Dynamo's: `runs` by the shapes of its inputs."""

    def __init__(self, graph_module: Any, example_inputs: Sequence[Any], options: CompileOptions) -> None:
        self._module, self._options = graph_module, options
        self._weights = static_inputs(graph_module, example_inputs)
        self._given = [i for i in range(len(example_inputs)) if i not in set(self._weights)]
        self._runs: OrderedDict[Any, GraphRun | EagerRun] = OrderedDict()
        self._lock = threading.Lock()
        _graphs.add(self)

    def __call__(self, *arguments: Any) -> Any:
        import torch

        given = map(arguments.__getitem__, self._given)
        key = tuple((x.shape, x.dtype) if isinstance(x, torch.Tensor) else (type(x), x) for x in given)
        with self._lock:
            run = self._runs.get(key)
            if run is None or run.is_stale(arguments):
                run = self._runs[key] = self._made(arguments, keeps=not self._runs)
                if len(self._runs) > MOST_SHAPES:
                    self._runs.popitem(last=False)
            self._runs.move_to_end(key)
        return run(arguments)

    def _made(self, arguments: Sequence[Any], keeps: bool) -> "GraphRun | EagerRun":
        try:
            return GraphRun(self._module, arguments, self._weights, self._options, keeps)
        except Unimplemented as error:
            return EagerRun(self._module, str(error))

    def explain(self) -> str:
        """By shape."""
        return "\n".join(run.explain() for run in self._runs.values()) or "a graph that has not run"


class EagerRun:
    """A graph that torch computes, and why."""

    def __init__(self, module: Any, reason: str) -> None:
        self._module, self._reason = module, reason

    def __call__(self, arguments: Sequence[Any]) -> Any:
        return self._module(*arguments)

    def is_stale(self, arguments: Sequence[Any]) -> bool:
        return False

    def explain(self) -> str:
        return f"torch computes all: {self._reason}"


def static_inputs(graph_module: Any, example_inputs: Sequence[Any]) -> list[int]:
    """Which inputs are parameters or buffers, as Dynamo says; not those of inference mode, which count no writes."""
    import torch

    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    found = []
    for i, (node, example) in enumerate(zip(placeholders, example_inputs, strict=True)):
        said = node.meta.get("tensor_dict", {})
        if isinstance(example, torch.Tensor) and example.is_inference():
            continue
        if isinstance(example, torch.nn.Parameter) or "_dynamo_static_input_type" in said:
            found.append(i)
    return found


class GraphRun:
    """A graph for inputs of fixed shapes, with weights as they are now.

    keeps: networks are kept on disk; not those of weights that change, or of further shapes, which would fill it.
    """

    def __init__(
        self,
        module: Any,
        arguments: Sequence[Any],
        weights: Sequence[int],
        options: CompileOptions,
        keeps: bool,
    ) -> None:
        exported = tracing.export_of(module, tuple(arguments), False, weights)
        signature, own = exported.graph_signature, tracing.own_of(exported)
        names = [node.name for node in exported.graph.nodes if node.op == "placeholder"]
        self._own = [own[name] for name in names if name in own]
        given = [name for name in names if name not in own]
        self._written = written_inputs(signature, given)
        self._bound = [i for i in weights if i not in self._written]
        self._versions = self._state(arguments)
        self._alive = [arguments[i].detach() for i in self._bound]  # so that no other tensor gets their addresses
        bound = own | {given[i]: arguments[i] for i in self._bound}
        folded = fold(exported.graph_module, bound)
        self._kept = {tensor.untyped_storage().data_ptr() for tensor in folded.values()}
        bound |= folded
        self._parts: list[TorchPart] = []
        self._left: dict[str, int] = {}
        self._refused: list[str] = []
        self._keeps = keeps
        self._module = self._partitioned(exported, bound, options)

    def __call__(self, arguments: Sequence[Any]) -> Any:
        found = self._module(*self._own, *arguments)
        for i, value in zip(self._written, found, strict=False):
            arguments[i].copy_(value)
        results = found[len(self._written) :]
        return tuple(map(self._apart, results)) if self._left and self._kept else results

    def _apart(self, result: Any) -> Any:
        """A result that is no view of a constant of the graph, which callers might write to."""
        import torch

        is_view = isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() in self._kept
        return result.clone() if is_view else result

    def is_stale(self, arguments: Sequence[Any]) -> bool:
        """Whether a weight is another tensor, or has been written to."""
        return self._state(arguments) != self._versions

    def _state(self, arguments: Sequence[Any]) -> list[tuple[int, int]]:
        return [(arguments[i].data_ptr(), arguments[i]._version) for i in self._bound]

    def explain(self) -> str:
        """The native parts, and the operators that torch computes."""
        left = [f"aten.{name} ({count})" for name, count in self._left.items()]
        left += [f"a part ({reason})" for reason in self._refused]
        parts = "\n".join(f"  {part.network!r}" for part in self._parts)
        return f"{len(self._parts)} native parts; torch computes {', '.join(left) or 'nothing'}\n{parts}"

    def _partitioned(self, exported: Any, bound: dict[str, Any], options: CompileOptions) -> Any:
        """The graph module with its known parts as networks."""
        from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
        from torch.fx.passes.operator_support import create_op_support

        support = create_op_support(lambda modules, node: is_supported(node))
        partitioner = CapabilityBasedPartitioner(exported.graph_module, support, allows_single_node_partition=True)
        parts = [part for part in partitioner.propose_partitions() if worth(part)]
        if len(parts) == 1 and is_whole(exported.graph, parts[0].nodes, bound):
            own = {node.name: node.name for node in exported.graph.nodes if node.op in ("placeholder", "get_attr")}
            try:
                part = TorchPart(exported.graph_module, own, bound, options, self._keeps)
            except Unimplemented as error:
                self._refused.append(str(error))
                return exported.graph_module
            self._parts.append(part)
            return part
        fused = partitioner.fuse_partitions(parts) if parts else exported.graph_module
        for node in fused.graph.nodes:
            if node.op == "call_module":
                try:
                    inside = getattr(fused, node.target)
                    part = TorchPart(inside, inside_names(inside, node), bound, options, self._keeps)
                except Unimplemented as error:
                    self._refused.append(str(error))
                    continue
                setattr(fused, node.target, as_module(part))
                self._parts.append(part)
            elif node.op == "call_function" and node.target is not operator.getitem:
                name = name_of(node.target)
                self._left[name] = self._left.get(name, 0) + 1
        return fused


def written_inputs(signature: Any, given: Sequence[str]) -> list[int]:
    """The inputs that a graph writes to, by number, in the order in which it returns them, first of all results.

    Raises Unimplemented for a buffer that the graph itself holds.
    """
    if signature.buffers_to_mutate:
        raise Unimplemented(f"the graph writes to its own {', '.join(signature.buffers_to_mutate.values())}")
    return [given.index(name) for name in signature.user_inputs_to_mutate.values()]
