"""Sums over decision trees: what the ensembles of ai.onnx.ml are read as.

Inputs: x (rows, features), the arrays of definitions/trees.py in their order, and base (columns).  Attribute:
aggregate, sum, min or max.
"""

from asmdnn.definitions.trees import tree_ensemble
from asmdnn.forests import Forest
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, Type, Value


def walked(node: Node, x: Array, *arrays: Array) -> Array:
    return tree_ensemble(x, Forest(*arrays[:-1]), arrays[-1], node.get("aggregate"))


def types(node: Node, x: Value, *arrays: Value) -> list[Type]:
    return [((x.shape[0], arrays[-1].shape[0]), x.dtype)]


OPERATORS = {"TreeEnsemble": Operator(walked, types)}
