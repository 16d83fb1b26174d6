"""Floats of 16 bits in files, and at the ends of a network: computed with in f32, and rounded where they leave it.

A value that a file declares as f16 or bf16 is f32 inside, so that all kernels and rewrites take it; weights widen
without loss.  A Cast stands where such an input comes in or an output goes out; kernels convert as they load and store,
or a reorder does.  What a file's own Casts would round in between is not rounded.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from asmdnn.errors import Unimplemented
from asmdnn.network.element_types import CODES
from asmdnn.network.graph import Node
from asmdnn.network.narrow.storage import FILE
from asmdnn.network.operators.definition import Value
from asmdnn.network.passing import F32, HALVES, is_half, type_named
from asmdnn.network.static import StaticGraph, needed

TYPE_WORDS = {"to", "dtype", "output_dtype"}  # attributes that say a result's type
BY_BITS = "BitCast"  # sees how a value lies


def with_f32_inside(graph: StaticGraph, io: str, states: Collection[str]) -> StaticGraph:
    """The graph with f32 in the place of f16 and bf16.  io: the type of float inputs and outputs; states: those that
    states are, which keep theirs: what is written to one is rounded there.  Raises Unimplemented."""
    types = {name: type_of_end(graph.values[name], io, name in states) for name in graph.inputs}
    types_out = {name: type_of_end(graph.values[value], io, name in states) for name, value in graph.outputs.items()}
    types_out |= {name: F32 for name in graph.outputs if name in states and is_half(types_out[name])}
    changed = any(map(is_half, {value.dtype for value in graph.values.values()}))
    changed |= any(is_half(dtype) for dtype in (*types.values(), *types_out.values()))
    if not changed or any(node.op == BY_BITS and not node.domain for node in graph.nodes):
        return graph
    return Widening(graph, types, types_out).graph()


def type_of_end(value: Value, io: str, is_fixed: bool) -> np.dtype[Any]:
    """Of an input or output.  Raises Unimplemented without the package that has bf16."""
    if is_fixed or io == FILE or not (value.dtype == F32 or is_half(value.dtype)):
        return value.dtype
    name = next((name for name, dtype in HALVES.items() if dtype.name == io), F32.name)
    try:
        return type_named(name)
    except ValueError:
        message = f"io={io!r} needs numpy's type for it, which ml_dtypes has: pip install ml_dtypes"
        raise Unimplemented(message) from None


class Widening:
    """One pass.  renamed: values by their names in the file."""

    def __init__(self, graph: StaticGraph, inputs: dict[str, np.dtype[Any]], outputs: dict[str, np.dtype[Any]]) -> None:
        self.source, self.inputs, self.outputs = graph, inputs, outputs
        self.values = {name: in_f32(value) for name, value in graph.values.items()}
        self.renamed: dict[str, str] = {}
        self.nodes: list[Node] = []

    def graph(self) -> StaticGraph:
        for name, dtype in self.inputs.items():
            self.values[name] = Value(self.source.shape(name), dtype)
            if is_half(dtype):
                self.renamed[name] = self.cast(name, F32)
        for node in self.source.nodes:
            self.node(node)
        outputs = {name: self.output(value, self.outputs[name]) for name, value in self.source.outputs.items()}
        return StaticGraph(self.source.inputs, outputs, needed(self.nodes, outputs.values()), self.values)

    def node(self, node: Node) -> None:
        inputs = tuple(self.renamed.get(name, name) for name in node.inputs)
        if node.op == "Cast" and not node.domain and self.is_one_type(node.inputs[0], node.outputs[0]):
            self.renamed[node.outputs[0]] = inputs[0]
            return
        attributes = {key: CODES[F32.name] if is_code(key, value) else value for key, value in node.attributes.items()}
        self.nodes.append(
            Node(node.op, inputs, node.outputs, attributes, name=node.name, domain=node.domain, opset=node.opset)
        )

    def is_one_type(self, source: str, result: str) -> bool:
        """Whether both are f32 inside, and one was not."""
        before = [self.source.values[name].dtype for name in (source, result)]
        return all(x == F32 or is_half(x) for x in before) and any(map(is_half, before))

    def output(self, value: str, dtype: np.dtype[Any]) -> str:
        """What is returned for a value."""
        own = self.renamed.get(value, value)
        if not is_half(dtype):
            return own
        known = self.values[own]
        if known.data is None:
            return self.cast(own, dtype)
        name = f"{own}, known as {dtype.name}"
        with np.errstate(all="ignore"):
            self.values[name] = Value(known.shape, dtype, known.data.astype(dtype))
        return name

    def cast(self, source: str, dtype: np.dtype[Any]) -> str:
        """A Cast at an end."""
        name = f"{source}, passed as {dtype.name}"
        if name not in self.values:
            self.values[name] = Value(self.values[source].shape, dtype)
            self.nodes.append(Node("Cast", (source,), (name,), {"to": CODES[dtype.name]}, name="", domain="", opset=13))
        return name


def in_f32(value: Value) -> Value:
    if not is_half(value.dtype):
        return value
    return Value(value.shape, F32, None if value.data is None else value.data.astype(np.float32))


def is_code(key: str, value: Any) -> bool:
    return key in TYPE_WORDS and value in (CODES[name] for name in HALVES)
