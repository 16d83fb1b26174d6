"""Operands of products of bytes and halves: plain matrices, transposed ones, and packed ones after their header."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asmdnn.blas.checks import checked_trans
from asmdnn.blas.formats import format_of
from asmdnn.blas.header import HEADER_BYTES, check_room, fields_of, header_of
from asmdnn.blas.packing import signed
from asmdnn.errors import InvalidArguments, counted
from asmdnn.memory import Memory
from asmdnn.ops.arguments import AnyArray, output
from asmdnn.ops.calls import memory_at
from asmdnn.ops.typed import kind_of, named, typed
from asmdnn.primitives.core.engine import Engine, engine_or_default
from asmdnn.records import dataclass, replace
from asmdnn.types import DATA_TYPES, DataType, u8

SHIFT = 128  # of u8 that is kept as s8


@dataclass(frozen=True, slots=True, eq=False)
class BlasOperand:
    """A matrix as products take it, and what is added to each of its elements."""

    elements: Any  # an array of dims, or a Memory of panels
    dims: tuple[int, int]
    offset: int = 0

    def added(self, offset: int) -> "BlasOperand":
        return replace(self, offset=self.offset + offset)


def operand(name: str, trans: str, x: Any, types: tuple[DataType, ...], engine: Engine | None) -> BlasOperand:
    """op(x) of one of these types; as right operand u8 becomes s8 and an offset.  Raises InvalidArguments."""
    if checked_trans(name, trans) == "P":
        return unpacked(name, x, types, engine_or_default(engine))
    array = typed(name, x)
    if array.ndim != 2 or (kind := kind_of(array)) not in types:
        wanted = f"a matrix of {' or '.join(map(str, types))}"
        raise InvalidArguments(f"{name} must be {wanted}, not {kind_of(array)} of {counted(array.ndim, 'dim')}")
    array = array.T if trans == "T" else array
    is_signed = name == "b" and kind == u8
    return BlasOperand(signed(array) if is_signed else array, array.shape, SHIFT * is_signed)


def unpacked(name: str, x: Any, types: tuple[DataType, ...], engine: Engine) -> BlasOperand:
    """A packed operand, whose header says what is expected.  Raises InvalidArguments."""
    levels = {dtype.name: engine.isa for dtype in types}
    header = header_of(name, fields_of(name, x), name.upper(), levels)
    dtype, dims = DATA_TYPES[header.dtype], (header.rows, header.columns)
    desc = format_of(header.identifier, dims, dtype, engine)
    check_room(name, x.nbytes, header, desc.size_bytes)
    octets = x[HEADER_BYTES : HEADER_BYTES + desc.size_bytes]
    if name == "b":
        return BlasOperand(Memory(desc, octets, padding_is_zero=True), dims, SHIFT * (dtype == u8))
    rows = np.ndarray(dims, dtype.numpy, octets, strides=desc.strides_bytes)
    return BlasOperand(named(rows, dtype), dims)


def target_of(c: Any, dtype: np.dtype[Any], x: BlasOperand, y: BlasOperand) -> AnyArray:
    """The memory of c, as a matrix that can be written.  Raises InvalidArguments where sizes do not fit."""
    target = output("c", c, dtype)
    (m, k), (rows, n) = x.dims, y.dims
    if k != rows:
        raise InvalidArguments(
            f"b has {counted(rows, 'row')}, a has {counted(k, 'column')} (after transposing): they must be equal"
        )
    if target.shape != (m, n):
        raise InvalidArguments(f"c has dims {target.shape}, a and b make it {(m, n)}")
    memory_at("c", target)
    if not target.flags.writeable:
        raise InvalidArguments("c is read-only, it must be writable")
    return target


def check_apart(target: AnyArray, read: Mapping[str, Any]) -> None:
    """Raise InvalidArguments for operands that lie where c does."""
    for name, x in read.items():
        if np.may_share_memory(target, np.asarray(x)):
            raise InvalidArguments(f"c overlaps {name}, give it memory of its own")
