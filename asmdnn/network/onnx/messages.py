"""Messages of the schema, read from their bytes: each a dict of its fields, those of many values lists or arrays."""

from typing import Any

import numpy as np

from asmdnn.network.onnx.schema import DOUBLE, FLOAT, INT, OCTETS, SCHEMA, TEXT, Field
from asmdnn.network.onnx.wire import BYTES, FIXED32, FIXED64, VARINT, Malformed, WireField, signed, varints, wire_fields

MOST_MESSAGES = 400_000  # in a file: some 60,000 nodes, and some 300 MB of Python objects
DEEPEST = 64  # messages inside one another: some ten branches of If inside one another
SCALARS = {INT: (VARINT, "<i8"), FLOAT: (FIXED32, "<f4"), DOUBLE: (FIXED64, "<f8")}  # how they are stored, packed

Message = dict[str, Any]


class Messages:
    """Reads messages, of one file at most MOST_MESSAGES."""

    def __init__(self) -> None:
        self.count = 0

    def read(self, kind: str, data: memoryview, depth: int = 0) -> Message:
        """The message of a kind that these bytes are.  Raises Malformed."""
        self.count += 1
        if self.count > MOST_MESSAGES:
            raise Malformed(f"it has more than {MOST_MESSAGES} nodes, attributes, tensors and dims: split the model")
        if depth > DEEPEST:
            raise Malformed(f"its messages are nested more than {DEEPEST} deep: flatten the branches of If")
        schema, found = SCHEMA[kind], Message()
        for stored in wire_fields(data):
            field = schema.get(stored.number)
            if field is None:
                continue
            values = self.values(kind, field, stored, depth)
            if field.many:
                found.setdefault(field.name, []).extend(values)
            elif values:
                found[field.name] = values[-1]
        return found

    def values(self, kind: str, field: Field, stored: WireField, depth: int) -> list[Any]:
        """What one stored field says: several values if it is packed."""
        if field.kind in SCALARS:
            return scalars(kind, field, stored)
        if stored.kind != BYTES or isinstance(stored.value, int):
            raise Malformed(f"{kind}.{field.name} has the wire type {stored.kind}, not {BYTES}")
        if field.kind == OCTETS:
            return [stored.value]
        if field.kind != TEXT:
            return [self.read(field.kind, stored.value, depth + 1)]
        try:
            return [str(stored.value, "utf-8")]
        except UnicodeDecodeError:
            raise Malformed(f"{kind}.{field.name} is no UTF-8 text") from None


def scalars(kind: str, field: Field, stored: WireField) -> list[Any]:
    """The numbers of a field: one, or packed ones as an array in a list."""
    wire, packed = SCALARS[field.kind]
    value = stored.value
    if isinstance(value, int):
        if wire != VARINT:
            raise Malformed(f"{kind}.{field.name} is stored as an integer, it must be a {field.kind}")
        return [signed(value)]
    if stored.kind == BYTES and field.many:
        if wire == VARINT:
            return [varints(value)]
        item = np.dtype(packed).itemsize
        if len(value) % item:
            raise Malformed(f"{kind}.{field.name} has {len(value)} bytes, which are no whole numbers of {item}")
        return [np.frombuffer(value, packed)]
    if stored.kind != wire:
        raise Malformed(f"{kind}.{field.name} has the wire type {stored.kind}, not {wire}")
    return [np.frombuffer(value, packed)[0].item()]
