"""The specs of tiles of few output channels: outputs, pixels, tails of channels, groups, the end."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, RELU, SUM_HALF, of_levels
from asmdnn.generators.dot.conv_shape import TapGroup
from asmdnn.generators.dot.few_outputs import FewTileSpec
from asmdnn.generators.dot.few_outputs_shape import MOST_OUTPUTS
from asmdnn.generators.functions.postops import BinaryOp, Operand
from asmdnn.records import replace


def tile(isa: str, pixels: int, outputs: int, channels: int = 0, **fields: Any) -> FewTileSpec:
    """src blocked by the vector; one group of all pixels, with so many channels, else a vector of them."""
    vector_bytes = 4 * LANES[isa]
    spec = FewTileSpec(
        isa=isa,
        outputs=outputs,
        src_pixel_bytes=tuple(vector_bytes * p for p in range(pixels)),
        src_vector_bytes=40 * vector_bytes,
        weights_vector_bytes=3 * outputs * vector_bytes,
        dst_output_bytes=500,
        groups=(TapGroup(tuple(range(pixels)), channels or LANES[isa]),),
    )
    return replace(spec, **fields)


def outputs(isa: str) -> Iterator[FewTileSpec]:
    """Every number of outputs, of whole vectors of channels and of a rest, all pixels and one."""
    lanes = LANES[isa]
    for count in range(1, MOST_OUTPUTS + 1):
        yield tile(isa, lanes, count, 2 * lanes, bias=True)
    for count in (1, 3, 6, MOST_OUTPUTS):  # with registers for weights and a mask, with less
        yield tile(isa, lanes, count, lanes + 3)
    yield tile(isa, 1, 2, 1, bias=True)


def pixels(isa: str) -> Iterator[FewTileSpec]:
    """Pixels that are no power of two, whose last sums are of fewer."""
    for count in range(2, LANES[isa], 2 if LANES[isa] == 8 else 4):
        yield tile(isa, count, 1)
        yield tile(isa, count + 1, 3, post_ops=(RELU,))


def groups(isa: str) -> Iterator[FewTileSpec]:
    """Taps that reach some of the pixels, some of which are computed at other times, and none."""
    last = LANES[isa] - 1
    several = (TapGroup((0,), 3), TapGroup(tuple(range(last + 1)), LANES[isa]), TapGroup((last - 1, last), 2))
    for count in (1, 4):
        yield tile(isa, last + 1, count, groups=several, bias=True)
        yield tile(isa, last + 1, count, groups=several[:1])
        yield tile(isa, last + 1, count, groups=(), bias=True)


def ends(isa: str) -> Iterator[FewTileSpec]:
    """Sums, and operands of every broadcast."""
    pixels, element, one = Operand(5, 500, 0, False), Operand(6, 4, 0, True), Operand(7, 0, 0, False)
    chain = (SUM_HALF, *map(BinaryOp, ("add", "mul", "max"), (pixels, element, one)))
    for size in (LANES[isa], LANES[isa] - 1):
        yield tile(isa, size, 2, bias=True, post_ops=chain)
        yield tile(isa, size, 1, post_ops=(RELU,))


FAMILIES = of_levels("few_outputs", outputs=outputs, pixels=pixels, groups=groups, ends=ends)
