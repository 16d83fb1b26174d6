"""Kernels whose frame begins further on: near the first words and far from them."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels, prefetching
from asmdnn.corpus.grouped import EDGES, whole
from asmdnn.corpus.grouped import rows as grouped_rows
from asmdnn.generators.dot import grouped_shape
from asmdnn.generators.dot.conv_shape import ARGUMENTS
from asmdnn.generators.functions.postops import BinaryOp, Operand
from asmdnn.generators.functions.shifted import ShiftedSpec
from asmdnn.generators.functions.softmax import SoftmaxSpec


def rows(isa: str) -> Iterator[ShiftedSpec]:
    """Softmax with a mask, of rows that registers hold and of longer ones."""
    for first, elements in ((1, LANES[isa] + 1), (20, 16 * LANES[isa] + 3)):
        row_bytes = 4 * elements
        mask = (BinaryOp("add", Operand(2, row_bytes, 0, False)),)
        yield ShiftedSpec(
            kernel=SoftmaxSpec(
                isa=isa, rows=2, elements=elements, src_row_bytes=row_bytes, dst_row_bytes=row_bytes, before=mask
            ),
            first=first,
        )


def grouped(isa: str) -> Iterator[ShiftedSpec]:
    """Rows of a depthwise convolution with bias and an operand, after the arguments of a tile of a convolution."""
    pixel = Operand(len(grouped_shape.ARGUMENTS), 4 * LANES[isa], 0, False)
    spec = grouped_rows(isa, whole(2), bands=EDGES[:2], bias=True, post_ops=(BinaryOp("mul", pixel),))
    yield ShiftedSpec(kernel=spec, first=len(ARGUMENTS))


def tiles(isa: str) -> Iterator[ShiftedSpec]:
    """Tiles of a convolution with their tap lists, after the arguments of others."""
    yield ShiftedSpec(kernel=next(prefetching(isa)), first=len(ARGUMENTS))


FAMILIES = of_levels("shifted", rows=rows, grouped=grouped, tiles=tiles)
