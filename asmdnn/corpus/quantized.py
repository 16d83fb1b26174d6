"""The specs of products with nibbles, and of rows as bytes for them: any number of rows and vectors, groups, tails."""

from collections.abc import Callable, Iterator
from functools import partial

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.panel_product import PANEL_VECTORS
from asmdnn.generators.dot.quantize import QuantizeSpec
from asmdnn.generators.dot.quantized import QuantizedProductSpec, vectors_of
from asmdnn.generators.dot.unpacked import ROWS_BY_GROUPS, UnpackedProductSpec, unpacked_vectors
from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand
from asmdnn.isa.elements import size_of
from asmdnn.isa.nibbles import DOTS
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import replace

GAP = 3  # elements between rows
MOST_ROWS = 4


def rows(isa: str) -> Iterator[QuantizeSpec]:
    """One group and several, of one vector and more; rows apart."""
    for kind in ("f32", "bf16", "f16"):
        for count, groups, group in ((1, 1, 16), (2, 3, 32), (3, 2, 5 * 16)):
            elements = groups * group
            row = size_of(kind) * (elements + (GAP if count > 1 else 0))
            yield QuantizeSpec(
                isa=isa, rows=count, elements=elements, group=group, src_row_bytes=row,
                factor=-8.0 if groups > 1 else 1.0, kind=kind,
            )  # fmt: skip
    assert LANES[isa] <= 16, "a group is whole vectors"


def products(isa: str) -> Iterator[QuantizedProductSpec]:
    """All blocks of registers, whole and with a tail; a group unrolled, and in a loop; offsets, post-ops, types."""
    lanes = lanes_of(isa)
    for count in range(1, MOST_ROWS + 1):
        most = vectors_of(isa, count)
        for vectors in range(1, most + 1):
            for cut in (0, lanes - 1) if vectors == most else (1,):
                columns, offsets = vectors * lanes - cut, bool(count % 2)
                yield QuantizedProductSpec(
                    isa=isa, rows=count, columns=columns, vectors=vectors, depth=96, group=48,
                    dst_row_bytes=4 * (columns + GAP), offsets=offsets,
                )  # fmt: skip
    for group in (16, 128):
        yield QuantizedProductSpec(
            isa=isa, rows=1, columns=lanes, vectors=PANEL_VECTORS, depth=2 * group, group=group, dst_row_bytes=0
        )
    after = (BinaryOp("add", Operand(6, 0, 0, False)), EltwiseOp("relu", 0.0, 0.0, 1.0))
    each = BinaryOp("mul", Operand(7, 4, 0, True))
    for kind in ("f32", "bf16", "f16"):
        count, columns = (1, 2 * lanes - 3) if kind == "f32" else (2, lanes - 2)
        yield QuantizedProductSpec(
            isa=isa, rows=count, columns=columns, vectors=-(-columns // lanes), depth=64, group=32,
            dst_row_bytes=size_of(kind) * columns, after=(*after, each), kind=kind,
        )  # fmt: skip


def octets(isa: str) -> Iterator[QuantizedProductSpec]:
    """The same blocks with weights of 8 bits."""
    lanes = lanes_of(isa)
    for count in range(1, MOST_ROWS + 1):
        for vectors in range(1, vectors_of(isa, count, 8) + 1):
            columns = vectors * lanes - vectors % 2
            yield QuantizedProductSpec(
                isa=isa, rows=count, columns=columns, vectors=vectors, depth=96, group=48, dst_row_bytes=4 * columns,
                offsets=bool(count % 2), bits=8,
            )  # fmt: skip


def unpacked(isa: str) -> Iterator[UnpackedProductSpec]:
    """Rows by groups and rows that share what is scaled, all vectors; offsets, a zero point, none; types, post-ops."""
    lanes = lanes_of(isa)
    for count in (1, 2, 3, 4, 8, 12):
        if not (most := unpacked_vectors(isa, count)):
            continue
        for bits in (4, 8):
            for vectors in range(1, most + 1):
                columns, which = vectors * lanes - (vectors == most), (count + vectors) % 3
                yield UnpackedProductSpec(
                    isa=isa, rows=count, columns=columns, vectors=vectors, depth=96, group=48,
                    src_row_bytes=4 * (96 + (GAP if count > 1 else 0)), dst_row_bytes=4 * (columns + GAP),
                    offsets=which == 1, zero_point=2.0 ** (bits - 1) if which == 0 else 0.0, bits=bits,
                )  # fmt: skip
    after = (BinaryOp("add", Operand(4, 0, 0, False)), EltwiseOp("relu", 0.0, 0.0, 1.0))
    each = BinaryOp("mul", Operand(5, 4, 0, True))
    for kind in ("f32", "bf16", "f16"):
        count, columns = (1, 2 * lanes - 3) if kind == "f32" else (3, lanes - 2)
        yield UnpackedProductSpec(
            isa=isa, rows=count, columns=columns, vectors=-(-columns // lanes), depth=256 if kind == "f32" else 64,
            group=128 if kind == "f32" else 32, src_row_bytes=4 * (256 if kind == "f32" else 64),
            dst_row_bytes=size_of(kind) * columns, after=(*after, each), kind=kind,
        )  # fmt: skip


def as_many(isa: str) -> Iterator[UnpackedProductSpec]:
    """One or two rows that are summed as more are."""
    for spec in unpacked(isa):
        if spec.rows <= ROWS_BY_GROUPS and spec.vectors <= unpacked_vectors(isa, spec.rows, as_many=True):
            yield replace(spec, as_many=True)


def coded(isa: str) -> Iterator[UnpackedProductSpec]:
    """Weights that are signed, and nibbles in the order of k."""
    lanes = lanes_of(isa)
    for bits, signed in ((4, True), (4, False), (8, True)):
        for count in (1, 3):
            yield UnpackedProductSpec(
                isa=isa, rows=count, columns=2 * lanes, vectors=2, depth=64, group=32, src_row_bytes=4 * 64,
                dst_row_bytes=8 * lanes, offsets=not signed, bits=bits, signed=signed, in_order=True,
                scales_row_bytes=0 if signed else 32 * lanes,
            )  # fmt: skip


def unscaled(isa: str) -> Iterator[UnpackedProductSpec]:
    """Zero points that come without scales: of sums of groups and of elements, in panels and in rows of scales."""
    for spec in coded(isa):
        if spec.offsets:
            yield replace(spec, unscaled=True)
            yield replace(spec, unscaled=True, bits=8, in_order=False, scales_row_bytes=0)


def tables(isa: str) -> Iterator[UnpackedProductSpec]:
    """Nibbles that are numbers of floats, in both orders, of as many rows as leave the fewest registers."""
    lanes = lanes_of(isa)
    for table, in_order in (("f4_e2m1", True), ("nf4", False)):
        for count in (1, 2, 4, 12):
            if not (vectors := unpacked_vectors(isa, count)):
                continue
            yield UnpackedProductSpec(
                isa=isa, rows=count, columns=vectors * lanes, vectors=vectors, depth=64, group=32, src_row_bytes=4 * 64,
                dst_row_bytes=4 * vectors * lanes, in_order=in_order, table=table,
            )  # fmt: skip


FAMILIES: dict[str, Callable[[], Iterator[KernelSpec]]] = {
    **of_levels("quantize", rows=rows),
    **of_levels("unpacked", products=unpacked, coded=coded, unscaled=unscaled, tables=tables, as_many=as_many),
    **{f"nibbles-{isa}": partial(products, isa.name) for isa in DOTS},
    **{f"octets-{isa}": partial(octets, isa.name) for isa in DOTS},
}
