"""A whole torch graph as a network."""

import operator
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from asmdnn.aten.constants import known_values
from asmdnn.aten.kept import network_of
from asmdnn.aten.options import CompileOptions
from asmdnn.aten.translation import Translation, is_narrow, is_supported, name_of, rules
from asmdnn.errors import Unimplemented
from asmdnn.network.network import Network


class NetworkOutput(NamedTuple):
    """An output by its name, and whether torch has it in bf16."""

    name: str
    is_narrow: bool


def translated(
    name: str,
    graph: Any,
    bound: Mapping[str, Any],
    options: CompileOptions,
    *,
    names: Mapping[str, str] | None = None,
    holds: bool = False,
    keeps: bool = False,
) -> "tuple[Network, list[Any]]":
    """The network of a torch graph, and for each result a NetworkOutput, or the constant that it is.

    bound: placeholders and attributes that are data; names: what users call them; holds: nobody writes to them before
    the network has run; keeps: it is taken from the cache on disk, or kept there.  Raises Unimplemented with all nodes
    that have no translation.
    """
    import torch

    values = known_values(graph, bound)
    refuse_unknown(graph, values)
    translation = Translation(name)
    inputs = 0
    outputs: list[Any] = []
    for node in graph.nodes:
        if node in values:
            if any(user not in values for user in node.users):
                translation.add_constant(node, values[node], (names or {}).get(node.name, ""))
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


def refuse_unknown(graph: Any, values: Collection[Any]) -> None:
    """Raises Unimplemented that names every operator without a translation, with its number of nodes, but for those
    whose values are known."""
    counts: dict[str, int] = {}
    for node in graph.nodes:
        is_call = node.op == "call_function" and node.target is not operator.getitem
        if is_call and node not in values and not is_supported(node):
            name, example = name_of(node.target), node.meta.get("val")
            of = f" of {example.dtype}" if name in rules() and hasattr(example, "dtype") else ""
            counts[f"aten.{name}{of}"] = counts.get(f"aten.{name}{of}", 0) + 1
    if counts:
        listed = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in counts.items())
        raise Unimplemented(f"no translation is known of {listed}")
