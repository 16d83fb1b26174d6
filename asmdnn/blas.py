"""sgemm on numpy arrays, and the packed form after MKL's cblas_sgemm_pack and _compute.

A packed operand is an array of bytes: a header that says what it is, then the elements in the order of the kernels.  It
can be written to a file, mapped back (numpy.memmap), and used by any number of threads at once.
"""

from functools import lru_cache
from numbers import Real
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.errors import InvalidArguments, shown
from asmdnn.isa.vectors import f32_level
from asmdnn.jit.native import address, ffi
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import F32, output
from asmdnn.ops.calls import ArrayCall, calls
from asmdnn.ops.packed import aligned
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key, engine_or_default
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.products.gemm import Gemm, packed_desc
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.types import f32

__all__ = ["gemm_compute", "gemm_pack", "gemm_pack_get_size", "sgemm"]

Array = npt.NDArray[np.float32]
Packed = npt.NDArray[np.uint8]

HEADER = Struct("<8s8s16sqq16x")  # magic, identifier, ISA level, rows, columns
HEADER_BYTES = HEADER.size  # 64, so that the elements keep the buffer's alignment
MAGIC = b"asmgemm1"
MAX_SIZE = 2**31 - 1
KEPT_FORMATS = 1024
KINDS = {0.0: "zero", 1.0: "one"}  # of alpha and beta: others are data
SCALE = ffi.typeof("float[2]")

find = calls.entries.get


def sgemm(
    transa: str, transb: str, alpha: float, a: Array, b: Array, beta: float, c: Any, engine: Engine | None = None
) -> Any:
    """c = alpha * op(a) * op(b) + beta * c, in place; returns c.

    op(x) is x for "N" and its transpose for "T".  a, b, c are f32 matrices of any strides: row-major, column-major
    (numpy's order "F"), and slices, whose distance of rows is the leading dimension; c may be anything that exports
    such memory.  beta = 0 does not read c, alpha = 0 does not read a and b.  Raises InvalidArguments for shapes that do
    not fit, other dtypes, and a c that is read-only or overlaps a or b.  Source of the interface: the BLAS, level 3.
    """
    return multiply((transa, a), (transb, b), alpha, beta, c, engine)


def gemm_compute(
    transa: str,
    transb: str,
    a: Array | Packed,
    b: Array | Packed,
    beta: float,
    c: Any,
    engine: Engine | None = None,
) -> Any:
    """c = op(a) * op(b) + beta * c, in place; returns c.  "P" says that an operand is a result of gemm_pack.

    Raises InvalidArguments as sgemm does, and for a packed operand of another shape, side or ISA level.
    """
    return multiply((transa, a), (transb, b), 1.0, beta, c, engine)


def multiply(x: tuple[str, Any], y: tuple[str, Any], alpha: float, beta: float, c: Any, engine: Engine | None) -> Any:
    """Of two operands with how each lies: "N", "T" or "P"."""
    (transa, a), (transb, b) = x, y
    first, second = operand_key("a", transa, a), operand_key("b", transb, b)
    alpha = alpha if type(alpha) is float else scalar("alpha", alpha)
    beta = beta if type(beta) is float else scalar("beta", beta)
    target = c if type(c) is np.ndarray and c.dtype is F32 else output("c", c)
    scale = ffi.new(SCALE, (alpha, beta))
    alpha, beta = scale  # as f32: what rounds to 0 is 0, and not read
    kinds = KINDS.get(alpha, "any"), KINDS.get(beta, "any")
    key = ("sgemm", transa, first, transb, second, kinds, target.shape, target.strides, engine_key(engine))
    call = find(key)
    if call is None:
        call = calls.put(key, prepare((transa, first, a), (transb, second, b), kinds, target, engine))
    addresses = call.addresses_of((a, b, target))
    if transa == "P":
        addresses[0] += HEADER_BYTES
    if transb == "P":
        addresses[1] += HEADER_BYTES
    call.check_output(target.flags.writeable, addresses)
    addresses.append(address(scale))
    call.run(addresses)
    return c


def operand_key(name: str, trans: str, x: Any) -> tuple[Any, ...]:
    """What a call depends on: shape and strides, and of a packed operand the header."""
    if type(trans) is not str:
        raise InvalidArguments(f"trans{name} must be 'N', 'T' or, if packed, 'P', not {shown(trans)}")
    if trans == "P":
        is_bytes = isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim == 1
        if is_bytes and x.size >= HEADER_BYTES and x.flags.c_contiguous:
            return x.shape, HEADER.unpack_from(x.data)
        raise InvalidArguments(f"{name} must be the array of bytes that gemm_pack made")
    if type(x) is not np.ndarray or x.dtype is not F32:
        matrix(name, x)
    return x.shape, x.strides


def prepare(
    x: tuple[str, tuple[Any, ...], Any], y: tuple[str, tuple[Any, ...], Any], kinds: tuple[str, str], c: Array,
    engine: Engine | None,
) -> ArrayCall:  # fmt: skip
    """The call for operands of these strides, or headers.  Raises InvalidArguments, Unimplemented."""
    isa = engine_or_default(engine).isa
    a, b, target = operand("a", *x, "A", isa), operand("b", *y, "B", isa), Memory.from_array(matrix("c", c)).desc
    if kinds[0] == "zero" and a.dims[1] == b.dims[0]:  # a product over no k: neither operand is read
        a, b = MemoryDesc((a.dims[0], 0), f32, "ab"), MemoryDesc((0, b.dims[1]), f32, "ab")
    primitive = Primitive(primitive_desc(Gemm(a, b, target, kinds[0] == "one", kinds[1]), engine=engine))
    return ArrayCall(primitive, ("a", "b", "c", "scale"), ("a", "b", "c", "scale"), (a, b, target))


def gemm_pack_get_size(identifier: str, m: int, n: int, k: int, engine: Engine | None = None) -> int:
    """Bytes of the packed operand "A" (m x k) or "B" (k x n)."""
    sizes = [size_of(name, size) for name, size in (("m", m), ("n", n), ("k", k))]
    rows, columns = (sizes[0], sizes[2]) if checked_identifier(identifier) == "A" else (sizes[2], sizes[1])
    return HEADER_BYTES + format_of(identifier, rows, columns, engine_or_default(engine).isa).size_bytes


@lru_cache(KEPT_FORMATS)
def format_of(identifier: str, rows: int, columns: int, isa: str) -> MemoryDesc:
    return packed_desc(identifier, rows, columns, isa)


def gemm_pack(
    identifier: str, trans: str, alpha: float, x: Array, out: Any = None, engine: Engine | None = None
) -> Any:
    """alpha * op(x) in the order that the kernels of this ISA level read; "A" is the left operand, "B" the right one.

    `out` is anything that exports at least gemm_pack_get_size(...) bytes as uint8, 64-byte aligned where speed matters;
    a new array is made if it is None.  Returns it.  Raises InvalidArguments.
    """
    if type(trans) is not str or trans not in ("N", "T"):
        raise InvalidArguments(f"transx must be 'N' or 'T', not {shown(trans)}")
    alpha = alpha if type(alpha) is float else scalar("alpha", alpha)
    source = x if type(x) is np.ndarray and x.dtype is F32 else matrix("x", x)
    if alpha != 1.0:
        source = allocated(np.multiply, source, np.float32(alpha), dtype=np.float32)
    key = ("gemm_pack", checked_identifier(identifier), trans, source.shape, source.strides, engine_key(engine))
    call: Any = find(key)
    if call is None:
        call = calls.put(key, prepare_packing(identifier, source.T if trans == "T" else source, engine))
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


class PackingCall(ArrayCall):
    """A reorder into a packed operand, and the header before it."""

    __slots__ = ("header",)

    header: Packed


def prepare_packing(identifier: str, x: Array, engine: Engine | None) -> PackingCall:
    source, isa = Memory.from_array(matrix("x", x)).desc, f32_level(engine_or_default(engine).isa)
    rows, columns = source.dims
    target = format_of(identifier, rows, columns, isa)
    primitive = Primitive(primitive_desc(Reorder(source, target), engine=engine))
    call = PackingCall(primitive, ("src", "dst"), ("x", "out"), (source, target))
    call.header = np.frombuffer(HEADER.pack(MAGIC, identifier.encode(), isa.encode(), rows, columns), np.uint8)
    return call


def checked_bytes(out: Any, size: int) -> Packed:
    array = output("out", out, np.dtype(np.uint8))
    if array.ndim != 1 or not array.flags.c_contiguous or not array.flags.writeable:
        raise InvalidArguments("out must be a dense, writable array of uint8, of gemm_pack_get_size() elements")
    if array.nbytes < size:
        raise InvalidArguments(f"out has {array.nbytes} bytes, the packed operand needs {size}")
    return array


def operand(name: str, trans: str, key: tuple[Any, ...], x: Any, side: str, isa: str) -> MemoryDesc:
    """The descriptor of the operand after "N", "T" or "P"."""
    if trans == "P":
        return unpacked(name, key[0][0], key[1], side, f32_level(isa))
    if trans not in ("N", "T"):
        raise InvalidArguments(f"trans{name} must be 'N', 'T' or, if packed, 'P', not {shown(trans)}")
    plain = matrix(name, x)
    return Memory.from_array(plain.T if trans == "T" else plain).desc


def unpacked(name: str, nbytes: int, header: tuple[Any, ...], side: str, wanted: str) -> MemoryDesc:
    """The format after a header that says what is expected."""
    magic, identifier, isa, rows, columns = header
    if magic != MAGIC:
        raise InvalidArguments(f"{name} does not start with the header of gemm_pack")
    if (packed_side := identifier.rstrip(b"\0").decode("latin-1")) != side:
        raise InvalidArguments(f"{name} was packed as {packed_side!r}, here it is used as {side!r}")
    if (packed_isa := isa.rstrip(b"\0").decode("latin-1")) != wanted:
        raise InvalidArguments(f"{name} was packed for {packed_isa}, this engine computes with {wanted}: pack it again")
    if not (0 <= rows <= MAX_SIZE and 0 <= columns <= MAX_SIZE):
        raise InvalidArguments(f"{name} has a damaged header: {rows} x {columns}")
    desc = packed_desc(side, rows, columns, wanted)
    if nbytes < HEADER_BYTES + desc.size_bytes:
        raise InvalidArguments(f"{name} has {nbytes} bytes, {rows} x {columns} need {HEADER_BYTES + desc.size_bytes}")
    return desc


def matrix(name: str, x: Any) -> Array:
    """`x` if it is a float32 matrix, as a plain ndarray; else InvalidArguments."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.ndim != 2:
        found = f"{x.dtype} of {x.ndim} dims" if isinstance(x, np.ndarray) else type(x).__name__
        raise InvalidArguments(f"{name} must be a float32 matrix, not {found}")
    return np.asarray(x).view(F32)


def scalar(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArguments(f"{name} must be a number, not {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidArguments(f"{name} must be a number that f32 can hold, not {shown(value)}") from None


def size_of(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= MAX_SIZE:
        raise InvalidArguments(f"{name} must be an integer from 0 to 2**31 - 1, not {shown(value)}")
    return int(value)


def checked_identifier(identifier: str) -> str:
    if not isinstance(identifier, str) or identifier not in ("A", "B"):
        raise InvalidArguments(f"identifier must be 'A' or 'B', not {shown(identifier)}")
    return identifier
