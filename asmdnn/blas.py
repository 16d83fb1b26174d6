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
from asmdnn.isa.dot import F32, dot_level
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.descriptor import primitive_desc
from asmdnn.primitives.engine import Engine, engine_or_default
from asmdnn.primitives.primitive import Primitive
from asmdnn.primitives.products.gemm import Gemm, packed_desc
from asmdnn.primitives.reordering import reorder
from asmdnn.types import f32, u8

Array = npt.NDArray[np.float32]
Packed = npt.NDArray[np.uint8]

HEADER = Struct("<8s8s16sqq")  # magic, identifier, ISA level, rows, columns
HEADER_BYTES = 64  # so that the elements keep the buffer's alignment
MAGIC = b"asmgemm1"
KEPT_PRIMITIVES = 256
MAX_SIZE = 2**31 - 1


def sgemm(
    transa: str, transb: str, alpha: float, a: Array, b: Array, beta: float, c: Array, engine: Engine | None = None
) -> Array:
    """c = alpha * op(a) * op(b) + beta * c, in place; returns c.

    op(x) is x for "N" and its transpose for "T".  a, b, c are f32 matrices of any strides: row-major, column-major
    (numpy's order "F"), and slices, whose distance of rows is the leading dimension.  beta = 0 does not read c, alpha =
    0 does not read a and b.  Raises InvalidArguments for shapes that do not fit, other dtypes, and a c that is
    read-only or overlaps a or b.  Source of the interface: the BLAS, level 3.
    """
    x, y = operand("a", transa, a, "A", engine), operand("b", transb, b, "B", engine)
    return multiply(x, y, scalar("alpha", alpha), scalar("beta", beta), c, engine)


def gemm_pack_get_size(identifier: str, m: int, n: int, k: int, engine: Engine | None = None) -> int:
    """Bytes of the packed operand "A" (m x k) or "B" (k x n)."""
    sizes = [size_of(name, size) for name, size in (("m", m), ("n", n), ("k", k))]
    rows, columns = {"A": (sizes[0], sizes[2]), "B": (sizes[2], sizes[1])}[checked_identifier(identifier)]
    return HEADER_BYTES + packed_desc(identifier, rows, columns, engine_or_default(engine).isa).size_bytes


def gemm_pack(
    identifier: str, trans: str, alpha: float, x: Array, out: Packed | None = None, engine: Engine | None = None
) -> Packed:
    """alpha * op(x) in the order that the kernels of this ISA level read; "A" is the left operand, "B" the right one.

    `out` is an array of at least gemm_pack_get_size(...) bytes, 64-byte aligned where speed matters; a new one is made
    if it is None.  Raises InvalidArguments.
    """
    source = operand("x", trans, x, "", engine)
    factor = scalar("alpha", alpha)
    if factor != 1.0:
        source = Memory.from_array(np.multiply(source.view(), np.float32(factor), dtype=np.float32))
    engine = engine_or_default(engine)
    isa = dot_level(F32, engine.isa)
    rows, columns = source.desc.dims
    desc = packed_desc(checked_identifier(identifier), rows, columns, isa)
    size = HEADER_BYTES + desc.size_bytes
    if out is None:
        out = Memory(MemoryDesc((size,), u8, "a")).array
    if (
        not isinstance(out, np.ndarray)
        or out.dtype != np.uint8
        or out.ndim != 1
        or not out.flags.c_contiguous
        or not out.flags.writeable
    ):
        raise InvalidArguments("out must be a dense, writable array of uint8, of gemm_pack_get_size() elements")
    if out.nbytes < size:
        raise InvalidArguments(f"out has {out.nbytes} bytes, the packed operand needs {size}")
    header = HEADER.pack(MAGIC, identifier.encode(), isa.encode(), rows, columns)
    out[: len(header)] = np.frombuffer(header, np.uint8)
    if desc.size_bytes:
        reorder(source, Memory(desc, out[HEADER_BYTES:size], padding_is_zero=True), engine)
    return out


def gemm_compute(
    transa: str,
    transb: str,
    a: Array | Packed,
    b: Array | Packed,
    beta: float,
    c: Array,
    engine: Engine | None = None,
) -> Array:
    """c = op(a) * op(b) + beta * c, in place; returns c.  "P" says that an operand is a result of gemm_pack.

    Raises InvalidArguments as sgemm does, and for a packed operand of another shape, side or ISA level.
    """
    x, y = operand("a", transa, a, "A", engine), operand("b", transb, b, "B", engine)
    return multiply(x, y, 1.0, scalar("beta", beta), c, engine)


@lru_cache(KEPT_PRIMITIVES)
def gemm_primitive(desc: Gemm, engine: Engine) -> Primitive:
    return Primitive(primitive_desc(desc, Attr(), engine))


def multiply(x: Memory, y: Memory, alpha: float, beta: float, c: Array, engine: Engine | None) -> Array:
    kind = {0.0: "zero", 1.0: "one"}.get(beta, "any")
    target = matrix("c", c)
    if alpha == 0.0 and x.desc.dims[1] == y.desc.dims[0]:  # a product over no k: neither operand is read
        x = Memory(MemoryDesc((x.desc.dims[0], 0), f32, "ab"))
        y = Memory(MemoryDesc((0, y.desc.dims[1]), f32, "ab"))
    desc = Gemm(x.desc, y.desc, target.desc, alpha == 1.0, kind)
    memories = {"a": x, "b": y, "c": target}
    if desc.scaled:
        memories["scale"] = Memory.from_array(np.array([alpha, beta], np.float32))
    gemm_primitive(desc, engine_or_default(engine)).execute(None, **memories)
    return c


def operand(name: str, trans: str, x: Any, side: str, engine: Engine | None) -> Memory:
    """The operand behind "N", "T" or (if it has a side) "P"."""
    if not isinstance(trans, str):
        raise InvalidArguments(f"trans{name} must be a letter, not {shown(trans)}")
    if trans == "P" and side:
        return unpacked(name, x, side, engine_or_default(engine))
    if trans not in ("N", "T"):
        raise InvalidArguments(f"trans{name} must be 'N', 'T'{' or, if packed, P' if side else ''}, not {shown(trans)}")
    return matrix(name, x.T if trans == "T" and isinstance(x, np.ndarray) else x)


def unpacked(name: str, x: Any, side: str, engine: Engine) -> Memory:
    """The elements behind a header that says what is expected."""
    if not isinstance(x, np.ndarray) or x.dtype != np.uint8 or x.ndim != 1 or x.nbytes < HEADER_BYTES:
        raise InvalidArguments(f"{name} must be the array of bytes that gemm_pack made")
    magic, identifier, isa, rows, columns = HEADER.unpack_from(x[:HEADER_BYTES].tobytes())
    wanted = dot_level(F32, engine.isa)
    if magic != MAGIC:
        raise InvalidArguments(f"{name} does not start with the header of gemm_pack")
    if (packed_side := identifier.rstrip(b"\0").decode("latin-1")) != side:
        raise InvalidArguments(f"{name} was packed as {packed_side!r}, here it is used as {side!r}")
    if (packed_isa := isa.rstrip(b"\0").decode("latin-1")) != wanted:
        raise InvalidArguments(f"{name} was packed for {packed_isa}, this engine computes with {wanted}: pack it again")
    if not (0 <= rows <= MAX_SIZE and 0 <= columns <= MAX_SIZE):
        raise InvalidArguments(f"{name} has a damaged header: {rows} x {columns}")
    desc = packed_desc(side, rows, columns, wanted)
    if x.nbytes < HEADER_BYTES + desc.size_bytes:
        raise InvalidArguments(f"{name} has {x.nbytes} bytes, {rows} x {columns} need {HEADER_BYTES + desc.size_bytes}")
    return Memory(desc, x[HEADER_BYTES : HEADER_BYTES + desc.size_bytes], padding_is_zero=True)


def matrix(name: str, x: Any) -> Memory:
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or x.ndim != 2:
        found = f"{x.dtype} of {x.ndim} dims" if isinstance(x, np.ndarray) else type(x).__name__
        raise InvalidArguments(f"{name} must be a float32 matrix, not {found}")
    return Memory.from_array(x)


def scalar(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArguments(f"{name} must be a number, not {shown(value)}")
    try:
        with np.errstate(over="ignore"):
            return float(np.float32(float(value)))
    except OverflowError:
        raise InvalidArguments(f"{name} must be a number that a float can hold, not {shown(value)}") from None


def size_of(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= MAX_SIZE:
        raise InvalidArguments(f"{name} must be an integer from 0 to 2**31 - 1, not {shown(value)}")
    return int(value)


def checked_identifier(identifier: str) -> str:
    if not isinstance(identifier, str) or identifier not in ("A", "B"):
        raise InvalidArguments(f"identifier must be 'A' or 'B', not {shown(identifier)}")
    return identifier
