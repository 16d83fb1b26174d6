"""What a graph that is being written gains by `gradients`: nodes and constants."""

from collections.abc import Sequence
from typing import Any

from asmdnn.memory.sequences import items
from asmdnn.network.gradients.backwards import Origin, differentiated
from asmdnn.network.gradients.words import KnownGraph
from asmdnn.network.graph import Array, Body, Node
from asmdnn.network.static import needed
from asmdnn.records import replace


def symbols_of(wrt: Any) -> list[Any]:
    """The values of a sequence; what is none is one value, which its caller refuses by name."""
    try:
        return list(items(wrt))
    except Exception:  # whatever the caller's object does
        return [wrt]


def gradient_nodes(
    body: Body, loss: str, wrt: Sequence[str], origin: Origin
) -> tuple[list[str], list[Node], dict[str, Array]]:
    """The gradients' names, and the nodes and constants that make them of the body's.

    Raises InvalidArguments, Unimplemented, as `Graph.gradients` says.
    """
    nodes = needed(body.nodes, (loss,))
    made, constants = list[Node](), dict[str, Array]()
    known = KnownGraph(replace(body, nodes=nodes), made.append, constants.__setitem__)
    first = sum(len(node.outputs) for node in body.nodes) + len(body.constants)  # after all numbers that names have
    return list(differentiated(known, nodes, loss, list(wrt), first, origin)), made, constants
