"""All operators that have a definition, by name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from asmdnn.network.graph import Node
from asmdnn.network.operators.definition import Operator
from asmdnn.network.operators.mapped import MAP, function_of
from asmdnn.network.operators.own import OPERATORS as OWN_OPERATORS
from asmdnn.network.operators.own import OWN

MODULES = (
    "arithmetic", "activations", "logic", "moves", "indexing", "sources", "reductions", "products", "einsum", "windows",
    "normalization", "recurrent", "attention", "quantization", "losses", "selection", "shapes", "mapped",
)  # fmt: skip


@cache
def operators() -> Mapping[str, Operator]:
    """Of ONNX's own domain."""
    found: dict[str, Operator] = {}
    for name in MODULES:
        found |= import_module(f"asmdnn.network.operators.{name}").OPERATORS
    return found


def operator_of(node: Node) -> Operator | None:
    """None for one that is not known."""
    if node.domain == OWN:
        return OWN_OPERATORS.get(node.op)
    if node.domain or (node.op == MAP and function_of(node) is None):
        return None
    return operators().get(node.op)
