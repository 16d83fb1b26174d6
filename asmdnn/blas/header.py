"""The header of packed operands: what the bytes after it are."""

from collections.abc import Mapping
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from asmdnn.blas.checks import MAX_SIZE
from asmdnn.errors import InvalidArguments

Packed = npt.NDArray[np.uint8]

HEADER = Struct("<8s8s16sqq8s8x")  # magic, identifier, ISA level, rows, columns, element type: none for f32
HEADER_BYTES = HEADER.size  # 64, so that the elements keep the buffer's alignment
MAGIC = b"asmgemm1"


class Header(NamedTuple):
    """identifier: "A" or "B".  isa: the level whose kernels read it.  dtype: the name of the elements' type."""

    identifier: str
    isa: str
    rows: int
    columns: int
    dtype: str = "f32"

    def octets(self) -> Packed:
        """As a packed operand has it in front."""
        named = "" if self.dtype == "f32" else self.dtype
        fields = MAGIC, self.identifier.encode(), self.isa.encode(), self.rows, self.columns, named.encode()
        return np.frombuffer(HEADER.pack(*fields), np.uint8)


def fields_of(name: str, x: Any) -> tuple[Any, ...]:
    """The fields of a packed operand, unchecked.  Raises InvalidArguments for what has none."""
    is_bytes = isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim == 1
    if is_bytes and x.size >= HEADER_BYTES and x.flags.c_contiguous:
        return HEADER.unpack_from(x.data)
    raise InvalidArguments(f"{name} must be the array of bytes that gemm_pack made")


def header_of(name: str, fields: tuple[Any, ...], side: str, levels: Mapping[str, str]) -> Header:
    """The header of an operand of that side, of one of the types in `levels`, for its level.  Raises InvalidArguments
    for another one."""
    magic, identifier, level, rows, columns, dtype = fields
    if magic != MAGIC:
        raise InvalidArguments(f"{name} does not start with the header of gemm_pack")
    header = Header(text(identifier), text(level), rows, columns, text(dtype) or "f32")
    if header.identifier != side:
        raise InvalidArguments(f"{name} was packed as {header.identifier!r}, here it is used as {side!r}")
    if (isa := levels.get(header.dtype)) is None:
        raise InvalidArguments(f"{name} was packed of {header.dtype}, here it must be of {' or '.join(levels)}")
    if header.isa != isa:
        raise InvalidArguments(f"{name} was packed for {header.isa}, this engine computes with {isa}: pack it again")
    if not (0 <= rows <= MAX_SIZE and 0 <= columns <= MAX_SIZE):
        raise InvalidArguments(f"{name} has a damaged header: {rows} x {columns}")
    return header


def text(field: bytes) -> str:
    return field.rstrip(b"\0").decode("latin-1")


def check_room(name: str, nbytes: int, header: Header, size_bytes: int) -> None:
    """Raise InvalidArguments where there are fewer bytes than such an operand has."""
    if nbytes < HEADER_BYTES + size_bytes:
        shape = f"{header.rows} x {header.columns}"
        raise InvalidArguments(f"{name} has {nbytes} bytes, {shape} need {HEADER_BYTES + size_bytes}")
