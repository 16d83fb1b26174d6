"""Nodes of a model for errors, where others stand in their place: nobody has asked for those."""

from collections.abc import Mapping

from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Body, Node
from asmdnn.network.known import nodes_of


def as_asked(group: Group, body: Body) -> str:
    """A group's label, behind the model's node that its first one is a part of."""
    first = group.nodes[0]
    known = {name: node for node in nodes_of(body) for name in node.outputs}
    own = None if known.keys() & {*first.outputs} else node_behind(first, known)
    return group.label if own is None else f"{own} (as {group.label.replace(str(first), first.op, 1)})"


def node_behind(made: Node, known: Mapping[str, Node]) -> Node | None:
    """The node whose result's name begins that of what is made in its place: y/ScatterRows 12 is of y."""
    name = made.outputs[0]
    while "/" in name:
        name = name.rpartition("/")[0].removesuffix(", counted")
        if name in known:
            return known[name]
    return None
