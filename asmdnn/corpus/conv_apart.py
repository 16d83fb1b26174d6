"""Convolution tiles with a pointer for each vector of dst, which do not know how far these lie apart."""

from collections.abc import Iterator

from asmdnn.corpus.conv import MOST_VECTORS, RELU, blocked, of_levels
from asmdnn.generators.dot.conv import ConvTileSpec
from asmdnn.generators.dot.conv_shape import ARGUMENTS
from asmdnn.generators.functions.postops import BinaryOp, Operand, SumOp
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import replace

SUM = SumOp(1.0)


def apart(isa: str) -> Iterator[ConvTileSpec]:
    """A pointer for each vector of dst: every number of them, tails, what dst held, after operands or not."""
    first = len(ARGUMENTS)
    operands = (Operand(first, 0, 4 * lanes_of(isa), False), Operand(first + 1, 0, 0, True))
    post_ops = (BinaryOp("add", operands[0]), BinaryOp("mul", operands[1]))
    for vectors in range(2, MOST_VECTORS[isa] + 1):
        tile = blocked(isa, 3, vectors, dst_vector_bytes=0, dst_argument=first)
        yield tile
        yield replace(tile, channels=vectors * lanes_of(isa) - 3, bias=True, post_ops=(SUM, RELU))
        yield replace(tile, dst_argument=first + 2, accumulate=True)
        yield replace(tile, streams=True)
        yield replace(tile, dst_argument=first + 2, post_ops=post_ops)
    pixel_bytes = 8 * lanes_of(isa) - 20
    tile = blocked(isa, 3, 2, channels=pixel_bytes // 4, dst_vector_bytes=0, dst_argument=first)
    yield replace(tile, dst_pixel_bytes=pixel_bytes, whole_vectors=False, bias=True)


FAMILIES = of_levels("conv", apart=apart)
