"""Models that draw at random by a seed that each call passes, and not by those that nodes have.

The seed is an input, so that nothing is planned again for another one.  A node draws by the seed and by its place: by
the seed that the file gives it, so that nodes with equal ones still have equal numbers, or else by its number.
"""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.graph import Body, Model, Node, TensorType, bodies_of, names_in
from asmdnn.network.operators.own import OWN
from asmdnn.records import replace

DRAWING = {
    "RandomUniform", "RandomNormal", "RandomUniformLike", "RandomNormalLike", "Bernoulli", "Multinomial",
}  # fmt: skip
WORD = 2**32
TRAINING = 2  # the input of Dropout that says whether it draws


def seeded(model: Model, seed: Any) -> Model:
    """The model with another input of that name, i64[], by which its nodes draw.  Raises InvalidArguments."""
    if seed is None:
        return model
    body = model.body
    if not isinstance(seed, str) or not seed or seed in names_in(body):
        raise InvalidArguments(f"seed must be a name that no value of the model has, not {shown(seed)}")
    pass_seed = SeedInput(seed)
    inputs = {**body.inputs, seed: TensorType(np.dtype(np.int64), ())}
    found = replace(pass_seed.body(body), inputs=inputs)
    if not pass_seed.count:
        raise InvalidArguments(f"seed is {shown(seed)}, and the model draws nothing at random: leave it out")
    return replace(model, body=found)


class SeedInput:
    """Gives it to nodes; count: to how many."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 0

    def body(self, body: Body) -> Body:
        return replace(body, nodes=tuple(self.node(node) for node in body.nodes))

    def node(self, node: Node) -> Node:
        if bodies_of(node):
            inner = {key: self.body(x) if isinstance(x, Body) else x for key, x in node.attributes.items()}
            return replace(node, attributes=inner)
        draws = node.op in DRAWING or (node.op == "Dropout" and any(node.inputs[TRAINING : TRAINING + 1]))
        if node.domain or not draws:
            return node
        place = WORD + self.count
        if "seed" in node.attributes:
            place = int(np.float32(node.get("seed")).view(np.uint32))
        self.count += 1
        attributes = {**node.attributes, "place": place}
        others = tuple(node.inputs) if node.op in DRAWING else (*node.inputs[:TRAINING], node.inputs[TRAINING])
        return replace(node, inputs=(*others, self.name), attributes=attributes, domain=OWN)
