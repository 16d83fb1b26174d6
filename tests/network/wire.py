"""A tiny writer of ONNX files, from the specification alone: messages are lists of (field number, value)."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

CODES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
Fields = Iterable[tuple[int, Any]]


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    octets = []
    while True:
        octets.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(octets)


def message(fields: Fields) -> bytes:
    """int: varint; float: four bytes; text, bytes and messages: with their length."""
    out = list[bytes]()
    for number, value in fields:
        if isinstance(value, int):
            out.append(varint(number << 3) + varint(value))
        elif isinstance(value, float):
            out.append(varint(number << 3 | 5) + struct.pack("<f", value))
        else:
            data = value.encode() if isinstance(value, str) else bytes(value)
            out.append(varint(number << 3 | 2) + varint(len(data)) + data)
    return b"".join(out)


def tensor(array: Any, name: str = "", **more: Any) -> bytes:
    array = np.asarray(array)
    fields: list[tuple[int, Any]] = [(1, n) for n in array.shape] + [(2, CODES[array.dtype.name]), (8, name)]
    return message([*fields, *more.get("fields", [(9, array.tobytes())])])


def attribute(name: str, value: Any) -> bytes:
    if isinstance(value, float):
        return message([(1, name), (2, value), (20, 1)])
    if isinstance(value, list) and value and isinstance(value[0], float | str):
        field, kind = (7, 6) if isinstance(value[0], float) else (9, 8)
        return message([(1, name), *((field, x) for x in value), (20, kind)])
    if isinstance(value, int):
        return message([(1, name), (3, value), (20, 2)])
    if isinstance(value, str):
        return message([(1, name), (4, value), (20, 3)])
    if isinstance(value, np.ndarray):
        return message([(1, name), (5, tensor(value)), (20, 4)])
    if isinstance(value, bytes):  # a graph
        return message([(1, name), (6, value), (20, 5)])
    return message([(1, name), *((8, n) for n in value), (20, 7)])


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any) -> bytes:
    own = [(5, attribute(key, value)) for key, value in attributes.items()]
    return message([*((1, x) for x in inputs), *((2, x) for x in outputs), (3, name), (4, op), *own])


def value_info(name: str, shape: Sequence[int | str] | None = (), dtype: str = "float32") -> bytes:
    dims = [(1, message([(1, n) if isinstance(n, int) else (2, n)])) for n in shape or ()]
    shaped = [] if shape is None else [(2, message(dims))]
    return message([(1, name), (2, message([(1, message([(1, CODES[dtype]), *shaped]))]))])


def graph(
    nodes: Sequence[bytes],
    inputs: Mapping[str, Sequence[int | str] | None],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> bytes:
    tensors = [(5, tensor(array, name)) for name, array in (constants or {}).items()]
    declared = [(11, value_info(name, shape, (dtypes or {}).get(name, "float32"))) for name, shape in inputs.items()]
    results = [(12, value_info(x)) for x in outputs]
    return message([*((1, n) for n in nodes), (2, "small"), *tensors, *declared, *results])


def model(body: bytes, opset: int = 17) -> bytes:
    return message([(1, 8), (2, "tests"), (7, body), (8, message([(2, opset)]))])


def small() -> bytes:
    """A convolution with an If after it: every kind of message that the reader knows."""
    branch = graph([node("Identity", ["c"], ["b"])], {}, ["b"])
    other = graph([node("Constant", [], ["d"], value=np.float32([1, 2]))], {}, ["d"])
    nodes = [
        node("Conv", ["x", "w", "bias"], ["y"], "first", pads=[1, 1, 1, 1], group=1, auto_pad="NOTSET"),
        node("LeakyRelu", ["y"], ["z"], alpha=0.25),
        node("If", ["is"], ["c2"], then_branch=branch, else_branch=other),
    ]
    constants = {
        "w": np.ones((4, 3, 3, 3), np.float32), "bias": np.zeros(4, np.float32), "is": np.array(True),
        "c": np.float32([3, 4]),
    }  # fmt: skip
    return model(graph(nodes, {"x": (1, 3, "h", 8)}, ["z", "c2"], constants))
