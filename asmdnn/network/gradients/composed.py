"""Gradients of operators without a rule that are decomposed into operators that have some (decompositions/table.py)."""

from asmdnn.network.decompositions.foreign import check, results_of
from asmdnn.network.decompositions.recurrent import TRAINED
from asmdnn.network.decompositions.table import decompositions, foreign
from asmdnn.network.decompositions.words import Decomposer, is_f32
from asmdnn.network.gradients.attention import is_plain
from asmdnn.network.gradients.table import rules
from asmdnn.network.gradients.words import KnownGraph
from asmdnn.network.graph import NOTHING, Node


def decomposed_results(known: KnownGraph, words: Decomposer, node: Node) -> dict[str, str] | None:
    """The values after a node's results, whose nodes `known` takes in; None for a node that is not decomposed."""
    other = foreign(node)
    if other is not None:
        check(node, other)
        return results_of(known, node, other, words)
    decomposition = {**decompositions(), **TRAINED}.get(node.op) if not node.domain else None
    results = decomposition(words, node, *node.inputs) if decomposition is not None and is_f32(known, node) else None
    if results is None:
        return None
    return {name: result for name, result in zip(node.outputs, results, strict=False) if name != NOTHING}


def has_rule(known: KnownGraph, node: Node) -> bool:
    """Whether its gradient is written down: of a batch norm by given statistics, of attention in one form."""
    return node.key in rules() and not is_training(node) and (node.key != "Attention" or is_plain(known, node))


def is_training(node: Node) -> bool:
    """Whether it is a batch norm that computes its statistics."""
    return node.op == "BatchNormalization" and bool(node.get("training_mode", 0))
