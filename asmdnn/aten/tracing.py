"""A torch module, or a graph of Dynamo's, as torch.export has it."""

import operator
from collections.abc import Sequence
from typing import Any, Final

from asmdnn.aten.constants import constant_nodes
from asmdnn.aten.translation import name_of, rules
from asmdnn.errors import Unimplemented

MARKS: Final = ("dynamic", "weak_dynamic", "unbacked", "strict_unbacked")  # of dims, which Dynamo keeps in tensors
MOST_ROUNDS: Final = 4  # of definitions in operators that have definitions
CHECKS: Final = ("_assert_tensor_metadata.default",)  # of what shapes and types say already


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
