"""Nodes as JSON and back: what files say of those that numpy computes.

A number, a text and None stand for themselves, a list for a tuple; an object says what it is: an array by its number
among those of the file, a number of numpy's as an array without dims, bytes as text.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from asmdnn.errors import NotPackable
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.definition import Value
from asmdnn.network.operators.table import operator_of
from asmdnn.network.passing import name_of, type_named
from asmdnn.planning.decoded import require

BYTES = "latin-1"  # a character for each
Shelve = Callable[[Array], int]
Take = Callable[[int], Array]


def node_text(node: Node, shelve: Shelve) -> list[Any]:
    """Raises NotPackable for an attribute that is a function, or has nodes of its own."""
    attributes = {name: value_text(value, shelve) for name, value in node.attributes.items()}
    return [node.op, list(node.inputs), list(node.outputs), attributes, node.name, node.domain, node.opset]


def node_read(text: Any, take: Take) -> Node:
    """Raises ValueError, and whatever nonsense leads to."""
    op, inputs, outputs, attributes, name, domain, opset = text
    texts = (op, name, domain, *inputs, *outputs)
    require(all(type(x) is str for x in texts) and type(opset) is int, "a node that is none")
    require(isinstance(attributes, dict), "attributes that are none")
    read = {key: value_read(value, take) for key, value in attributes.items()}
    node = Node(op, tuple(inputs), tuple(outputs), read, name, domain=domain, opset=opset)
    require(operator_of(node) is not None, f"{node}, which nobody knows")
    return node


def value_text(value: Any, shelve: Shelve) -> Any:
    """An attribute."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return [value_text(item, shelve) for item in value]
    if type(value) is bytes:
        return {"bytes": value.decode(BYTES)}
    if isinstance(value, np.generic):
        return {"number": shelve(np.asarray(value))}
    if type(value) is np.ndarray:
        return {"array": shelve(value)}
    raise NotPackable(f"a node has {value!r}, which files have no word for")


def value_read(text: Any, take: Take) -> Any:
    if isinstance(text, list):
        return tuple(value_read(item, take) for item in text)
    if not isinstance(text, dict):
        return text
    ((kind, said),) = text.items()
    if kind == "bytes":
        return said.encode(BYTES)
    require(kind in ("array", "number"), "an attribute that is none")
    return take(said) if kind == "array" else take(said)[()]


def known_text(known: Mapping[str, Value], shelve: Shelve) -> dict[str, Any]:
    """What is known of values: type, dims, and the number of the data or None."""
    return {
        name: [name_of(dtype), list(map(int, shape)), None if data is None else shelve(data)]
        for name, (shape, dtype, data) in known.items()
    }


def known_read(text: Mapping[str, Any], take: Take) -> dict[str, Value]:
    """Raises ValueError, and whatever nonsense leads to."""
    found = dict[str, Value]()
    for name, (dtype, dims, number) in text.items():
        data = None if number is None else take(number)
        value = found[name] = Value(tuple(dims), type_named(dtype), data)
        require(all(type(n) is int and n >= 0 for n in value.shape), "dims that are none")
        require(data is None or (data.shape, data.dtype) == (value.shape, value.dtype), f"{name} is not its data")
    return found
