"""Operators that fusion makes and ONNX does not have: domain "asmdnn" in a graph, never in a file."""

import numpy as np

from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Operator, same_as_first

OWN = "asmdnn"


def channel_shuffle(node: Node, x: Array) -> Array:
    """Axis 1, read as a matrix of `groups` rows, transposed."""
    groups = node.get("groups")
    return np.reshape(np.reshape(x, (x.shape[0], groups, -1, *x.shape[2:])).swapaxes(1, 2), x.shape)


OPERATORS = {"ChannelShuffle": Operator(channel_shuffle, same_as_first)}
