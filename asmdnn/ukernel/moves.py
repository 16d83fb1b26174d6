"""Kernels that move elements: b packed for brgemm, transposes, changes of type."""

from typing import Final

from asmdnn.errors import InvalidArguments
from asmdnn.generators.dot.pack import PackSpec
from asmdnn.generators.move.conversion import Conversion
from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.transpose import TransposeSpec, across_of
from asmdnn.isa.dot import OFFERED, dot_level
from asmdnn.isa.vectors import f32_level, lanes_of, vector_bytes
from asmdnn.types import DATA_TYPES
from asmdnn.ukernel.checks import leading, level, size, type_of
from asmdnn.ukernel.framed import framed
from asmdnn.ukernel.kernel import Pointed, UKernel

PACKED: Final = {x.weights: x for x in OFFERED if x.src.size_bytes == x.weights.size_bytes}
MOVED: Final = tuple(DATA_TYPES.values())


def transform(k: int, n: int, dtype: str = "f32", *, ld: int = 0, isa: str = "") -> UKernel:
    """A kernel of `void(src, dst)` that packs b of `brgemm`: dst[k / group][ldb][group] of src[k, n].

    dtype: f32, bf16 or s8, whose groups are 1, 2 and 4 elements of k.  ldb is n in whole vectors of the level; columns
    after n, and elements after k in the last group, become zero.  ld: elements from row to row of src, by default n.
    isa: a level of the brgemm's vectors, by default as for that.  Raises InvalidArguments, Unimplemented.
    """
    depth, columns = size("k", k), size("n", n)
    types = PACKED[type_of("dtype", dtype, tuple(PACKED))]
    found = dot_level(types, level(isa))
    vectors = -(-columns // lanes_of(found))
    bytes_of_all = -(-depth // types.group) * vectors * vector_bytes(found)
    row_bytes = leading("ld", ld, columns) * types.weights.size_bytes
    spec = PackSpec(
        isa=found, depth=depth, columns=columns, row_bytes=row_bytes, panel_vectors=vectors, panel_bytes=bytes_of_all,
        types=types,
    )  # fmt: skip
    packed = f"{-(-depth // types.group)}][{vectors * lanes_of(found)}][{types.group}"
    text = f"dst[{packed}] = src[{depth}, {columns}], packed: {types.weights}."
    words = (("prefetched", Pointed("src", types.weights)), ("weights", Pointed("dst", types.weights)))
    return framed(spec, words, text)


def transpose(
    rows: int,
    columns: int,
    dtype: str = "f32",
    *,
    src_ld: int = 0,
    dst_ld: int = 0,
    streaming: bool = False,
    isa: str = "",
) -> UKernel:
    """A kernel of `void(src, dst)`: dst[c, r] = src[r, c].

    One side is at most a cache line of elements: 16 of four bytes, 32 of two, 64 of one.  The other has any length.
    src_ld, dst_ld: elements from row to row, by default columns and rows.
    streaming: whole vectors go past the caches where dst is aligned to them, without a fence; rows of dst must be
    whole vectors apart.  Raises InvalidArguments.
    """
    high, wide, element = size("rows", rows), size("columns", columns), type_of("dtype", dtype, MOVED)
    unit = element.size_bytes
    most = across_of(unit, 4)
    if min(high, wide) > most:
        raise InvalidArguments(
            f"transpose of {high} x {wide} {element}: one side must be at most {most}; call it by parts."
        )
    found = f32_level(level(isa))
    src, dst = leading("src_ld", src_ld, wide) * unit, leading("dst_ld", dst_ld, high) * unit
    if streaming and dst % vector_bytes(found):
        raise InvalidArguments(f"streaming needs rows of dst of whole vectors: dst_ld is {dst // unit} {element}.")
    spec = TransposeSpec(
        isa=found, unit_bytes=unit, rows=high, columns=wide, src_row_bytes=src, dst_row_bytes=dst,
        streaming=bool(streaming),
    )  # fmt: skip
    text = f"dst[{wide}, {high}] = src[{high}, {wide}]: {element}, rows {src} and {dst} bytes apart."
    words = (("src", Pointed("src", element)), ("dst", Pointed("dst", element)))
    return framed(spec, words, text, streams=bool(streaming))


def convert(
    rows: int,
    columns: int,
    src: str,
    dst: str,
    *,
    src_ld: int = 0,
    dst_ld: int = 0,
    scaled: bool = False,
    isa: str = "",
) -> UKernel:
    """A kernel of `void(src, dst)`: each element as another type, rounded to the nearest, ties to even, saturated.

    scaled: a third argument, const float *scale, one number that all are multiplied by before.
    src_ld, dst_ld: elements from row to row, by default columns.  Raises InvalidArguments.
    """
    high, wide = size("rows", rows), size("columns", columns)
    of_src, of_dst = type_of("src", src, MOVED), type_of("dst", dst, MOVED)
    if of_src == of_dst and not scaled:
        raise InvalidArguments(f"convert from {of_src} to {of_dst} changes nothing: copy the bytes.")
    steps = (leading("src_ld", src_ld, wide) * of_src.size_bytes, leading("dst_ld", dst_ld, wide) * of_dst.size_bytes)
    spec = ConvertSpec(
        isa=level(isa), conversion=Conversion(of_src.name, of_dst.name, scaled=bool(scaled)), rows=high, columns=wide,
        src_steps=(steps[0], of_src.size_bytes), dst_steps=(steps[1], of_dst.size_bytes),
    )  # fmt: skip
    text = f"dst[{high}, {wide}] = {'scale[0] * ' * bool(scaled)}src[{high}, {wide}]: {of_src} to {of_dst}."
    words = [("src", Pointed("src", of_src)), ("dst", Pointed("dst", of_dst))]
    words += [("scales", Pointed("scale", DATA_TYPES["f32"]))] * bool(scaled)
    return framed(spec, words, text)
