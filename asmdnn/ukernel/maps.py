"""Kernels that compute element by element, or row by row."""

from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.generators.functions.elementwise import ElementwiseSpec, TypedElementwiseSpec
from asmdnn.generators.functions.postops import Operand
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.isa.vectors import f32_level, lanes_of, vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.chain import post_ops_of
from asmdnn.types import DATA_TYPES, FLOATS, f32
from asmdnn.ukernel.checks import leading, level, size, type_of
from asmdnn.ukernel.framed import framed
from asmdnn.ukernel.kernel import Pointed, UKernel
from asmdnn.ukernel.operands import attr_of, chained, refusing

OPERANDS = 2  # src and dst come first
MAPPED = tuple(DATA_TYPES.values())


def eltwise(
    rows: int,
    columns: int,
    post_ops: Any,
    src: str = "f32",
    dst: str = "",
    *,
    src_ld: int = 0,
    dst_ld: int = 0,
    streaming: bool = False,
    isa: str = "",
) -> UKernel:
    """A kernel of `void(src, dst, ..)`: dst[r, c] = post_ops(src[r, c]), computed in f32, rounded once.

    post_ops: one or a list, as of Attr: "gelu_erf", Eltwise("clip", 0, 6), Binary("add", desc of (1, columns)), "sum".
    Their tensors, of f32, are arguments after dst, in their order.  dst may be src where types and rows are the same.
    src_ld, dst_ld: elements from row to row, by default columns.
    streaming: of f32 alone; full vectors go past the caches where dst is aligned to them, without a fence.
    Raises InvalidArguments; Unimplemented for types that the functions do not have.
    """
    high, wide, found = size("rows", rows), size("columns", columns), f32_level(level(isa))
    of_src, of_dst = type_of("src", src, MAPPED), type_of("dst", dst or src, MAPPED)
    attr = attr_of(post_ops)
    if not attr.post_ops or attr.scales or attr.zero_points:
        raise InvalidArguments("eltwise takes post-ops, at least one, and no scales: multiply by Eltwise('linear').")
    with refusing():
        links = post_ops_of(attr)
    chain = chained(links, MemoryDesc((high, wide), of_dst, "ab"), lanes_of(found), OPERANDS, (f32,))
    src_bytes = leading("src_ld", src_ld, wide) * of_src.size_bytes
    dst_bytes = leading("dst_ld", dst_ld, wide) * of_dst.size_bytes
    is_typed = {of_src, of_dst} != {f32}
    if streaming and (is_typed or dst_bytes % vector_bytes(found)):
        raise InvalidArguments("streaming is for f32 whose rows of dst are whole vectors apart: leave it out.")
    whole = Operand(0, src_bytes, 0, False)
    spec: ElementwiseSpec
    if is_typed:
        types = (of_src.name, of_dst.name, *(x.name for x in chain.types))
        spec = TypedElementwiseSpec(
            isa=found, rows=high, elements=wide, src=whole, dst_row_bytes=dst_bytes, chain=chain.post_ops, types=types
        )
    else:
        spec = ElementwiseSpec(
            isa=found, rows=high, elements=wide, src=whole, dst_row_bytes=dst_bytes, chain=chain.post_ops,
            streaming=bool(streaming),
        )  # fmt: skip
    names = " then ".join(op.name for op in chain.post_ops)
    text = f"dst[{high}, {wide}] = {names} of src[{high}, {wide}]: {of_src} to {of_dst}."
    words = [("src", Pointed("src", of_src)), ("dst", Pointed("dst", of_dst))]
    words += [(f"operand{OPERANDS + i}", buffer) for i, buffer in enumerate(chain.buffers)]
    return framed(spec, words, text, streams=bool(streaming))


def softmax(
    rows: int,
    columns: int,
    src: str = "f32",
    dst: str = "",
    *,
    log: bool = False,
    src_ld: int = 0,
    dst_ld: int = 0,
    isa: str = "",
) -> UKernel:
    """A kernel of `void(src, dst)`: dst = e^(src - max) / sum of e^(src - max) of each row, or its logarithm.

    src, dst: f32, bf16 or f16; dst may be src where types and rows are the same.  A row with NaN or +infinity, or with
    nothing but -infinity, becomes NaN.  src_ld, dst_ld: elements from row to row, by default columns.
    Raises InvalidArguments.
    """
    high, wide, found = size("rows", rows), size("columns", columns), f32_level(level(isa))
    of_src, of_dst = type_of("src", src, FLOATS), type_of("dst", dst or src, FLOATS)
    src_bytes = leading("src_ld", src_ld, wide) * of_src.size_bytes
    dst_bytes = leading("dst_ld", dst_ld, wide) * of_dst.size_bytes
    types = (of_src.name, of_dst.name)
    spec = SoftmaxSpec(
        isa=found, rows=high, elements=wide, src_row_bytes=src_bytes, dst_row_bytes=dst_bytes, log=bool(log),
        types=types,
    )  # fmt: skip
    text = f"dst[{high}, {wide}] = {'log ' * bool(log)}softmax of each row of src: {of_src} to {of_dst}."
    return framed(spec, (("src", Pointed("src", of_src)), ("dst", Pointed("dst", of_dst))), text)
