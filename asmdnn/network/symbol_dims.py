"""The dims and the type of a value while its graph is being written."""

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.declaring import shape_of
from asmdnn.network.folding.folding import Folding
from asmdnn.network.folding.prepared import prepared
from asmdnn.network.graph import Body, Node, TensorType, reads_of
from asmdnn.network.operators.definition import Value


def symbol_dims(symbol: Any) -> tuple[int, ...]:
    """Of a Symbol.  Raises InvalidArguments where inputs have open dims, or nodes do not fit their operands."""
    return value_of(symbol).shape


def value_of(symbol: Any) -> Value:
    """What is known of a value; data of it where it depends on constants and dims alone.  The graph keeps it, so that
    a chain of values is walked once.  Raises as `symbol_dims`."""
    graph, name = symbol.graph, symbol.name
    known: dict[str, Value] = graph._known
    if name not in known:
        nodes = unknown(graph._nodes, name, known)
        made = {name for node in nodes for name in node.outputs if name}
        read = reads_of(Body(graph.name, {}, (), nodes, {})) | ({name} - made)
        constants = {key: data for key, data in graph._constants.items() if key in read}
        folding = Folding(prepared(Body(graph.name, {}, (), nodes, constants)))
        for key in read - constants.keys():
            declared = graph._inputs.get(key)
            folding.values[key] = known[key] if declared is None else of_input(name, key, declared)
        folding.add_all()
        tensors = ((key, folding.known(key)) for key in made | read)
        known |= {key: folding.values[kept] for key, kept in tensors if kept in folding.values}
    if name not in known:
        raise InvalidArguments(f"{name} is a list, only tensors have dims: ask an element of it")
    return known[name]


def unknown(nodes: Sequence[Node], name: str, known: Container[str]) -> tuple[Node, ...]:
    """Those that a value depends on, back to what is known."""
    wanted, found = {name}, list[Node]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted.update(read for read in node.inputs if read not in known)
            found.append(node)
    return tuple(reversed(found))


def of_input(name: str, key: str, declared: TensorType) -> Value:
    if declared.shape is None or not all(isinstance(n, int) for n in declared.shape):
        what = f"{name} has no dims before its graph is compiled, as input {key} is {declared}"
        raise InvalidArguments(f"{what}: say its dims, or ask net.graph.values of the network")
    return Value(shape_of(key, declared, None), declared.dtype)


def type_of(symbol: Any) -> tuple[tuple[Any, ...], np.dtype[Any]]:
    """Dims and type; of an input as it was declared, with names of open dims.  Raises as `symbol_dims`."""
    declared = symbol.graph._inputs.get(symbol.name)
    if declared is not None and declared.shape is not None:
        return declared.shape, declared.dtype
    found = value_of(symbol)
    return found.shape, found.dtype
