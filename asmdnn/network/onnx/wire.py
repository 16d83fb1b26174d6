"""Protocol buffers' wire format, as much of it as ONNX files use, over bytes that nobody has checked.

A message is a row of fields: a varint `number << 3 | type`, then by type 0 a varint, 1 eight bytes, 2 a length and so
many bytes, 5 four bytes.  Source: https://protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
SIZES = {FIXED64: 8, FIXED32: 4}
LARGEST_FILE_BYTES = 2 << 30  # bytes, protocol buffers' own limit; larger models keep their weights in files beside
LONGEST_VARINT = 10  # bytes, of a 64-bit number


class Malformed(InvalidArguments):
    """The bytes are no message; who reads the file adds its name."""


class NotRead(Malformed):
    """What an intact model may have, and is not read."""


class WireField(NamedTuple):
    """A field as it is stored: of VARINT the number, of the others their bytes."""

    number: int
    kind: int
    value: int | memoryview


def wire_fields(data: memoryview) -> Iterator[WireField]:
    """The fields of a message, in order; nothing is copied.  Raises Malformed."""
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield WireField(number, kind, value)
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind in SIZES:
            size = SIZES[kind]
        else:
            raise Malformed(f"field {number} has the wire type {kind}, which no ONNX file uses")
        if size > end - at:
            raise Malformed(f"field {number} claims {size} bytes where {end - at} are left: the file is cut off")
        yield WireField(number, kind, data[at : at + size])
        at += size


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """(the number at a position, from 0 to 2**64 - 1; the position after it).  Raises Malformed."""
    value = 0
    for i, octet in enumerate(data[at : at + LONGEST_VARINT]):
        value |= (octet & 127) << 7 * i
        if octet < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at + i + 1
    raise Malformed(f"the number at byte {at} of a message has no end")


def serialized(source: Any) -> Any:
    """The bytes of an onnx.ModelProto, or of what else writes itself as one does; anything else as it is.

    Raises InvalidArguments for one that cannot be written, such as one of more than 2 GiB.
    """
    if not hasattr(type(source), "SerializeToString"):
        return source
    try:
        return bytes(source.SerializeToString())
    except Exception as error:  # whatever the caller's object does
        way_out = "save it with its weights in a file beside it, and give the path"
        raise InvalidArguments(f"the {type(source).__name__} cannot be written ({error}): {way_out}") from None


def signed(value: int) -> int:
    """The int64 of the same bits."""
    return value - (1 << 64) if value >> 63 else value


def varints(data: memoryview) -> npt.NDArray[np.int64]:
    """A packed field of numbers.  Raises Malformed."""
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 128)
    starts = np.append(0, ends[:-1] + 1)[: len(ends)]
    lengths = ends - starts + 1
    if (ends[-1] + 1 if len(ends) else 0) != len(octets) or lengths.max(initial=0) > LONGEST_VARINT:
        raise Malformed("a packed field has a number without an end")
    values = np.zeros(len(ends), np.uint64)
    for i in range(int(lengths.max(initial=0))):
        has = lengths > i
        values[has] |= (octets[starts[has] + i] & 127).astype(np.uint64) << np.uint64(7 * i)
    return values.view(np.int64)
