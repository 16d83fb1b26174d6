"""Products of bytes, bf16 and f16, plain or packed, after MKL's cblas_gemm_s8u8s32 and cblas_gemm_bf16bf16f32.

Products are those of `ops.matmul`; what BLAS has beside them, alpha, beta and offsets of sums, is added to the result.
"""

from typing import Any

import numpy as np

from asmdnn.blas.checks import scalar
from asmdnn.blas.operands import BlasOperand, check_apart, operand, target_of
from asmdnn.errors import InvalidArguments, counted, shown
from asmdnn.forking import importing
from asmdnn.memory.allocation import allocated
from asmdnn.ops.arguments import AnyArray
from asmdnn.ops.quantized import NOTHING, ProductRequest
from asmdnn.primitives.attributes.post_ops import Sum
from asmdnn.primitives.core.engine import Engine
from asmdnn.types import INTEGERS8, DataType, bf16, f16, f32, s32

S32 = np.iinfo(np.int32)
OFFSETS = ("F", "C", "R")


def gemm_bf16bf16f32(
    transa: str, transb: str, alpha: float, a: Any, b: Any, beta: float, c: Any, engine: Engine | None = None
) -> Any:
    """c = alpha * op(a) * op(b) + beta * c, in place, of a and b of bf16 and c of f32; returns c.

    As `sgemm`; and "P" says that an operand is a result of gemm_pack.  Sums, alpha and beta are of f32.  Raises
    InvalidArguments as sgemm does, and for a packed operand of another shape, side, type or ISA level.
    """
    return of_halves(bf16, ((transa, a), (transb, b)), (alpha, beta), c, engine)


def gemm_f16f16f32(
    transa: str, transb: str, alpha: float, a: Any, b: Any, beta: float, c: Any, engine: Engine | None = None
) -> Any:
    """As `gemm_bf16bf16f32`, of a and b of f16."""
    return of_halves(f16, ((transa, a), (transb, b)), (alpha, beta), c, engine)


def gemm_x8x8s32(
    transa: str, transb: str, offsetc: str, alpha: float, a: Any, ao: int, b: Any, bo: int, beta: float, c: Any,
    co: Any, engine: Engine | None = None,
) -> Any:  # fmt: skip
    """c = alpha * (op(a) + ao) * (op(b) + bo) + beta * c + co, in place, of c of s32; returns c.

    a, b: each of u8 or of s8, plain or, with "P", a result of gemm_pack.  ao, bo: integers of 32 bits that are added to
    every element; oneDNN subtracts its offsets.  co: integers of 32 bits: with offsetc "F" one for all elements, with
    "C" a column (m,), with "R" a row (n,).  Products are exact, modulo 2^32, and so is all with alpha 0 or 1 and beta 0
    or 1; else alpha and beta are rounded to f32, and the result to the nearest integer of 32 bits.  beta = 0 does not
    read c, alpha = 0 does not read a and b.
    Raises InvalidArguments as gemm_bf16bf16f32 does, and for offsets of other sizes.
    """
    x, y = (operand(name, *given, INTEGERS8, engine) for name, given in (("a", (transa, a)), ("b", (transb, b))))
    alpha, beta = factor("alpha", alpha), factor("beta", beta)
    target = target_of(c, np.dtype(np.int32), x, y)
    a_offset, b_offset = (integer(name, value) for name, value in (("ao", ao), ("bo", bo)))
    offsets = offsets_of(offsetc, co, target.shape)
    check_apart(target, {"a": a, "b": b})
    x, y = x.added(a_offset), y.added(b_offset)
    is_whole = alpha in (0, 1) and beta in (0, 1)
    if alpha == 1 and beta == 0 and not (y.offset or offsets.any()):
        multiply(x, y, ProductRequest((), s32, NOTHING, points_of(x), engine), target)
    elif is_whole:
        add_whole(product_of_bytes(x, y, engine) if alpha else None, int(beta), target, offsets)
    else:
        add_scaled(product_of_bytes(x, y, engine) if alpha else None, (alpha, beta), target, offsets)
    return c


def of_halves(
    dtype: DataType, given: tuple[tuple[str, Any], tuple[str, Any]], factors: tuple[float, float], c: Any,
    engine: Engine | None,
) -> Any:  # fmt: skip
    """See gemm_bf16bf16f32; given: of a and b how they lie, and what."""
    x, y = (operand(name, *each, (dtype,), engine) for name, each in zip("ab", given, strict=True))
    alpha, beta = (rounded(name, value) for name, value in zip(("alpha", "beta"), factors, strict=True))
    target = target_of(c, np.dtype(np.float32), x, y)
    check_apart(target, {"a": given[0][1], "b": given[1][1]})
    if alpha == 1 and beta in (0, 1):
        multiply(x, y, ProductRequest((Sum(),) if beta else (), f32, NOTHING, NOTHING, engine), target)
        return c
    with np.errstate(all="ignore"):  # infinities and NaN are numbers of f32
        if beta == 0:
            target[...] = 0
        elif beta != 1:
            target *= beta
        if alpha != 0:
            product = multiply(x, y, ProductRequest((), f32, NOTHING, NOTHING, engine))
            product *= alpha
            target += product
    return c


def multiply(x: BlasOperand, y: BlasOperand, request: ProductRequest, out: AnyArray | None = None) -> AnyArray:
    with importing():
        from asmdnn.ops.typed_matmul import typed_matmul

    return typed_matmul(x.elements, y.elements, None, out, request)


def points_of(x: BlasOperand) -> dict[str, Any]:
    """The zero point that is subtracted where an offset is added."""
    return {"a": np.int32(modulo(-x.offset))} if x.offset else {}


def modulo(value: int) -> int:
    """The integer of 32 bits that is equal modulo 2^32."""
    return (value - S32.min) % 2**32 + S32.min


def product_of_bytes(x: BlasOperand, y: BlasOperand, engine: Engine | None) -> AnyArray:
    """(x + its offset) times (y + its offset), modulo 2^32: the zero point of x is the product's, and y's offset
    multiplies the sums of rows of x, which are one number a row."""
    product = multiply(x, y, ProductRequest((), s32, NOTHING, points_of(x), engine))
    if y.offset:
        rows = allocated(np.sum, x.elements, axis=1, dtype=np.int32)
        rows += np.int32(modulo(x.dims[1] * x.offset))
        rows *= np.int32(modulo(y.offset))
        product += rows[:, None]
    return product


def add_whole(product: AnyArray | None, beta: int, c: AnyArray, offsets: AnyArray) -> None:
    """c = product + beta * c + offsets, modulo 2^32."""
    if beta:
        c += offsets
    else:
        c[...] = offsets
    if product is not None:
        c += product


def add_scaled(product: AnyArray | None, factors: tuple[float, float], c: AnyArray, offsets: AnyArray) -> None:
    """c = alpha * product + beta * c + offsets in f64, rounded to nearest even, and saturated."""
    alpha, beta = factors
    total = allocated(np.multiply, c, beta, dtype=np.float64) if beta else allocated(np.zeros, c.shape)
    if product is not None:
        total += allocated(np.multiply, product, alpha, dtype=np.float64)
    total += offsets
    np.clip(np.rint(total, out=total), S32.min, S32.max, out=total)
    c[...] = total


def rounded(name: str, value: float) -> np.float32:
    """alpha or beta as f32, an infinity where it is too large.  Raises InvalidArguments for what is no number."""
    with np.errstate(over="ignore"):
        return np.float32(scalar(name, value))


def factor(name: str, value: float) -> float:
    """alpha or beta of integers.  Raises InvalidArguments for what is no finite number."""
    found = float(rounded(name, value))
    if not np.isfinite(found):
        raise InvalidArguments(f"{name} must be a finite number, not {shown(value)}")
    return found


def integer(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not S32.min <= value <= S32.max:
        raise InvalidArguments(f"{name} must be an integer of 32 bits, not {shown(value)}")
    return int(value)


def offsets_of(offsetc: str, co: Any, dims: tuple[int, ...]) -> AnyArray:
    """s32 that broadcast to the result.  Raises InvalidArguments."""
    if not isinstance(offsetc, str) or offsetc not in OFFSETS:
        raise InvalidArguments(f"offsetc must be one of {', '.join(OFFSETS)}, not {shown(offsetc)}")
    try:
        values = np.asarray(co)
    except Exception:  # whatever the caller's object does
        raise InvalidArguments(f"co must be integers of 32 bits, not {shown(co)}") from None
    if values.dtype.kind not in "iu" or (values.size and not S32.min <= values.min() <= values.max() <= S32.max):
        raise InvalidArguments(f"co must be integers of 32 bits, not {shown(co)}")
    count = {"F": 1, "C": dims[0], "R": dims[1]}[offsetc]
    if values.size != count or values.ndim > 1:
        raise InvalidArguments(
            f"co has shape {values.shape}, for offsetc {offsetc!r} it must have {counted(count, 'element')}"
        )
    return allocated(np.array, values.reshape(-1, 1) if offsetc == "C" else values.reshape(1, -1), np.int32)
