"""A graph's forward pass as training computes it: dropout draws, batch norm takes statistics, and what has no gradient
of its own is decomposed into what has."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.gradients.asked import as_written, results_of
from asmdnn.network.gradients.composed import decomposed_results, has_rule, is_training
from asmdnn.network.gradients.words import KnownGraph
from asmdnn.network.graph import NOTHING, Body, Node
from asmdnn.network.operators.own import OWN

SEED = "seed of "


def draws(graph: Any, node: Node) -> bool:
    """Whether it is a Dropout in training.  Raises InvalidArguments for one that data switches."""
    if node.op != "Dropout" or node.domain or len(node.inputs) < 3 or node.inputs[2] == NOTHING:
        return False
    mode = graph._constants.get(node.inputs[2])
    if mode is None:
        raise InvalidArguments(f"{node} has a training_mode that is data: make it True or False")
    return bool(np.any(mode))


def drawn(graph: Any, node: Node) -> Node:
    """The node with a seed, an input that a step passes.  Raises InvalidArguments, Unimplemented."""
    x, ratio = node.inputs[:2]
    share = np.array(0.5) if ratio == NOTHING else graph._constants.get(ratio)
    p = float(share.reshape(-1)[0]) if share is not None and share.size == 1 else np.nan
    if not 0 <= p < 1:
        said = f"ratio {p:g}" if share is not None and share.size == 1 else f"ratio {shown(ratio)}"
        raise InvalidArguments(f"{node} has the {said}, it must be a number from 0 on and less than 1")
    if any(node.outputs[1:]) and {*node.outputs[1:]}.intersection(name for n in graph._nodes for name in n.inputs):
        raise Unimplemented(f"{node} has a mask that is read: nothing may read it")
    seed = graph.input(f"{SEED}{node.outputs[0]}", (1,), np.int32)
    attributes = {"probability": float(np.float32(p))}
    return Node("RandomDropout", (x, seed.name), node.outputs[:1], attributes, name=node.name, domain=OWN)


def make_trainable(graph: Any, wrt: Iterable[str]) -> list[str]:
    """Put nodes that can be trained in the place of a graph's own.  wrt: what gradients are wanted of.

    Returns the inputs that seeds are, in order.  Raises InvalidArguments, Unimplemented.
    """
    nodes = [drawn(graph, node) if draws(graph, node) else node for node in graph._nodes]
    made, depends = list[Node](), set(wrt)
    body = Body(graph.name, graph._inputs, (), (), graph._constants)
    known = KnownGraph(body, made.append, graph._constants.__setitem__)
    for node, own in zip(nodes, graph._nodes, strict=True):
        start = len(made)
        in_place = is_training(node) or not (has_rule(known, node) or depends.isdisjoint(node.inputs))
        found = decomposed_results(known, Decomposer(known, node), node) if in_place else None
        if found is None:
            known.node(node)
        for name, result in (found or {}).items():
            known.node(Node("Identity", (result,), (name,), attributes={}, opset=node.opset))
        if found is not None or node is not own:
            graph._written.update(results_of(made[start:], as_written(own, graph._written)))
        if depends.intersection(node.inputs):
            depends.update(node.outputs)
    graph._nodes = made
    return [name for name in graph._inputs if name.startswith(SEED)]
