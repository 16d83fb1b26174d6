"""The specs of pooling: blocks and tails of channels, shared columns, walked windows, loops; lines and planes."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels, rounded
from asmdnn.generators.functions.postops import PostOp, ReluOp, SumOp
from asmdnn.generators.pooling.indices import PoolIndicesSpec
from asmdnn.generators.pooling.pixels import PoolPixelsSpec
from asmdnn.generators.pooling.planes import PoolPlanesSpec
from asmdnn.generators.pooling.rows import PoolRowsSpec, most_stride
from asmdnn.generators.pooling.window import PixelLoop, Taps

CHAIN: tuple[PostOp, ...] = (SumOp(0.5), ReluOp(0.0))


def pixels(isa: str) -> Iterator[PoolPixelsSpec]:
    """Tails; results that share columns, that do not, of nothing; rests; outer loops; streaming; post-ops; types."""
    lanes = LANES[isa]
    for elements in (1, lanes - 1, lanes, 2 * lanes, 5 * lanes + 3):
        pixel, row = 4 * elements + 4, 9 * (4 * elements + 4)
        window = (Taps(2, row), Taps(3, pixel))
        yield PoolPixelsSpec(
            isa=isa, alg="max", loops=(PixelLoop(5, pixel, pixel),), window=window, elements=elements, pixels=4,
            vectors=2,
        )  # fmt: skip
        yield PoolPixelsSpec(
            isa=isa, alg="avg", loops=(PixelLoop(2, 2 * row, 3 * pixel), PixelLoop(2, 3 * pixel, pixel)), window=window,
            elements=elements, pixels=1, vectors=3, divisor=6,
        )  # fmt: skip
        walked = (Taps(2, 0), Taps(9, row), Taps(8, pixel))
        yield PoolPixelsSpec(
            isa=isa, alg="max", loops=(PixelLoop(1, pixel, pixel),), window=walked[1:], elements=elements, pixels=1,
            vectors=2,
        )  # fmt: skip
        yield PoolPixelsSpec(
            isa=isa, alg="avg", loops=(PixelLoop(2, pixel, pixel),), window=walked[1:], elements=elements, pixels=1,
            vectors=2, divisor=64,
        )  # fmt: skip
    yield from typed_pixels(isa)
    yield from dense_pixels(isa)


def typed_pixels(isa: str) -> Iterator[PoolPixelsSpec]:
    """Bytes four at a time, and elements that become f32."""
    lanes = LANES[isa]
    for alg, elements in (("max_s8", lanes + 3), ("max_u8", 2 * lanes)):
        pixel = 4 * elements
        yield PoolPixelsSpec(
            isa=isa, alg=alg, loops=(PixelLoop(5, pixel, pixel),), window=(Taps(2, 9 * pixel), Taps(3, pixel)),
            elements=elements, pixels=4, vectors=2,
        )  # fmt: skip
    for kind, size in (("bf16", 2), ("f16", 2), ("s8", 1), ("u8", 1)):
        for alg, elements in (("max", lanes - 1), ("avg", 3 * lanes + 1)):
            pixel = size * elements
            window = (Taps(2, 9 * pixel), Taps(3, pixel))
            loops = (PixelLoop(5, pixel, pixel),)
            yield PoolPixelsSpec(
                isa=isa, alg=alg, loops=loops, window=window, elements=elements, pixels=2, vectors=2,
                divisor=1 if alg == "max" else 4, kind=kind,
            )  # fmt: skip


def dense_pixels(isa: str) -> Iterator[PoolPixelsSpec]:
    """Whole vectors that touch: post-ops, streaming; many vectors; windows of padding alone."""
    lanes = LANES[isa]
    dense = 4 * lanes
    for alg, divisor in (("max", 1), ("avg", 4)):
        loops, window = (PixelLoop(3, 2 * dense, dense),), (Taps(2, 7 * dense), Taps(2, dense))
        yield PoolPixelsSpec(
            isa=isa, alg=alg, loops=loops, window=window, elements=lanes, pixels=2, vectors=1, divisor=divisor,
            chain=CHAIN,
        )  # fmt: skip
        yield PoolPixelsSpec(
            isa=isa, alg=alg, loops=loops, window=window, elements=lanes, pixels=1, vectors=1, divisor=divisor,
            streaming=True,
        )  # fmt: skip
        yield PoolPixelsSpec(
            isa=isa, alg=alg, loops=(PixelLoop(1, 0, 0),), window=(Taps(1, 0), Taps(1, 0)), elements=16 * lanes,
            pixels=1, vectors=8, divisor=divisor,
        )  # fmt: skip
        yield PoolPixelsSpec(
            isa=isa, alg=alg, loops=(PixelLoop(5, 0, 4 * lanes + 4),), window=(Taps(0, 0), Taps(2, 4)),
            elements=lanes + 1, pixels=2, vectors=2, divisor=divisor,
        )  # fmt: skip


def indexed(isa: str) -> Iterator[PoolIndicesSpec]:
    """Tails; loops inside and outside of the window; indices that are carried; streaming."""
    lanes = LANES[isa]
    for elements in (lanes - 1, lanes, 3 * lanes + 1):
        pixel = 4 * elements
        loops = (PixelLoop(2, 14 * pixel, 3 * pixel), PixelLoop(2, 2 * pixel, pixel))
        window = (Taps(1, 0), Taps(3, 7 * pixel), Taps(2, pixel))
        yield PoolIndicesSpec(
            isa=isa, loops=loops, window=window, loop_numbers=(14, 2), window_numbers=(0, 7, 1), elements=elements,
            pixels=1, vectors=2,
        )  # fmt: skip
        yield PoolIndicesSpec(
            isa=isa, loops=(PixelLoop(5, pixel, pixel),), window=window, loop_numbers=(1,), window_numbers=(0, 7, 1),
            elements=elements, pixels=2, vectors=2,
        )  # fmt: skip
        yield PoolIndicesSpec(
            isa=isa, loops=loops, window=window[1:], loop_numbers=(0, 0), window_numbers=(0, 0), elements=elements,
            pixels=1, vectors=2, carries=True,
        )  # fmt: skip
        yield PoolIndicesSpec(
            isa=isa, loops=(PixelLoop(5, pixel, pixel),), window=window[1:], loop_numbers=(0,), window_numbers=(0, 0),
            elements=elements, pixels=2, vectors=2, carries=True,
        )  # fmt: skip
    yield from in_windows(isa)
    for carries in (False, True):
        dense = 8 * lanes
        window = (Taps(1, 0), Taps(1, 0), Taps(2, dense))
        yield PoolIndicesSpec(
            isa=isa, loops=(PixelLoop(3, 2 * dense, dense),), window=window, loop_numbers=(2,),
            window_numbers=(0, 7, 1), elements=2 * lanes, pixels=1, vectors=2, carries=carries, streaming=True,
        )  # fmt: skip


def in_windows(isa: str) -> Iterator[PoolIndicesSpec]:
    """Places as positions of a window, in bytes."""
    lanes = LANES[isa]
    for elements in (lanes - 1, 3 * lanes + 1):
        pixel = 4 * elements
        taps = (Taps(3, 7 * pixel), Taps(3, pixel))
        yield PoolIndicesSpec(
            isa=isa, loops=(PixelLoop(5, 2 * pixel, pixel),), window=taps, loop_numbers=(0,), window_numbers=(4, 1),
            elements=elements, pixels=2, vectors=2, places="u8",
        )  # fmt: skip


def rows(isa: str) -> Iterator[PoolRowsSpec]:
    """Rows shorter and longer than a vector; both strides; halves of a vector; batches and rests; divisors by lane."""
    lanes = LANES[isa]
    for width in (1, lanes - 1, lanes, lanes + 3, 3 * lanes):
        line = 4 * width
        loops, window = (PixelLoop(2, 20 * line, 9 * line), PixelLoop(9, line, line)), (Taps(3, line),)
        divisors, half = ((6, 1), (9, width - 1)), (width + 1) // 2
        same: Any = {"width": width, "columns": 3, "dilation": 1, "before": 1}
        yield PoolRowsSpec(isa=isa, alg="max", loops=loops, rows=window, results=width, stride=1, **same)
        yield PoolRowsSpec(
            isa=isa, alg="avg", loops=loops[1:], rows=window, results=width, stride=1, divisors=divisors, **same
        )
        yield PoolRowsSpec(
            isa=isa, alg="max", loops=(PixelLoop(3, 2 * line, line),), rows=window, results=half, stride=2, **same
        )
        yield PoolRowsSpec(
            isa=isa, alg="avg", loops=(PixelLoop(1, 0, 0),), rows=(Taps(2, line),), width=width, results=half,
            columns=2, stride=2, dilation=1, before=0, divisors=((4, half),), chain=CHAIN,
        )  # fmt: skip
    yield from typed_rows(isa)
    yield from strided_rows(isa)
    yield from special_rows(isa)


def typed_rows(isa: str) -> Iterator[PoolRowsSpec]:
    """Elements that become f32: rows shorter and longer than a vector, both strides."""
    lanes = LANES[isa]
    for kind, size in (("bf16", 2), ("f16", 2), ("s8", 1), ("u8", 1)):
        for alg, width, stride in (("max", lanes - 1, 1), ("avg", 2 * lanes + 3, 2), ("max", 2 * lanes, 2)):
            line, results = size * width, (width - 1) // stride + 1
            yield PoolRowsSpec(
                isa=isa, alg=alg, loops=(PixelLoop(3, 2 * line, size * results),), rows=(Taps(2, line),), width=width,
                results=results, columns=3, stride=stride, dilation=1, before=1, kind=kind,
                divisors=((4, results),) if alg == "avg" else (),
            )  # fmt: skip


def strided_rows(isa: str) -> Iterator[PoolRowsSpec]:
    """Strides beyond two: results of one vector, and of all that a stride has; windows that touch, share and leave
    out."""
    lanes = LANES[isa]
    for stride, columns in ((3, 3), (3, 2), (4, 5), (most_stride(isa), 3)):
        for results in (1, 2, lanes, lanes + 2):
            width = (results - 1) * stride + columns - 1
            line = 4 * width
            yield PoolRowsSpec(
                isa=isa, alg="avg" if stride == 4 else "max", loops=(PixelLoop(3, 2 * line, 4 * results),),
                rows=(Taps(2, line),), width=width, results=results, columns=columns, stride=stride, dilation=1,
                before=1, divisors=((2 * columns - 2, 1), (2 * columns, results - 1)) if stride == 4 else (),
            )  # fmt: skip
    line = 2 * 5 * lanes
    yield PoolRowsSpec(
        isa=isa, alg="avg", loops=(PixelLoop(3, line, 2 * lanes),), rows=(Taps(1, 0),), width=5 * lanes, results=lanes,
        columns=5, stride=5, dilation=1, before=0, divisors=((5, lanes),), kind="bf16",
    )  # fmt: skip


def special_rows(isa: str) -> Iterator[PoolRowsSpec]:
    """Streaming; long steps of a window; rows of padding alone."""
    lanes = LANES[isa]
    yield PoolRowsSpec(
        isa=isa, alg="max", loops=(PixelLoop(2, 96 * lanes, 4 * lanes),), rows=(), width=2 * lanes, results=lanes,
        columns=2, stride=2, dilation=1, before=0, streaming=True,
    )  # fmt: skip
    yield PoolRowsSpec(
        isa=isa, alg="max", loops=(PixelLoop(1, 0, 0),), rows=(Taps(1, 0),), width=30, results=30, columns=3, stride=1,
        dilation=5, before=5,
    )  # fmt: skip
    for alg in ("max", "avg"):
        yield PoolRowsSpec(
            isa=isa, alg=alg, loops=(PixelLoop(1, 0, 0),), rows=(Taps(0, 0),), width=lanes + 1, results=lanes + 2,
            columns=2, stride=1, dilation=1, before=1,
        )  # fmt: skip


def planes(isa: str) -> Iterator[PoolPlanesSpec]:
    """Tails; vectors unrolled and in a loop; types."""
    lanes = LANES[isa]
    for alg, chain in (("max", ()), ("avg", CHAIN)):
        for elements in (1, lanes, 4 * lanes + 3, 33 * lanes + 1, 36 * lanes):
            yield PoolPlanesSpec(
                isa=isa, alg=alg, planes=3, elements=elements, src_plane_bytes=4 * elements, dst_step_bytes=4,
                divisor=1 if alg == "max" else 8, chain=chain,
            )  # fmt: skip
    yield from typed_planes(isa)


def typed_planes(isa: str) -> Iterator[PoolPlanesSpec]:
    """Elements that become f32."""
    lanes = LANES[isa]
    for kind, size in (("bf16", 2), ("f16", 2), ("s8", 1), ("u8", 1)):
        for alg, elements in (("max", 3 * lanes + 1), ("avg", lanes - 1), ("avg", 35 * lanes + 2)):
            yield PoolPlanesSpec(
                isa=isa, alg=alg, planes=3, elements=elements, src_plane_bytes=size * elements, dst_step_bytes=size,
                divisor=1 if alg == "max" else 4, kind=kind,
            )  # fmt: skip


def typed(isa: str) -> Iterator[PoolPixelsSpec | PoolRowsSpec | PoolPlanesSpec]:
    """All that may have other types in memory."""
    yield from pixels(isa)
    yield from rows(isa)
    yield from planes(isa)


FAMILIES = {
    **of_levels("pool", pixels=pixels),
    **of_levels("pool", indices=indexed),
    **of_levels("pool", rows=rows),
    **of_levels("pool", planes=planes),
    "pool-rounded": rounded(typed),
}
