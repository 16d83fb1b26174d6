"""The operator that ONNX has not: a function of the user's, element by element; `Graph.map` makes its nodes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, broadcast

MAP = "PythonMap"


def function_of(node: Node) -> Callable[..., Any] | None:
    """What a node computes; None for one of a file, whose attributes cannot be called."""
    found = node.get("function")
    return found if callable(found) else None


def evaluated(node: Node, x: Array, *others: Array) -> Array:
    return np.asarray(node.get("function")(x, *others), x.dtype)


OPERATORS = {MAP: Operator(evaluated, broadcast)}
