"""sgemm, and the product of operands that may be packed, after MKL's cblas_sgemm_compute."""

from typing import Any

import numpy as np

from asmdnn.blas.checks import Array, checked_trans, matrix, scalar
from asmdnn.blas.header import HEADER_BYTES, Packed, check_room, fields_of, header_of
from asmdnn.isa.vectors import f32_level
from asmdnn.jit.native import address, ffi
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.ops.arguments import F32, output
from asmdnn.ops.calls import ArrayCall, calls
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key, engine_or_default
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.products.gemm import Gemm, packed_desc
from asmdnn.types import f32

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
    if checked_trans(name, trans) == "P":
        fields = fields_of(name, x)
        return x.shape, fields
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


def operand(name: str, trans: str, key: tuple[Any, ...], x: Any, side: str, isa: str) -> MemoryDesc:
    """The descriptor of the operand after "N", "T" or "P"."""
    if trans == "P":
        return unpacked(name, key[0][0], key[1], side, f32_level(isa))
    plain = matrix(name, x)
    return Memory.from_array(plain.T if trans == "T" else plain).desc


def unpacked(name: str, nbytes: int, fields: tuple[Any, ...], side: str, isa: str) -> MemoryDesc:
    """The format after a header that says what is expected."""
    header = header_of(name, fields, side, {"f32": isa})
    desc = packed_desc(side, header.rows, header.columns, isa)
    check_room(name, nbytes, header, desc.size_bytes)
    return desc
