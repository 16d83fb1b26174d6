"""What a torch graph computes of constants alone: torch computes it once, and it stands in the graph as data.

Masks, positions and tables of relative positions are of this kind, and weights that a module computes of its
parameters.
"""

from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import Any, Final

SHAPE_ALONE: Final = (  # operators that read the shape and the type of an operand, not its elements
    "new_ones.default", "new_zeros.default", "new_full.default", "zeros_like.default", "ones_like.default",
    "full_like.default",
)  # fmt: skip
MOST_ELEMENTS: Final = 1 << 27  # of one result; a larger one is left to the graph


def constant_nodes(graph: Any, bound: Collection[str]) -> list[Any]:
    """Calls that depend on numbers, the placeholders and attributes named in `bound`, and shapes alone.

    Not those that write to an operand or draw random numbers, and not results of the graph, which are new each time.
    """
    known: set[Any] = set()
    found: list[Any] = []
    for node in graph.nodes:
        if is_bound(node, bound):
            known.add(node)
        elif node.op == "call_function" and is_constant(node, known):
            known.add(node)
            found.append(node)
    return found


def is_constant(node: Any, known: Collection[Any]) -> bool:
    """Whether all that a call reads is known."""
    if not is_repeatable(node) or any(user.op == "output" for user in node.users):
        return False
    if is_shape_alone(node):
        return True
    return all(operand in known for operand in node.all_input_nodes)


def is_repeatable(node: Any) -> bool:
    """Whether a call gives the same each time, and neither writes nor gives more than is worth keeping."""
    import torch

    if isinstance(node.target, torch._ops.OpOverload) and (
        node.target._schema.is_mutable or torch.Tag.nondeterministic_seeded in node.target.tags
    ):
        return False
    example = node.meta.get("val")
    results = example if isinstance(example, list | tuple) else [example]
    return all(isinstance(x, torch.Tensor) and prod(x.shape) <= MOST_ELEMENTS for x in results)


def is_shape_alone(node: Any) -> bool:
    return str(node.target).removeprefix("aten.") in SHAPE_ALONE


def known_values(graph: Any, bound: Mapping[str, Any]) -> dict[Any, Any]:
    """What is data, by node: tensors that `bound` has by the names of placeholders and attributes, and what torch
    computes of them."""
    import torch

    values = {node: bound[node.name] for node in graph.nodes if is_bound(node, bound)}
    with torch.no_grad():
        for node in constant_nodes(graph, bound):
            values[node] = value_of(node, values)
    return values


def is_bound(node: Any, bound: Collection[str]) -> bool:
    return node.op in ("placeholder", "get_attr") and node.name in bound


def fold(graph_module: Any, bound: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces constant nodes by attributes of the graph module, in place.

    bound: tensors by the names of their placeholders.  Returns the tensors of all attributes, by their nodes' names.
    """
    import torch

    graph = graph_module.graph
    made = {node.name: getattr(graph_module, node.target) for node in graph.nodes if node.op == "get_attr"}
    values = known_values(graph, {**bound, **made})
    found = [node for node in values if node.op == "call_function"]
    for node in found:
        outside = [user for user in node.users if user not in values]
        if outside and isinstance(values[node], torch.Tensor):
            made[replaced(graph_module, node, values[node], outside).name] = values[node]
    for node in reversed(found):
        if not node.users:
            graph.erase_node(node)
    graph_module.recompile()
    return made


def value_of(node: Any, values: Mapping[Any, Any]) -> Any:
    """What torch computes; an operand of which the shape alone is read need not be known."""
    import torch
    from torch.fx.node import map_arg

    def value(operand: Any) -> Any:
        if operand in values:
            return values[operand]
        example = operand.meta["val"]
        return torch.empty((), dtype=example.dtype).expand(example.shape)

    return node.target(*map_arg(node.args, value), **map_arg(node.kwargs, value))


def replaced(graph_module: Any, node: Any, value: Any, users: Iterable[Any]) -> Any:
    """A new node for the value, which `users` read in the place of `node`."""
    name = f"constant_{node.name}"
    graph_module.register_buffer(name, value.detach(), persistent=False)
    with graph_module.graph.inserting_before(node):
        made = graph_module.graph.get_attr(name)
    made.meta = dict(node.meta)
    for user in list(users):
        user.replace_input_with(node, made)
    return made
