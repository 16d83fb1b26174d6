"""A model's body as specialisation begins with it, which is the same for every shape: its Constant nodes are data."""

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np

from asmdnn.network.folding.bounds import constant_bytes
from asmdnn.network.graph import NOTHING, Array, Body, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.quantized.weights import weights_of_products
from asmdnn.records import dataclass


@dataclass(frozen=True, eq=False)
class PreparedBody:
    """whole: all nodes; nodes: without those that are data; constants: these, and the body's own; kept_integers:
    floats of constants that stay integers; constant_bytes: of the whole."""

    whole: Body
    nodes: tuple[Node, ...]
    constants: Mapping[str, Value]
    kept_integers: Collection[str]
    constant_bytes: int


def prepared(whole: Body) -> PreparedBody:
    """Nodes that are wrong stay nodes, of which specialisation says what is wrong."""
    kept, made = weights_of_products(whole), Counter(name for node in whole.nodes for name in node.outputs)
    constants, nodes = dict(whole.constants), list[Node]()
    taken = {NOTHING, *kept, *whole.inputs, *whole.constants, *(name for name, times in made.items() if times > 1)}
    for node in whole.nodes:
        data = data_of(node)
        if data is None or node.outputs[0] in taken:
            nodes.append(node)
        else:
            constants[node.outputs[0]] = data
    values = {name: Value(data.shape, data.dtype, data) for name, data in constants.items()}
    return PreparedBody(whole, tuple(nodes), values, kept, constant_bytes=constant_bytes(whole))


def data_of(node: Node) -> Array | None:
    """What a node says that is a tensor and nothing else."""
    data = node.get("value") if node.op == "Constant" and not node.domain else None
    is_plain = isinstance(data, np.ndarray) and len(node.attributes) == len(node.outputs) == 1 and not node.inputs
    return data if is_plain else None
