"""The specs of pooling: blocks and tails of channels, shared columns, walked windows, loops; lines and planes."""

from collections.abc import Iterator

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.postops import PostOp, ReluOp, SumOp
from asmdnn.generators.pooling.indices import PoolIndicesSpec
from asmdnn.generators.pooling.pixels import PoolPixelsSpec
from asmdnn.generators.pooling.planes import PoolPlanesSpec
from asmdnn.generators.pooling.rows import PoolRowsSpec
from asmdnn.generators.pooling.window import Loop, Taps

CHAIN: tuple[PostOp, ...] = (SumOp(0.5), ReluOp(0.0))


def pixels(isa: str) -> Iterator[PoolPixelsSpec]:
    """Tails; results that share columns, that do not, of nothing; rests; outer loops; streaming; post-ops; types."""
    lanes = LANES[isa]
    for elements in (1, lanes - 1, lanes, 2 * lanes, 5 * lanes + 3):
        pixel, row = 4 * elements + 4, 9 * (4 * elements + 4)
        window = (Taps(2, row), Taps(3, pixel))
        yield PoolPixelsSpec(isa, "max", (Loop(5, pixel, pixel),), window, elements, 4, 2)
        yield PoolPixelsSpec(
            isa, "avg", (Loop(2, 2 * row, 3 * pixel), Loop(2, 3 * pixel, pixel)), window, elements, 1, 3, 6
        )
        walked = (Taps(2, 0), Taps(9, row), Taps(8, pixel))
        yield PoolPixelsSpec(isa, "max", (Loop(1, pixel, pixel),), walked[1:], elements, 1, 2)
        yield PoolPixelsSpec(isa, "avg", (Loop(2, pixel, pixel),), walked[1:], elements, 1, 2, 64)
    for alg, elements in (("max_s8", lanes + 3), ("max_u8", 2 * lanes)):
        pixel = 4 * elements
        yield PoolPixelsSpec(isa, alg, (Loop(5, pixel, pixel),), (Taps(2, 9 * pixel), Taps(3, pixel)), elements, 4, 2)
    for kind, size in (("bf16", 2), ("f16", 2), ("s8", 1), ("u8", 1)):
        for alg, elements in (("max", lanes - 1), ("avg", 3 * lanes + 1)):
            pixel = size * elements
            window = (Taps(2, 9 * pixel), Taps(3, pixel))
            loops = (Loop(5, pixel, pixel),)
            yield PoolPixelsSpec(isa, alg, loops, window, elements, 2, 2, 1 if alg == "max" else 4, kind=kind)
    dense = 4 * lanes
    for alg, divisor in (("max", 1), ("avg", 4)):
        loops, window = (Loop(3, 2 * dense, dense),), (Taps(2, 7 * dense), Taps(2, dense))
        yield PoolPixelsSpec(isa, alg, loops, window, lanes, 2, 1, divisor, CHAIN)
        yield PoolPixelsSpec(isa, alg, loops, window, lanes, 1, 1, divisor, streaming=True)
        yield PoolPixelsSpec(isa, alg, (Loop(1, 0, 0),), (Taps(1, 0), Taps(1, 0)), 16 * lanes, 1, 8, divisor)
        yield PoolPixelsSpec(isa, alg, (Loop(5, 0, 4 * lanes + 4),), (Taps(0, 0), Taps(2, 4)), lanes + 1, 2, 2, divisor)


def indexed(isa: str) -> Iterator[PoolIndicesSpec]:
    """Tails; loops inside and outside of the window; indices that are carried; streaming."""
    lanes = LANES[isa]
    for elements in (lanes - 1, lanes, 3 * lanes + 1):
        pixel = 4 * elements
        loops = (Loop(2, 14 * pixel, 3 * pixel), Loop(2, 2 * pixel, pixel))
        window = (Taps(1, 0), Taps(3, 7 * pixel), Taps(2, pixel))
        yield PoolIndicesSpec(isa, loops, window, (14, 2), (0, 7, 1), elements, 1, 2)
        yield PoolIndicesSpec(isa, (Loop(5, pixel, pixel),), window, (1,), (0, 7, 1), elements, 2, 2)
        yield PoolIndicesSpec(isa, loops, window[1:], (0, 0), (0, 0), elements, 1, 2, carries=True)
        yield PoolIndicesSpec(isa, (Loop(5, pixel, pixel),), window[1:], (0,), (0, 0), elements, 2, 2, carries=True)
    for carries in (False, True):
        dense = 8 * lanes
        numbers = (2,), (0, 7, 1)
        window = (Taps(1, 0), Taps(1, 0), Taps(2, dense))
        yield PoolIndicesSpec(isa, (Loop(3, 2 * dense, dense),), window, *numbers, 2 * lanes, 1, 2, carries, True)


def rows(isa: str) -> Iterator[PoolRowsSpec]:
    """Rows shorter and longer than a vector; both strides; halves of a vector; batches and rests; divisors by lane."""
    lanes = LANES[isa]
    for width in (1, lanes - 1, lanes, lanes + 3, 3 * lanes):
        line = 4 * width
        loops, window = (Loop(2, 20 * line, 9 * line), Loop(9, line, line)), (Taps(3, line),)
        divisors = ((6, 1), (9, width - 1))
        yield PoolRowsSpec(isa, "max", loops, window, width, width, 3, 1, 1, 1)
        yield PoolRowsSpec(isa, "avg", loops[1:], window, width, width, 3, 1, 1, 1, divisors)
        half = (width + 1) // 2
        yield PoolRowsSpec(isa, "max", (Loop(3, 2 * line, line),), window, width, half, 3, 2, 1, 1)
        yield PoolRowsSpec(isa, "avg", (Loop(1, 0, 0),), (Taps(2, line),), width, half, 2, 2, 1, 0, ((4, half),), CHAIN)
    yield PoolRowsSpec(isa, "max", (Loop(2, 96 * lanes, 4 * lanes),), (), 2 * lanes, lanes, 2, 2, 1, 0, (), (), True)
    yield PoolRowsSpec(isa, "max", (Loop(1, 0, 0),), (Taps(1, 0),), 30, 30, 3, 1, 5, 5)
    for alg in ("max", "avg"):
        yield PoolRowsSpec(isa, alg, (Loop(1, 0, 0),), (Taps(0, 0),), lanes + 1, lanes + 2, 2, 1, 1, 1)


def planes(isa: str) -> Iterator[PoolPlanesSpec]:
    """Tails; vectors unrolled and in a loop."""
    lanes = LANES[isa]
    for alg, chain in (("max", ()), ("avg", CHAIN)):
        for elements in (1, lanes, 4 * lanes + 3, 33 * lanes + 1, 36 * lanes):
            yield PoolPlanesSpec(isa, alg, 3, elements, 4 * elements, 4, 1 if alg == "max" else 8, chain)


FAMILIES = {
    **of_levels("pool", pixels=pixels),
    **of_levels("pool", indices=indexed),
    **of_levels("pool", rows=rows),
    **of_levels("pool", planes=planes),
}
