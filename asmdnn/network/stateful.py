"""Models with state: outputs that become inputs of the next call."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.network.decompositions.grouped_query import SHARED
from asmdnn.network.dims import declared_dims
from asmdnn.network.element_types import CODES
from asmdnn.network.graph import Model, Node, TensorType
from asmdnn.network.operators.own import OWN
from asmdnn.network.states import NetworkState, checked_state
from asmdnn.records import replace

CAST = 13  # the operator set of a Cast


def written_nodes(state: NetworkState, source: str, declared: TensorType) -> tuple[Node, ...]:
    """Nodes whose last result is written into a state, after a Cast to its type if that is not f32."""
    own = declared.dtype.name
    if not state.is_float:
        return (cast(source, state.written, own),)
    attributes = {"state": state.name, "now": state.now, "dims": declared.shape, "dtype": own}
    if own == "float32":
        return (Node("Written", (source,), (state.written,), attributes, name=state.name, domain=OWN),)
    first = cast(source, f"{state.name} as {own}", own)
    return (first, Node("Written", first.outputs, (state.written,), attributes, name=state.name, domain=OWN))


def cast(source: str, result: str, dtype: str) -> Node:
    return Node("Cast", (source,), (result,), {"to": CODES[dtype]}, name="", domain="", opset=CAST)


def sharing(node: Node, output: str, state: str) -> Node:
    """A node that writes behind its past, told so where the two are one buffer."""
    if node.op != "GroupQueryAttention" or (output, state) not in zip(node.outputs[1:], node.inputs[3:5], strict=False):
        return node
    return replace(node, attributes={**node.attributes, SHARED: 1})


def tied(model: Model, state: Any, shapes: Mapping[str, Any] | None) -> Model:
    """The model with outputs tied to inputs: `state` maps names of outputs to names of inputs, which start as zeros.

    shapes: what the caller says of open dims.  Raises InvalidArguments.
    """
    if state is None:
        return model
    body, inputs, nodes, states = model.body, dict(model.body.inputs), list(model.body.nodes), list[NetworkState]()
    is_map = isinstance(state, Mapping) and all(isinstance(x, str) for pair in state.items() for x in pair)
    if not is_map or len({*state.values()}) < len(state):
        raise InvalidArguments(f"state must map names of outputs to names of inputs, each once, not {shown(state)}")
    for output, name in state.items():
        if output not in body.outputs or name not in inputs:
            raise InvalidArguments(f"state ties {shown(output)} to {shown(name)}: name an output and an input of it")
        dims = shapes.get(name) if isinstance(shapes, Mapping) else None
        known = inputs[name] if dims is None else TensorType(inputs[name].dtype, declared_dims(name, inputs, dims))  # type: ignore[arg-type]
        if known.shape is None or not all(isinstance(n, int) for n in known.shape):
            raise InvalidArguments(f"state {name} is {known}: say its dims, as in shapes={{{name!r}: (1, ...)}}")
        nodes = [sharing(node, output, name) for node in nodes]
        checked_state(name, known.shape, known.dtype, 0)
        one = NetworkState(name, np.zeros((), known.dtype), f"{name} is written")
        nodes += written_nodes(one, output, known)
        states.append(one)
    outputs = (*(name for name in body.outputs if name not in state), *(one.written for one in states))
    return replace(model, body=replace(body, nodes=tuple(nodes), outputs=outputs), states=tuple(states))
