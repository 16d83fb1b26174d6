"""The messages of onnx.proto3, as much as is read of them: for each the fields by number.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3.  Unknown fields are passed over.
"""

from typing import NamedTuple

INT, FLOAT, DOUBLE, TEXT, OCTETS = "int", "float", "double", "text", "octets"


class Field(NamedTuple):
    """kind: a scalar, or the name of a message in SCHEMA."""

    name: str
    kind: str
    many: bool = False


SCHEMA: dict[str, dict[int, Field]] = {
    "ModelProto": {
        1: Field("ir_version", INT),
        2: Field("producer", TEXT),
        7: Field("graph", "GraphProto"),
        8: Field("opsets", "OperatorSetIdProto", True),
        14: Field("metadata", "StringStringEntryProto", True),
        25: Field("functions", "FunctionProto", True),
    },
    "OperatorSetIdProto": {1: Field("domain", TEXT), 2: Field("version", INT)},
    "FunctionProto": {1: Field("name", TEXT), 10: Field("domain", TEXT)},
    "GraphProto": {
        1: Field("nodes", "NodeProto", True),
        2: Field("name", TEXT),
        5: Field("initializers", "TensorProto", True),
        11: Field("inputs", "ValueInfoProto", True),
        12: Field("outputs", "ValueInfoProto", True),
        15: Field("sparse_initializers", OCTETS, True),
    },
    "NodeProto": {
        1: Field("inputs", TEXT, True),
        2: Field("outputs", TEXT, True),
        3: Field("name", TEXT),
        4: Field("op", TEXT),
        5: Field("attributes", "AttributeProto", True),
        7: Field("domain", TEXT),
    },
    "AttributeProto": {
        1: Field("name", TEXT),
        2: Field("f", FLOAT),
        3: Field("i", INT),
        4: Field("s", OCTETS),
        5: Field("t", "TensorProto"),
        6: Field("g", "GraphProto"),
        7: Field("floats", FLOAT, True),
        8: Field("ints", INT, True),
        9: Field("strings", OCTETS, True),
        10: Field("tensors", "TensorProto", True),
        11: Field("graphs", "GraphProto", True),
        20: Field("type", INT),
        21: Field("reference", TEXT),
    },
    "TensorProto": {
        1: Field("dims", INT, True),
        2: Field("data_type", INT),
        4: Field("float_data", FLOAT, True),
        5: Field("int32_data", INT, True),
        6: Field("string_data", OCTETS, True),
        7: Field("int64_data", INT, True),
        8: Field("name", TEXT),
        9: Field("raw_data", OCTETS),
        10: Field("double_data", DOUBLE, True),
        11: Field("uint64_data", INT, True),
        13: Field("external_data", "StringStringEntryProto", True),
        14: Field("data_location", INT),
    },
    "StringStringEntryProto": {1: Field("key", TEXT), 2: Field("value", TEXT)},
    "ValueInfoProto": {1: Field("name", TEXT), 2: Field("type", "TypeProto")},
    "TypeProto": {
        1: Field("tensor", "TypeProto.Tensor"),
        4: Field("sequence", OCTETS),
        5: Field("map", OCTETS),
        8: Field("sparse", OCTETS),
        9: Field("optional", OCTETS),
    },
    "TypeProto.Tensor": {1: Field("element", INT), 2: Field("shape", "TensorShapeProto")},
    "TensorShapeProto": {1: Field("dims", "Dimension", True)},
    "Dimension": {1: Field("value", INT), 2: Field("parameter", TEXT)},
}
