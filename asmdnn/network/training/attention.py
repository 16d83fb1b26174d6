"""Attention that a graph has written out becomes one operator before gradients are taken of it, so that both passes
have fused kernels, whose scores never leave the cache."""

from collections.abc import Collection
from typing import Any

from asmdnn.network.fusion.attention import Attended, Scores
from asmdnn.network.gradients.words import KnownGraph
from asmdnn.network.graph import NOTHING, Body
from asmdnn.network.static import StaticGraph


class TrainedAttention(Attended):
    """depends: what gradients are wanted through.  A mask that depends on it has a gradient, which kernels do not
    compute."""

    def __init__(self, graph: StaticGraph, depends: Collection[str]) -> None:
        super().__init__(graph)
        self.depends = depends

    def fits(self, scores: Scores, value: str) -> bool:
        return super().fits(scores, value) and scores.mask not in self.depends


def recognise_attention(graph: Any, wrt: Collection[str], ends: Collection[str]) -> None:
    """Put single nodes in the place of a graph's written-out attention.  wrt: what gradients are wanted of; ends:
    values that a caller gets."""
    if not any(node.op == "Softmax" for node in graph._nodes):
        return
    nodes, depends = tuple(graph._nodes), {*wrt}
    known = KnownGraph(Body(graph.name, graph._inputs, (), nodes, graph._constants), ignored, ignored)
    made = [name for node in nodes for name in node.outputs if name != NOTHING]
    values = {name: known.values[name] for name in (*graph._inputs, *graph._constants, *made)}
    for node in nodes:
        depends |= {*node.outputs} if depends.intersection(node.inputs) else set()
    read = {name for node in nodes for name in node.inputs}
    results = {name: name for name in (*ends, *(name for name in made if name not in read))}
    found = TrainedAttention(StaticGraph(tuple(graph._inputs), results, nodes, values), depends).graph()
    graph._nodes = [*found.nodes]
    graph._constants |= {
        name: value.data for name, value in found.values.items() if name not in values and value.data is not None
    }


def ignored(*_: object) -> None:
    """Nothing is written while values are looked at."""
