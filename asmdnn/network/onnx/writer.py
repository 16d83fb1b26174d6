"""From a Model to the bytes of an ONNX file: messages as lists of (field number, value), numbers as schema.py has them.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3 and https://protobuf.dev/programming-guides/encoding.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.jit.leb128 import uleb
from asmdnn.network.element_types import CODES, PACKED_BITS
from asmdnn.network.graph import Array, Body, Model, Node, TensorType
from asmdnn.network.onnx.wire import BYTES, FIXED32, LARGEST_FILE_BYTES, VARINT

IR_VERSIONS = {18: 8, 20: 9, 22: 10, 23: 11}  # of files up to an operator set; below 8 nothing is gained
NEWEST_IR = 12
Fields = Iterable[tuple[int, Any]]


def model_bytes(model: Model, outputs: Mapping[str, TensorType]) -> bytes:
    """The file.  outputs: the types of the graph's, which a Model does not have.

    Raises InvalidArguments for a function of Python's, states, and models beyond 2 GiB.
    """
    if model.states:
        raise InvalidArguments("a network with state has no ONNX file: write one of a graph without states")
    opset = model.opsets.get("", 0)
    ir_version = next((ir for newest, ir in IR_VERSIONS.items() if opset <= newest), NEWEST_IR)
    opsets = [(8, message([(1, domain), (2, version)])) for domain, version in model.opsets.items()]
    pairs = [(14, message([(1, key), (2, value)])) for key, value in model.metadata.items()]
    graph = body_bytes(model.body, outputs)
    data = message([(1, ir_version), (2, model.producer or "asmdnn"), (7, graph), *opsets, *pairs])
    if len(data) > LARGEST_FILE_BYTES:
        raise InvalidArguments(f"the model has {len(data)} bytes, an ONNX file at most {LARGEST_FILE_BYTES}")
    return data


def body_bytes(body: Body, outputs: Mapping[str, TensorType]) -> bytes:
    """A GraphProto; a branch says no types of its outputs, which its nodes imply."""
    tensors = [(5, tensor_bytes(array, name)) for name, array in body.constants.items()]
    inputs = [(11, value_info(name, declared)) for name, declared in body.inputs.items()]
    results = [(12, value_info(name, outputs[name]) if outputs else message([(1, name)])) for name in body.outputs]
    nodes = [(1, node_bytes(node)) for node in body.nodes]
    return message([*nodes, (2, body.name or "graph"), *tensors, *inputs, *results])


def node_bytes(node: Node) -> bytes:
    own = [(5, attribute_bytes(node, name, value)) for name, value in node.attributes.items()]
    ends = [*((1, name) for name in node.inputs), *((2, name) for name in node.outputs)]
    return message([*ends, (3, node.name), (4, node.op), *own, (7, node.domain)])


def attribute_bytes(node: Node, name: str, value: Any) -> bytes:
    """An AttributeProto: fields 2 to 6 have single values of the types 1 to 5, 7 to 11 several of the types 6 to 10."""
    several = isinstance(value, tuple | list)
    elements = [element(one) for one in (value if several else (value,))]
    written = [one for one in elements if one is not None]
    if len(written) < len(elements):
        raise InvalidArguments(f"{node} has {name}={shown(value)}, which no ONNX file can have")
    kind = next((field for field, _ in written), 3) + 5 * several
    return message([(1, name), *((kind, data) for _, data in written), (20, kind - 1)])


def element(value: Any) -> tuple[int, Any] | None:
    """(the field of a single value, what is written), None for what none can have."""
    if isinstance(value, float | np.floating):
        return 2, float(value)
    if isinstance(value, int | np.integer):
        return 3, int(value)
    if isinstance(value, str):
        return 4, value
    if isinstance(value, np.ndarray):
        return 5, tensor_bytes(value)
    return (6, body_bytes(value, {})) if isinstance(value, Body) else None


def tensor_bytes(array: Array, name: str = "") -> bytes:
    """A TensorProto, its elements as raw bytes, the low one first where a byte has several."""
    code = CODES[array.dtype.name]
    bits = PACKED_BITS.get(code)
    raw = np.ascontiguousarray(array).tobytes()
    if bits:
        single = np.unpackbits(np.frombuffer(raw, np.uint8)[:, np.newaxis], axis=1, bitorder="little")[:, :bits]
        raw = np.packbits(single.ravel(), bitorder="little").tobytes()
    return message([*((1, n) for n in array.shape), (2, code), (8, name), (9, raw)])


def value_info(name: str, declared: TensorType) -> bytes:
    fields: list[tuple[int, Any]] = [(1, CODES[declared.dtype.name])]
    if declared.shape is not None:
        fields.append((2, message((1, dimension(n)) for n in declared.shape)))
    return message([(1, name), (2, message([(1, message(fields))]))])


def dimension(n: int | str | None) -> bytes:
    return message([] if n is None else [(1, n) if isinstance(n, int) else (2, n)])


def message(fields: Fields) -> bytes:
    """int: a varint; float: four bytes; text, bytes and messages: with their length."""
    out = list[bytes]()
    for number, value in fields:
        if isinstance(value, int):
            out += [varint(number << 3 | VARINT), varint(value)]
        elif isinstance(value, float):
            out += [varint(number << 3 | FIXED32), struct.pack("<f", value)]
        else:
            data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            out += [varint(number << 3 | BYTES), varint(len(data)), data]
    return b"".join(out)


def varint(value: int) -> bytes:
    """Of an int64's bits."""
    return uleb(value & (1 << 64) - 1)
