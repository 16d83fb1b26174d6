"""Operators that fusion makes and ONNX does not have: domain "asmdnn" in a graph, never in a file."""

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, same_as_first

OWN = "asmdnn"


def channel_shuffle(node: Node, x: Array) -> Array:
    """Axis 1, read as a matrix of `groups` rows, transposed."""
    groups = node.get("groups")
    return np.reshape(np.reshape(x, (x.shape[0], groups, -1, *x.shape[2:])).swapaxes(1, 2), x.shape)


def attention(node: Node, query: Array, key: Array, value: Array, mask: Array | None = None) -> Array:
    """softmax(query key^T scale + mask) value for every head."""
    scores = query @ key.swapaxes(-1, -2) * node.get("scale") + (0 if mask is None else mask)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True) @ value)


OPERATORS = {"ChannelShuffle": Operator(channel_shuffle, same_as_first), "Attention": Operator(attention)}
