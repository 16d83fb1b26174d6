"""What is checked of an operator that a caller applies in a Graph."""

from collections.abc import Iterator
from typing import Any

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.foreign import check as check_composed
from asmdnn.network.decompositions.table import composed_decompositions
from asmdnn.network.graph import Node
from asmdnn.network.operators.checks import check_node
from asmdnn.network.operators.signatures import Places, check_count, places_of_outputs
from asmdnn.network.operators.table import operators

MOST_RESULTS = 4096


def check_applied(op: Any, results: Any, name: Any, attributes: dict[str, Any]) -> ForeignOperator | None:
    """What is known of the operator if it is none of ONNX's own.  Raises InvalidArguments for arguments of other kinds
    than `Graph.apply` takes."""
    if not isinstance(op, str):
        raise InvalidArguments(f"op must be the name of an operator, such as 'Conv', not {shown(op)}")
    composed: ForeignOperator | None = composed_decompositions().get(op)
    if op not in operators() and composed is None:
        raise InvalidArguments(f"{shown(op)} is no operator that is known: {did_you_mean(op, operators())}")
    if type(results) is not int or not 1 <= results <= MOST_RESULTS:
        raise InvalidArguments(f"results must be an integer from 1 to {MOST_RESULTS}, not {shown(results)}")
    if not isinstance(name, str):
        raise InvalidArguments(f"name must be a text, not {shown(name)}")
    for key, value in attributes.items():
        if isinstance(value, Iterator):
            raise InvalidArguments(f"{shown(key)} must be an attribute of ONNX, not {shown(value)}: make it a tuple")
    return composed


def check_made(node: Node, composed: ForeignOperator | None) -> None:
    """Raise InvalidArguments for a node that is none of its operator, and say how many results it has."""
    places = Places("?" * composed.outputs) if composed else places_of_outputs(node)
    if places is not None:
        nearest = places.least if len(node.outputs) < places.least else places.most
        check_count(node, "output, and {} makes", places, node.outputs, f": say results={nearest}")
    if composed:
        check_composed(node, composed)
    else:
        check_node(node)
