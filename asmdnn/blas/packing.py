"""Operands in the order of kernels, after MKL's cblas_sgemm_pack and those of bytes and halves."""

from typing import Any

import numpy as np

from asmdnn.blas.checks import checked_identifier, matrix, scalar, size_of
from asmdnn.blas.formats import PACKED_TYPES, format_of, level_of
from asmdnn.blas.header import HEADER_BYTES, Header, Packed
from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.memory import MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import F32, AnyArray, output
from asmdnn.ops.calls import ArrayCall, calls, memory_at
from asmdnn.ops.packed import aligned
from asmdnn.ops.quantized import is_typed
from asmdnn.ops.typed import kind_of, typed
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key, engine_or_default
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.types import DataType, f32, u8

SIGN_BIT = np.uint8(0x80)  # u8 less 128 is s8, which has the same bits but for this one

find = calls.entries.get


def gemm_pack_get_size(
    identifier: str, m: int, n: int, k: int, engine: Engine | None = None, dtype: DataType = f32
) -> int:
    """Bytes of the packed operand "A" (m x k) or "B" (k x n), of f32, bf16, f16, u8 or s8."""
    sizes = [size_of(name, size) for name, size in (("m", m), ("n", n), ("k", k))]
    dims = (sizes[0], sizes[2]) if checked_identifier(identifier) == "A" else (sizes[2], sizes[1])
    return HEADER_BYTES + format_of(identifier, dims, dtype, engine_or_default(engine)).size_bytes


def gemm_pack(identifier: str, trans: str, alpha: float, x: Any, out: Any = None, engine: Engine | None = None) -> Any:
    """alpha * op(x) in the order that the kernels of this ISA level read; "A" is the left operand, "B" the right one.

    x: a matrix of f32, or of bf16, f16, u8 or s8, which have no alpha but 1.  `out` is anything that exports at least
    gemm_pack_get_size(...) bytes as uint8, 64-byte aligned where speed matters; a new array is made if it is None.
    Returns it.  Raises InvalidArguments.
    """
    if type(trans) is not str or trans not in ("N", "T"):
        raise InvalidArguments(f"transx must be 'N' or 'T', not {shown(trans)}")
    alpha = alpha if type(alpha) is float else scalar("alpha", alpha)
    source = x if type(x) is np.ndarray and x.dtype is F32 and x.ndim == 2 else packable(x, alpha)
    if alpha != 1.0:
        source = allocated(np.multiply, source, np.float32(alpha), dtype=np.float32)
    kind = checked_identifier(identifier), trans, kind_of(source).name
    key = ("gemm_pack", *kind, source.shape, source.strides, engine_key(engine))
    call: Any = find(key)
    if call is None:
        call = calls.put(key, prepare(identifier, source.T if trans == "T" else source, engine))
    if call.is_signed:
        source = signed(source)
    size = HEADER_BYTES + call.target.size_bytes
    packed = aligned(size)[0] if out is None else checked_bytes(out, size)
    addresses = call.addresses_of((source, packed))
    addresses[1] += HEADER_BYTES
    if out is not None:
        call.check_output(packed.flags.writeable, addresses)
    packed[:HEADER_BYTES] = call.header
    if call.target.size_bytes:
        call.run(addresses)
    return packed if out is None else out


def packable(x: Any, alpha: float) -> AnyArray:
    """A matrix of a type that can be packed.  Raises InvalidArguments."""
    if not is_typed(x):
        return matrix("x", x)
    source = typed("x", x)
    if source.ndim != 2 or kind_of(source) not in PACKED_TYPES:
        wanted = f"a matrix of {', '.join(map(str, PACKED_TYPES))}"
        raise InvalidArguments(f"x must be {wanted}, not {kind_of(source)} of {counted(source.ndim, 'dim')}")
    if alpha != 1.0:
        raise InvalidArguments(f"alpha is {alpha} for {kind_of(source)}: pass 1 here, and alpha to the product")
    return source


def signed(x: AnyArray) -> AnyArray:
    """u8 less 128, as s8."""
    return allocated(np.bitwise_xor, x, SIGN_BIT).view(np.int8)


class PackingCall(ArrayCall):
    """A reorder into a packed operand, and the header before it.  is_signed: whether u8 is to be made s8 first."""

    __slots__ = ("header", "is_signed")

    header: Packed
    is_signed: bool


def prepare(identifier: str, x: AnyArray, engine: Engine | None) -> PackingCall:
    """The call for a matrix of this type, these dims and strides.  Raises InvalidArguments, Unimplemented."""
    own, dtype = engine_or_default(engine), kind_of(x)
    is_signed = dtype == u8 and identifier == "B"
    source: MemoryDesc = memory_at("x", signed(x) if is_signed else x).desc
    rows, columns = source.dims
    target = format_of(identifier, (rows, columns), dtype, own)
    primitive = Primitive(primitive_desc(Reorder(source, target), engine=engine))
    call = PackingCall(primitive, ("src", "dst"), ("x", "out"), (source, target))
    call.header = Header(identifier, level_of(dtype, own), rows, columns, dtype.name).octets()
    call.is_signed = is_signed
    return call


def checked_bytes(out: Any, size: int) -> Packed:
    array = output("out", out, np.dtype(np.uint8))
    if array.ndim != 1 or not array.flags.c_contiguous or not array.flags.writeable:
        raise InvalidArguments("out must be a dense, writable array of uint8, of gemm_pack_get_size() elements")
    if array.nbytes < size:
        raise InvalidArguments(f"out has {array.nbytes} bytes, the packed operand needs {size}")
    return array
