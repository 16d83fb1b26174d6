"""Graphs that run with what was learned: parameters as constants, and nodes as inference computes them."""

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, reason_of, shown, shown_path
from asmdnn.files import replace_file
from asmdnn.network.arrays import Array
from asmdnn.network.gradients.composed import is_training
from asmdnn.network.graph import Body, Model, Node, TensorType
from asmdnn.network.inputs import OTHER_DIMS, as_input
from asmdnn.network.onnx.writer import model_bytes
from asmdnn.network.operators.own import OWN
from asmdnn.network.static import needed
from asmdnn.records import replace

F32, OPSET = np.dtype(np.float32), 22


def with_values(graph: Any, values: Any, wanted: Sequence[str]) -> Any:
    """A copy of a graph whose parameters, and other states that `values` has, are constants.

    values: arrays by name; wanted: values, of whose inputs the copy has no others.  Batch norm
    then takes running statistics, and dropout drops nothing.  Raises InvalidArguments for values that are neither, and
    for a parameter that they lack.
    """
    if not isinstance(values, Mapping):
        raise InvalidArguments(f"parameters must be a training step, or arrays by name, not {shown(values)}")
    made = graph._copy()
    for name in made._parameters:
        if name not in values:
            raise InvalidArguments(f"parameters lacks {shown(name)}, which the graph has")
    constants = [name for name, state in made._states.items() if name in values and not state.now]
    for name in constants:
        dims = made._inputs[name].shape
        array = as_input(f"parameter {name}", values[name], dims, F32, OTHER_DIMS).copy()
        array.setflags(write=False)
        made._constants[name] = array
        for kept in (made._inputs, made._states, made._parameters):
            kept.pop(name, None)
    made._nodes = [inferred(node) for node in made._nodes if not is_write(node, constants)]
    ends = (*wanted, *(state.written for state in made._states.values() if state.written))
    made._nodes = list(needed(made._nodes, ends))
    read = {*ends, *made._states}.union(*(node.inputs for node in made._nodes))
    made._inputs = {name: declared for name, declared in made._inputs.items() if name in read}
    return made


def is_write(node: Node, names: list[str]) -> bool:
    return node.op == "Written" and node.domain == OWN and node.get("state") in names


def inferred(node: Node) -> Node:
    """The node as inference computes it."""
    if is_training(node) and not node.domain:
        kept = {name: value for name, value in node.attributes.items() if name != "training_mode"}
        return replace(node, attributes=kept, outputs=node.outputs[:1])
    return replace(node, inputs=node.inputs[:2]) if node.op == "Dropout" and not node.domain else node


def export_onnx(path: str | PathLike[str], graph: Any, outputs: Mapping[str, str], types: Mapping[str, Any]) -> None:
    """Write a graph of constants as an ONNX file.  outputs: the value after each; types: (dims, numpy type) of them.

    Raises InvalidArguments for a file that cannot be written, and for what no file can have.
    """
    ends = [Node("Identity", (value,), (name,), attributes={}, opset=OPSET) for name, value in outputs.items()]
    nodes = needed((*graph._nodes, *ends), [*outputs])
    own = next((node for node in nodes if node.domain == OWN), None)
    if own is not None:
        raise InvalidArguments(f"{own} is an operator of this library, which no ONNX file has")
    read = {name for node in nodes for name in node.inputs}
    constants: dict[str, Array] = {name: array for name, array in graph._constants.items() if name in read}
    body = Body(graph.name, graph._inputs, tuple(outputs), nodes, constants)
    opsets = {node.opset for node in nodes if node not in ends and not node.domain}
    if len(opsets) > 1:
        raise InvalidArguments(f"nodes are of operator sets {sorted(opsets)}, and an ONNX file has one")
    declared = {name: TensorType(np.dtype(dtype), tuple(dims)) for name, (dims, dtype) in types.items()}
    data = model_bytes(Model(body, {"": (opsets or {OPSET}).pop()}), declared)
    try:
        replace_file(Path(fspath(path)), data)
    except MemoryError:
        raise
    except Exception as error:  # OSError, or whatever the caller's object does
        raise InvalidArguments(f"the model cannot be written to {shown_path(path)}: {reason_of(error)}") from None
