"""Models whose nodes that choose by data have bounds: NonZero, Compress and Unique, by the names of their results.

Such a node is of the domain "asmdnn" and has two more attributes: `most`, and `bound`, the name that it was said of.
"""

from collections.abc import Mapping
from operator import index
from typing import Any

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.network.graph import LARGEST_DIM, NOTHING, Model, Node
from asmdnn.network.operators.own import BOUNDED, OWN
from asmdnn.records import replace


def is_bounded(node: Node) -> bool:
    return node.domain == OWN and node.op in BOUNDED


def without_bound(node: Node) -> Node:
    """As the model had it."""
    own = {name: x for name, x in node.attributes.items() if name not in ("most", "bound")}
    return replace(node, attributes=own, domain="")


def within_bounds(model: Model, bounds: Any) -> Model:
    """The model whose results of these names have so many places at most.  Raises InvalidArguments."""
    known = {} if bounds is None else checked_bounds(bounds)
    if not known:
        return model
    nodes = tuple(with_bound(node, known) for node in model.body.nodes)
    made = [name for node in nodes if is_bounded(node) for name in node.outputs]
    for name in known:
        if name not in made:
            could = [x for node in model.body.nodes if may_be(node) for x in node.outputs if x != NOTHING]
            way_out = did_you_mean(name, could) if could else "the model has none: leave bounds out"
            raise InvalidArguments(f"bounds has {shown(name)}, which no {', '.join(BOUNDED)} makes: {way_out}")
    if model.states:
        raise InvalidArguments("bounds is for models without state: leave bounds or state out")
    return replace(model, body=replace(model.body, nodes=nodes))


def checked_bounds(bounds: Any) -> dict[str, int]:
    """Raises InvalidArguments."""
    if not isinstance(bounds, Mapping):
        raise InvalidArguments(f"bounds must map names of values to numbers, such as {{'at': 64}}, not {shown(bounds)}")
    found = dict[str, int]()
    for name, most in bounds.items():
        try:
            found[name] = index(most)
        except Exception:  # whatever the caller's object does
            found[name] = 0
        if not isinstance(name, str) or not 0 < found[name] <= LARGEST_DIM or isinstance(most, bool):
            raise InvalidArguments(f"bounds[{shown(name)}] must be a number of places from 1 on, not {shown(most)}")
    return found


def may_be(node: Node) -> bool:
    return not node.domain and node.op in BOUNDED


def with_bound(node: Node, bounds: Mapping[str, int]) -> Node:
    """Raises InvalidArguments for two bounds of one node."""
    said = [name for name in node.outputs if name in bounds] if may_be(node) else []
    if not said:
        return node
    if len({bounds[name] for name in said}) > 1:
        raise InvalidArguments(f"bounds has {shown(said[0])} and {shown(said[1])}, which {node} makes: give one bound")
    return replace(node, domain=OWN, attributes={**node.attributes, "most": bounds[said[0]], "bound": said[0]})
