"""A torch graph of ATen operators as a Graph: each node by its rule, constants by torch itself."""

import operator
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from asmdnn.aten.constants import is_repeatable
from asmdnn.aten.values import RULES, Rewriter, Rule, Traced
from asmdnn.errors import InvalidArguments, Unimplemented, counted, shown
from asmdnn.forking import importing
from asmdnn.network.building import Graph, Symbol
from asmdnn.network.passing import HALVES

MODULES: Final = (
    "elementwise", "function", "shape", "layer", "window", "resizing", "reduction", "recurrent", "transformer",
)  # fmt: skip
OF_DYNAMO: Final = re.compile(r"L\['\w+'\]\.?")  # how it calls the module that is compiled
NARROW: Final = next(name for name, kind in HALVES.items() if kind.extension)  # that numpy lacks: f32 in a network
TYPES: Final = {
    name: np.dtype(name) for name in ("float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool")
} | {NARROW: np.dtype(np.float32)}  # fmt: skip


@cache
def rules() -> Mapping[str, Rule]:
    """All, by the names of ATen's operators."""
    with importing():
        for name in MODULES:
            import_module(f"asmdnn.aten.{name}_rules")
    return RULES


def layer_of(node: Any) -> str:
    """The module in which torch made the node, such as "layer1.0.conv1"; "" of the outermost one."""
    stack = [*(node.meta.get("nn_module_stack") or {}).values()]
    return OF_DYNAMO.sub("", str(stack[-1][0])) if stack else ""


def name_of(target: Any) -> str:
    """ "conv2d.default" of torch.ops.aten.conv2d.default; others are shown as they are."""
    text = str(target)
    return text.removeprefix("aten.") if text.startswith("aten.") else text


def is_supported(node: Any) -> bool:
    """Whether a node has a rule, or reads nothing, and gives types that networks have."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return is_supported(node.args[0])
    types = types_of(node.meta.get("val"))
    known = name_of(node.target) in rules() or (not node.all_input_nodes and len(types) == 1 and is_repeatable(node))
    return known and bool(types) and all(dtype is not None for _, dtype in types)


def types_of(example: Any) -> "list[tuple[tuple[int, ...], np.dtype[Any] | None]]":
    """Shapes and types of what torch says that a node gives."""
    import torch

    found: list[tuple[tuple[int, ...], np.dtype[Any] | None]] = []
    for value in example if isinstance(example, list | tuple) else (example,):
        if isinstance(value, torch.Tensor):
            name = str(value.dtype).removeprefix("torch.")
            found.append((tuple(int(n) for n in value.shape), TYPES.get(name)))
        elif value is not None:
            found.append(((), np.dtype(np.int64)))
    return found


class Translation:
    """Of one torch graph.  `graph` is what there is of it; its constants are torch's memory."""

    def __init__(self, name: str) -> None:
        self.graph = Graph(name)
        self.values: dict[Any, Any] = {}

    def add_input(self, node: Any, name: str) -> None:
        """A placeholder that a caller passes."""
        ((shape, dtype),) = types_of(node.meta["val"])
        if dtype is None:
            raise Unimplemented(f"input {name} is {node.meta['val'].dtype}, which networks do not take")
        self.values[node] = Traced(self.graph.input(name, shape, dtype), shape, dtype)

    def add_constant(self, node: Any, tensor: Any, name: str = "") -> None:
        """A node that is data: a tensor, or several.  name: of a parameter or buffer."""
        is_one = not isinstance(tensor, list | tuple)
        own = "" if " " in name else name  # as the graph's own values have it in theirs, such as "Conv 3"
        self.values[node] = constant(tensor, own) if is_one else tuple(map(constant, tensor))

    def add(self, node: Any) -> None:
        """A call.  Raises Unimplemented for one without a rule."""
        if node.target is operator.getitem:
            source, number = node.args
            self.values[node] = found = self.values[source][number]
            if found is None and node.users:
                raise Unimplemented(f"{name_of(source.target)}: its result {number} has no translation")
            return
        name = name_of(node.target)
        arguments = self._known(node.args), self._known(node.kwargs)
        if not self._reads_values(arguments) or (name not in rules() and self._is_data(arguments)):
            self.values[node] = constant(evaluated(node, *arguments))
            return
        rule = rules().get(name)
        if rule is None:
            raise Unimplemented(f"aten.{name} has no translation")
        types = types_of(node.meta["val"])
        results = [(shape, dtype or np.dtype(np.float32)) for shape, dtype in types]
        context = Rewriter(self.graph, name, results, layer_of(node))
        made = rule(context, *arguments[0], **arguments[1])
        self.values[node] = as_values(made, context)

    def symbol(self, node: Any) -> Symbol:
        """What computes a result."""
        value = self.values[node]
        if isinstance(value.symbol, Symbol):
            return value.symbol
        found: Symbol = self.graph.apply("Identity", value.symbol)
        return found

    def _known(self, tree: Any) -> Any:
        """Arguments with Tensors in the place of nodes."""
        import torch
        from torch.fx.node import map_aggregate

        def value(leaf: Any) -> Any:
            if isinstance(leaf, torch.fx.Node):
                return self.values[leaf]
            return int(leaf) if isinstance(leaf, torch.SymInt) else leaf

        return map_aggregate(tree, value)

    def _reads_values(self, arguments: Any) -> bool:
        return any(True for _ in leaves(arguments))

    def _is_data(self, arguments: Any) -> bool:
        return all(value.data is not None for value in leaves(arguments))


def leaves(tree: Any) -> "list[Traced]":
    """The Tensors in nested arguments."""
    if isinstance(tree, Traced):
        return [tree]
    parts = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, Sequence | tuple) else ()
    return [] if isinstance(tree, str) else [leaf for part in parts for leaf in leaves(part)]


def constant(tensor: Any, name: str = "") -> Traced:
    """Data as an array."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        array = np.asarray(tensor)
    elif str(tensor.dtype).removeprefix("torch.") not in TYPES:
        raise Unimplemented(f"a constant is {tensor.dtype}, which networks do not take")
    else:
        array = widened(tensor.detach().cpu().contiguous()).numpy()
    return Traced(array, array.shape, array.dtype, name)


def check_tensor(name: str, tensor: Any) -> None:
    """Raises InvalidArguments unless a caller's object is a tensor whose elements lie in memory."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise InvalidArguments(f"{name} must be a torch.Tensor, not {shown(tensor)}")
    if tensor.device.type != "cpu":
        raise InvalidArguments(f"{name} is on {tensor.device}: move it to the CPU")
    if tensor.layout is not torch.strided:
        raise InvalidArguments(f"{name} is {tensor.layout}: make it dense, as to_dense() does")


def widened(tensor: Any) -> Any:
    """f32 of bf16, others as they are."""
    return tensor.float() if is_narrow(tensor) else tensor


def narrowed(tensor: Any) -> Any:
    return getattr(tensor, NARROW)()


def is_narrow(tensor: Any) -> bool:
    return str(tensor.dtype) == f"torch.{NARROW}"


def evaluated(node: Any, args: Any, kwargs: Any) -> Any:
    """What torch computes of constants."""
    import torch

    def tensor(tree: Any) -> Any:
        if isinstance(tree, Traced):
            return torch.from_numpy(np.array(tree.symbol))
        if isinstance(tree, Mapping):
            return {name: tensor(part) for name, part in tree.items()}
        return type(tree)(map(tensor, tree)) if isinstance(tree, list | tuple) else tree

    with torch.no_grad():
        return node.target(*tensor(tuple(args)), **tensor(dict(kwargs)))


def as_values(made: Any, context: Rewriter) -> Any:
    """What a rule gives, with what torch says of it."""
    if not isinstance(made, tuple):
        if len(context.results) > 1:
            raise InvalidArguments(f"{context.name} has {counted(len(context.results), 'result')}, its rule gives one")
        return Traced(made, *context.results[0])
    types = iter(context.results)
    found: list[Traced | None] = []
    for part in made:  # None: a result that nobody reads, such as a saved mean
        known = next(types, ((), np.dtype(np.float32)))
        found.append(None if part is None else Traced(part, *known))
    return tuple(found)
