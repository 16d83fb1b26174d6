"""The rules of gradients, by operator.

A rule takes the words that it is written with, the node, and the gradient of the loss by each of its results, None for
a result that the loss does not depend on; it returns the gradient by each of its inputs, None where there is none.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module

from asmdnn.network.gradients.words import GradientWords
from asmdnn.network.graph import Node

MODULES = (
    "arithmetic", "activations", "reductions", "moves", "products", "convolutions", "windows", "rows", "channels",
    "einsum", "attention", "losses", "indexing", "training", "resizing", "recurrent", "maps",
)  # fmt: skip
Gradients = Sequence[str | None]
Rule = Callable[[GradientWords, Node, Gradients], Gradients]


def given_of(given: Gradients) -> str:
    """The gradient by the only result."""
    (d,) = given
    assert d is not None
    return d


@cache
def rules() -> Mapping[str, Rule]:
    """By the operator's key: those of ONNX by their names."""
    found: dict[str, Rule] = {}
    for name in MODULES:
        found |= import_module(f"asmdnn.network.gradients.{name}").RULES
    return found
