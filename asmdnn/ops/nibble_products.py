"""Weights of 4 and 8 bits, packed once, and products of arrays with them."""

from typing import Any

import numpy as np

from asmdnn.errors import InvalidArguments, counted, not_one_of, shown
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.memory.allocation import allocated, within_memory
from asmdnn.memory.foreign import as_array, rounded_f32
from asmdnn.ops.arguments import AnyArray, Array, chain_of
from asmdnn.ops.calls import ArrayCall, calls, desc_of, layout_of
from asmdnn.ops.nibbles import BITS, LIMITS, FewBits, QuantizedWeights
from asmdnn.ops.quantized import ProductRequest, attr_of, checked_scales
from asmdnn.ops.typed import kind_of, numpy_type, result_type, typed, typed_output
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.post_ops import Binary
from asmdnn.primitives.attributes.user_post_op import PostOp
from asmdnn.primitives.core.descriptor import primitive_desc
from asmdnn.primitives.core.engine import Engine, engine_key
from asmdnn.primitives.core.primitive import Primitive
from asmdnn.primitives.quantized.description import QuantizedMatMul, check_group
from asmdnn.primitives.quantized.octets import TABLES, in_octets
from asmdnn.primitives.reorder.reordering import reorder
from asmdnn.types import DataType, f32, u8

SYMMETRIC = ("s4", "s8")


@within_memory
def pack_quantized_weights(
    b: Any,
    scales: Any = None,
    zero_points: Any = None,
    *,
    dtype: FewBits = "s4",
    group: int = 32,
    engine: Engine | None = None,
) -> QuantizedWeights:
    """A matrix (k, n) with 4 or 8 bits for each element, for `matmul(a, packed)`, which rounds a to 8 bits by groups;
    with accumulation_mode="f32" it multiplies a as it is.

    b: integers of the range of dtype, -8 to 7 for s4, with scales (k / group, n), whose rows say the group, and for u4
    and u8 with zero_points, integers of the same dims.  Or real numbers, without scales: they are rounded to the
    nearest, by groups of `group` k; s4 and s8 have 0 in the middle of each, u4 and u8 their least number at 0.
    group: 16 to 256, a multiple of 16 that divides k.  dtype "f4_e2m1" and "nf4" are floats of 4 bits; integers are
    their codes then, and a is multiplied as it is.  Raises InvalidArguments.
    """
    if not isinstance(dtype, str) or dtype not in LIMITS:
        raise InvalidArguments(not_one_of("dtype", dtype, LIMITS))
    if scales is None:
        if zero_points is not None:
            raise InvalidArguments("zero_points are of integers with scales: give the scales, too")
        numbers, factors, points = quantized(matrix("b", rounded_f32("b", b)), dtype, group)
    else:
        factors = checked_scales("scales", matrix("scales", rounded_f32("scales", scales)))
        if zero_points is not None and dtype in TABLES:
            raise InvalidArguments(f"zero_points are given, but {dtype} is of floats, which have none: leave them out")
        if zero_points is not None and dtype in SYMMETRIC:
            raise InvalidArguments(f"zero_points are given, but {dtype} has none: use dtype='u{dtype[1:]}'")
        numbers = integers("b", b, LIMITS[dtype])
        points = None if zero_points is None else integers("zero_points", zero_points, LIMITS[dtype])
    (k, n), groups = numbers.shape, len(factors)
    check_group(k, groups)
    for name, array in (("scales", factors), ("zero_points", points)):
        if array is not None and array.shape != (groups, n):
            raise InvalidArguments(f"{name} have dims {array.shape}, they must be (k / group, n): {(groups, n)}")
    offsets = None if points is None else factors * points.astype(np.float32)
    return packed_panels((dtype, k), in_octets(numbers - LIMITS[dtype][0], BITS[dtype]), factors, offsets, engine)


NIBBLES = ("int4", "uint4")


def matrix(name: str, array: AnyArray) -> AnyArray:
    if array.ndim != 2 or not array.size:
        raise InvalidArguments(f"{name} has dims {array.shape}, a matrix with elements is needed")
    return array


def integers(name: str, value: Any, limits: tuple[int, int]) -> AnyArray:
    """A matrix of integers between the limits.  Raises InvalidArguments."""
    array = matrix(name, as_array(name, value))
    if array.dtype.name in NIBBLES:  # of ml_dtypes, an element a byte
        array = allocated(array.astype, np.int8)
    if array.dtype.kind not in "iu":
        raise InvalidArguments(f"{name} has dtype {array.dtype}, with scales it must be of integers")
    least, most = limits
    if array.min() < least or array.max() > most:
        raise InvalidArguments(
            f"{name} has numbers from {array.min()} to {array.max()}, they must be {least} to {most}"
        )
    return allocated(array.astype, np.int16)


@within_memory
def quantized(b: Array, dtype: FewBits, group: int) -> tuple[AnyArray, Array, AnyArray | None]:
    """Integers, scales and zero points of a matrix of real numbers."""
    k, n = b.shape
    if isinstance(group, bool) or not isinstance(group, int) or group < 1 or k % group:
        raise InvalidArguments(
            f"group is {shown(group)}, it must be a whole number that divides the {counted(k, 'row')} of b"
        )
    check_group(k, k // group)
    if not np.isfinite(b).all():
        raise InvalidArguments("b has NaN or infinities: they have no nearest number of so few bits")
    rows, (least, most) = b.reshape(k // group, group, n).astype(np.float64), LIMITS[dtype]
    tiny = np.finfo(np.float32).tiny
    if dtype in TABLES:
        numbers = np.array(TABLES[dtype])
        scales = np.maximum(np.abs(rows).max(1) / numbers.max(), tiny).astype(np.float32)
        return nearest(rows / scales[:, None], numbers).reshape(k, n), scales, None
    if dtype in SYMMETRIC:
        scales = np.maximum(np.abs(rows).max(1) / most, tiny).astype(np.float32)
        points = None
    else:
        low, high = np.minimum(rows.min(1), 0), np.maximum(rows.max(1), 0)
        scales = np.maximum((high - low) / most, tiny).astype(np.float32)
        points = np.clip(np.rint(-low / scales), least, most).astype(np.int16)
    shift = 0 if points is None else points[:, None]
    numbers = np.clip(np.rint(rows / scales[:, None]) + shift, least, most)
    return numbers.reshape(k, n).astype(np.int16), scales, points


@within_memory
def nearest(x: AnyArray, numbers: AnyArray) -> AnyArray:
    """The codes of the numbers of a table that are nearest; of two as near the even code."""
    order = np.argsort(numbers, kind="stable")
    ascending = numbers[order]
    upper = np.clip(np.searchsorted(ascending, x), 1, len(numbers) - 1)
    down, up = x - ascending[upper - 1], ascending[upper] - x
    is_upper = (up < down) | ((up == down) & (order[upper] % 2 == 0))
    return order[np.where(is_upper, upper, upper - 1)].astype(np.int16)


@within_memory
def packed_panels(
    kind: tuple[FewBits, int], octets: AnyArray, scales: Array, offsets: Array | None, engine: Engine | None
) -> QuantizedWeights:
    """In the formats that products ask for.  kind: the type, and k."""
    plain = {"weights": octets, "scales": scales, **({} if offsets is None else {"offsets": offsets})}
    (dtype, k), n = kind, octets.shape[1]
    free = {name: MemoryDesc(x.shape, u8 if name == "weights" else f32, "any") for name, x in plain.items()}
    src, dst = MemoryDesc((1, k), f32, "ab"), MemoryDesc((1, n), f32, "ab")
    table = dtype if dtype in TABLES else ""
    desc = QuantizedMatMul(src, free["weights"], free["scales"], dst, free.get("offsets"), table=table)
    wanted = primitive_desc(desc, engine=engine).plan.tensors
    held = {
        name: reorder(Memory.from_array(np.ascontiguousarray(x)), wanted[name], engine=engine)
        for name, x in plain.items()
    }
    return QuantizedWeights(
        dtype, (k, n), k // len(scales), held["weights"], held["scales"], held.get("offsets")
    )  # fmt: skip


def quantized_matmul(a: Any, b: QuantizedWeights, bias: Any, out: Any, request: ProductRequest) -> AnyArray:
    """See `matmul`.  Raises InvalidArguments, Unimplemented."""
    if request.scales or request.zero_points:
        raise InvalidArguments("scales and zero_points belong to packed weights: give them to pack_quantized_weights")
    x, (k, n) = typed("a", a), b.dims
    if x.ndim < 2 or x.shape[-1] != k:
        raise InvalidArguments(f"a has dims {x.shape}, it must have 2 or more, the last one k of the weights, {k}")
    dims, target = (*x.shape[:-1], n), None if out is None else typed_output("out", out)
    if target is not None and target.shape != dims:
        raise InvalidArguments(f"out has dims {target.shape}, the result has {dims}")
    arrays = {"src": allocated(x.reshape, -1, k), "weights": b.weights.array, "scales": b.scales.array}
    arrays |= {} if b.offsets is None else {"offsets": b.offsets.array}
    chain = chain_of(request.post_ops)
    if bias is not None:
        chain = (Binary("add", MemoryDesc((1, n), f32, "ab")), *chain)
        arrays["binary_0"] = row_of("bias", bias, n)
    rows = None if target is None else rows_of("out", target, n)
    kind = result_type(request.dtype, target, kind_of(x))
    source, where = arrays["src"], None if rows is None else rows.strides
    key = ("nibbles", b.weights.desc, b.scales.desc, b.offsets is None, b.zero_point, b.table, source.shape,
           source.strides, source.dtype, where, kind, chain, request.modes, engine_key(request.engine))  # fmt: skip
    call = calls.get(key)
    if call is None:
        call = calls.put(key, prepare(arrays, b, rows, kind, attr_of(chain, request.modes), request.engine))
    data = [memory.array for op in chain if isinstance(op, PostOp) for memory in op.data.values()]
    result = call([*arrays.values(), *data], rows)
    return out if out is not None else result.view(numpy_type(kind, [x.dtype])).reshape(dims)


def row_of(name: str, value: Any, n: int) -> Array:
    """A vector of f32 as a matrix of one row."""
    array = rounded_f32(name, value)
    if array.size != n or array.shape[-1:] != (n,):
        raise InvalidArguments(f"{name} has dims {array.shape}, it must be a vector of {n}")
    return allocated(np.ascontiguousarray, array.reshape(1, n))


def rows_of(name: str, array: AnyArray, n: int) -> AnyArray:
    """All rows of an array one after the other, over the same memory.  Raises InvalidArguments."""
    rows = array.reshape(-1, n)
    if array.size and not np.may_share_memory(rows, array):
        raise InvalidArguments(
            f"{name} has strides {array.strides}, which make no matrix of its rows: give a dense array"
        )
    return rows


def prepare(
    arrays: dict[str, AnyArray],
    b: QuantizedWeights,
    out: AnyArray | None,
    kind: DataType,
    attr: Attr,
    engine: Engine | None,
) -> ArrayCall:
    """The call for arrays of these dims.  Raises InvalidArguments, Unimplemented."""
    src, is_copied = layout_of("a", arrays["src"])
    held = {"weights": b.weights.desc, "scales": b.scales.desc}
    held |= {} if b.offsets is None else {"offsets": b.offsets.desc}
    dst = MemoryDesc((src.dims[0], b.dims[1]), kind, "ab") if out is None else desc_of("out", out)
    zero_point = 0 if b.offsets is not None else b.zero_point
    desc = QuantizedMatMul(src, held["weights"], held["scales"], dst, held.get("offsets"), zero_point, table=b.table)
    pd = primitive_desc(desc, attr, engine)
    more = {"binary_0": MemoryDesc((1, b.dims[1]), f32, "ab")} if "binary_0" in arrays else {}
    more |= {name: memory.desc for name, memory in attr.data().items()}
    descs = {"src": src, **held, **more, "dst": dst}
    labels = ["a", *list(descs)[1:-1], "out"]
    return ArrayCall(Primitive(pd), list(descs), labels, list(descs.values()), [0] * is_copied)
